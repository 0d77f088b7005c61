-- What of our node is its operator's is in the books too: then everything that it has in its channels and its wallet is.
set role bursar_ledger;
insert into ledger.account_kind values
  -- what the node has, less what payments brought and payouts left; payouts over Lightning may take more than payments brought there
  ('asset_lightning_operator', '^asset:ln:operator:[A-Z]+$',        1, false, true),
  ('expense_lightning',        '^expense:ln:[a-z_]+:[A-Z]+$',       1, false, true),
  ('equity_lightning',         '^equity:operator:ln:[A-Z]+$',      -1, false, true);
reset role;

alter table lightning_nodes
  -- from then on what the node has is in the books
  add column part_since     timestamptz,
  -- up to then, by the node's clock, what it has forwarded was read; and what it has earned by that since
  add column forwarded_ns   bigint,
  add column forwarded_msat numeric(24) not null default 0,
  -- up to this block the transactions of its wallet are booked, and what closing channels has cost
  add column wallet_height  integer not null default 0,
  add column closed_height  integer not null default 0;

-- Invoices that the node lists, that were made while this database was not compared with it, and that it does not know: of a copy that was put back.
create table lightning_unknown_invoices (
  payment_hash    text collate "C" primary key check (payment_hash ~ '^[0-9a-f]{64}$'),
  node            text not null,
  added_at        timestamptz not null,
  -- null: it may still be paid
  paid_msat       numeric(24),
  -- an operator has seen it
  acknowledged_at timestamptz
);
create index lightning_unknown_invoices_open on lightning_unknown_invoices (payment_hash) where paid_msat is null;
