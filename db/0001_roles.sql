-- The database roles. The service connects as `bursar_app`, which may not write to the ledger except through ledger.post; the ledger's
-- tables and functions belong to `bursar_ledger`. Roles are shared by all databases of a cluster, so they may exist already.
do $$ begin create role bursar_ledger nologin; exception when duplicate_object or unique_violation then null; end $$;
do $$ begin create role bursar_app nologin; exception when duplicate_object or unique_violation then null; end $$;
do $$ begin
  execute format('grant bursar_ledger, bursar_app to %I', current_user);
exception when others then raise notice 'roles not granted to %: %', current_user, sqlerrm; end $$;

-- Integers in minor units only: no fraction, no NaN, no infinity (NaN sorts above everything, so the second term refuses it).
create domain units as numeric check (value = trunc(value) and abs(value) < 1e60);
