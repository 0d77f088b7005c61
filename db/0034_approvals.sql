-- A payout above its merchant's limit leaves with an operator's approval that the key of an API has signed: `approved_at` alone can be written by
-- whoever has the database's password.
alter table payouts add column approval_key text, add column approval bytea;
grant update (approval_key, approval) on payouts to bursar_app;
