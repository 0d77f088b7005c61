-- The database roles. The service connects as `bursar_app`, which may not write to the ledger except through ledger.post; the ledger's
-- tables and functions belong to `bursar_ledger`. Roles are shared by all databases of a cluster, so they may exist already.
-- An administrator may also have made them and granted them to the login, which then needs no right to make roles.
do $$
declare wanted text;
begin
  foreach wanted in array array['bursar_ledger', 'bursar_app'] loop
    begin
      if not exists (select from pg_roles where rolname = wanted) then execute format('create role %I nologin', wanted); end if;
    exception when duplicate_object or unique_violation then null; end;
    begin
      execute format('grant %I to %I', wanted, current_user);
    exception when others then raise notice '% not granted to %: %', wanted, current_user, sqlerrm; end;
    if not pg_has_role(current_user, wanted, 'member') then
      raise exception '% is not a member of role %', current_user, wanted using errcode = 'insufficient_privilege';
    end if;
  end loop;
end $$;

-- Integers in minor units only: no fraction, no NaN, no infinity (NaN sorts above everything, so the second term refuses it).
create domain units as numeric check (value = trunc(value) and abs(value) < 1e60);
