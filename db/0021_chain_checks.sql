-- What makes sure that the chain and the books say the same: nodes compared with each other, the coins that a second reading of the chain
-- finds at our addresses, and the breaker that a red audit trips.
alter table node_conditions
  -- which of several nodes is read, and what is wrong with the others
  add column node text,
  add column others text[] not null default '{}',
  -- why they do not tell the same history; stands until they are seen to agree
  add column contested text;

-- How far the chain was read a second time, at final depth, independently of the watchers. Above from_height everything that our
-- addresses received is in chain_receipts.
create table chain_reconciled (
  currency    text primary key,
  from_height integer not null,
  height      integer not null check (height >= from_height),
  hash        text not null,
  updated_at  timestamptz not null
);
-- The newest blocks that the second reading has read itself: where they leave the node's chain, it reads again.
create table chain_reconciled_blocks (
  currency text not null,
  height   integer not null,
  hash     text not null,
  primary key (currency, height)
);
create table chain_receipts (
  currency       text not null,
  txid           text collate "C" not null,
  vout           integer not null,
  height         integer not null,
  block_hash     text not null,
  coinbase       boolean not null,
  transaction_id text collate "C" not null references transactions,
  amount         units not null check (amount > 0),
  primary key (currency, txid, vout)
);
create index chain_receipts_height on chain_receipts (currency, height);

-- A red audit trips it; only an operator's green full audit clears it. While one is open no payout is sent.
create table breakers (
  id         bigint generated always as identity primary key,
  name       text not null check (name in ('payouts')),
  -- ids of the red invariants, and what was found
  tripped_by text[] not null,
  findings   text[] not null,
  tripped_at timestamptz not null,
  -- the last audit that was still red
  seen_at    timestamptz not null,
  cleared_at timestamptz,
  cleared_by text
);
create unique index breakers_open on breakers (name) where cleared_at is null;
