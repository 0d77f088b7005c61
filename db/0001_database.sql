-- Who may do what in this database, and what it remembers of itself. The service connects as `bursar_app`, which may write to the ledger
-- through ledger.post_all and ledger.post_parts only; the ledger's tables and functions belong to `bursar_ledger`. The signer's sessions are
-- `bursar_signer`: they read what must be checked before a signature, and nothing else.

-- Roles are shared by all databases of a cluster, so they may exist already. An administrator may also have made them and granted them to
-- the login, which then needs no right to make roles.
do $$
declare wanted text;
begin
  foreach wanted in array array['bursar_ledger', 'bursar_app', 'bursar_signer'] loop
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

-- The service may do everything with the rows of every public table, this file's and those of later ones. The file that creates a table
-- takes away what must not be.
grant usage on schema public to bursar_app, bursar_signer;
alter default privileges in schema public grant select, insert, update, delete on tables to bursar_app;
alter default privileges in schema public grant usage, select, update on sequences to bursar_app;

-- Amounts in whole minor units: no fraction, no NaN, no infinity (NaN sorts above everything, so the second term refuses it).
create domain units as numeric check (value = trunc(value) and abs(value) < 1e60);

-- The network whose money the ledger holds: one row, written by the first start and never changed. A start with another BURSAR_NETWORK is
-- refused, so that payments of two networks are never in one ledger.
create table network (
  one        boolean primary key default true check (one),
  name       text not null check (name in ('sandbox', 'regtest', 'testnet', 'mainnet')),
  written_at timestamptz not null default now()
);
revoke insert, update, delete on network from bursar_app;

-- A worker found that this is another database than the one it had read (a failover, or a dump or snapshot that was put back), and how it
-- knows. It is reported for a while, because what the other database wrote last may be missing here.
create table database_replacements (
  evidence   text primary key,
  noticed_at timestamptz not null
);

-- Jobs that run once for all workers, on the service's clock: when a worker last started one, and when that run ended.
create table schedules (
  name        text primary key,
  every_ms    bigint not null check (every_ms > 0),
  taken_at    timestamptz not null,
  finished_at timestamptz
);
