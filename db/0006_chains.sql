-- How far each chain was read, what its nodes say, and the second reading that the audit compares with the ledger.
create table chain_cursors (
  currency      text primary key,
  height        integer not null,
  hash          text not null,
  -- everything that the node knew at this time has been read: the chain's own clock, on which timers run
  caught_up_at  timestamptz not null,
  -- The lowest height of the cursor since the chain was last read to its end; null = it has only risen. Time during which the cursor was
  -- below a payment's last height does not count towards the ten minutes and the 72 hours for which the payment must be gone.
  low_height    integer,
  -- counts changes; every write compares and raises it, so that of two watchers one fails and reads again
  epoch         bigint not null default 0,
  -- up to here every output was looked up among all addresses, also those older than 30 days
  deep_height   integer not null,
  updated_at    timestamptz not null
);

-- The best chain's blocks as we read them.
create table blocks (
  currency   text not null,
  height     integer not null,
  hash       text not null,
  previous   text not null,
  time       timestamptz not null,
  -- compared with transactions.made_order
  read_order bigint not null default nextval('fact_order'),
  primary key (currency, height)
);

create table node_conditions (
  currency   text primary key,
  state      text not null,
  reason     text,
  height     integer,
  hash       text,
  checked_at timestamptz not null,
  -- when a worker last looked at the node, on the database's own clock: the service's clock can be set (in the sandbox by its control). A
  -- currency at whose node nobody looks any more is refused.
  looked_at  timestamptz not null default clock_timestamp(),
  -- which of several nodes is read, and what is wrong with the others
  node       text,
  others     text[] not null default '{}',
  -- how the nodes contradict each other; stands until they are seen to agree
  contested  text,
  -- The node was not usable at some time since the chain was last read to its end. That time does not count towards the ten minutes and the
  -- 72 hours for which a payment must be gone.
  outage     boolean not null default false,
  -- the node announces blocks and transactions (ZMQ) and the announcements arrive
  pushes     boolean not null default false
);

-- How far the chain was read a second time, at final depth and independently of the watchers. Everything that our addresses received above
-- from_height is in chain_receipts.
create table chain_reconciled (
  currency    text primary key,
  from_height integer not null,
  height      integer not null check (height >= from_height),
  hash        text not null,
  -- Why the second reading cannot go on although its node answers (it has pruned a block, or an answer is wrong); null while it can. The
  -- audit is red as long as it stands, because nobody knows whether what is not compared agrees.
  trouble     text,
  updated_at  timestamptz not null
);
-- The newest blocks of the second reading. Where they are no longer the node's, it reads again.
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

-- A red audit trips it, and only an operator's green full audit clears it. While one is open no payout is sent.
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
