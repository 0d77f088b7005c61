-- What the service's role may do: everything with the rows of the public tables, except that history is never rewritten. The ledger's
-- own rights stand in 0003_ledger.sql. Tables of later migrations get the same by default; take away there what must not be.
grant usage on schema public to bursar_app;
grant select, insert, update, delete on all tables in schema public to bursar_app;
grant usage, select, update on all sequences in schema public to bursar_app;
alter default privileges in schema public grant select, insert, update, delete on tables to bursar_app;
alter default privileges in schema public grant usage, select, update on sequences to bursar_app;
revoke update, delete on events from bursar_app;
