-- To which network the books belong: one row, written by the first start of a database and never changed. Whoever comes with another
-- BURSAR_NETWORK is refused.
create table network (
  one        boolean primary key default true check (one),
  name       text not null check (name in ('sandbox', 'regtest', 'testnet', 'mainnet')),
  written_at timestamptz not null default now()
);
revoke insert, update, delete on network from bursar_app;
