-- How far each chain was read, what its nodes say, the second reading that the audit compares with the ledger, and the addresses that were given
-- out.
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
  pushes     boolean not null default false,
  -- The highest block of those that we read that two nodes held, and its hash: what is there now may be another branch. Nothing large is
  -- booked above it. −1: none yet. Null: only one node is configured.
  agreed_height integer,
  agreed_hash   text
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
-- The signer looks itself at what stops payouts before it signs a batch for the first time.
grant select on breakers to bursar_signer;

-- Account-level public keys that addresses are derived from. Only the signer gives out their indexes, and no index is ever used twice. One
-- key per currency is in use; the earlier ones stay, because their addresses keep receiving. Each key counts its own indexes: a range is
-- reserved by raising next_index, so there may be gaps, but no reuse.
create table account_xpubs (
  id           bigint generated always as identity primary key,
  currency     text not null,
  -- in the canonical form (xpub, tpub); no two currencies may share a key, or they would share output scripts
  xpub         text not null unique,
  origin       text not null check (origin in ('signer', 'imported')),
  -- where the indexes begin in this database; it has given out none below
  start_index  bigint not null default 0 check (start_index between 0 and 2147483648),
  next_index   bigint not null default 0 check (next_index between 0 and 2147483648),
  created_at   timestamptz not null,
  -- when the signer last confirmed that this key is its own; before that no address is derived from a key of origin 'signer'
  confirmed_at timestamptz,
  -- when another key replaced it; null for the one in use
  retired_at   timestamptz
);
create unique index account_xpubs_in_use on account_xpubs (currency) where retired_at is null;

-- A process requests a range of indexes with a row of a fresh random id, so no older copy of the database can hold an answer to it. The
-- signer writes the range into its own journal, on disk, before it answers.
create table address_requests (
  id              text collate "C" primary key,
  currency        text not null,
  size            integer not null check (size between 1 and 100000),
  asked_at        timestamptz not null default now(),
  -- when the process last confirmed that it still waits
  renewed_at      timestamptz not null default now(),
  -- the answer: the key, and the first of `size` indexes
  account_xpub_id bigint references account_xpubs,
  first_index     bigint,
  check ((account_xpub_id is null) = (first_index is null))
);
create index address_requests_open on address_requests (asked_at) where first_index is null;

-- The journal of the signer that last gave out indexes for this database, and its count of changes. A journal that has counted less is an
-- older copy; where the database has counted less, the database is one.
create table signer_journal (
  one        boolean primary key default true check (one),
  lineage    text not null,
  counter    bigint not null,
  written_at timestamptz not null default now()
);

-- Indexes that this database passes over, and why. database_behind: they were given out, and this database does not know to whom (it was
-- restored, or a failover lost its last writes). journal_lost, journal_behind: the signer's journal was lost, damaged or an older copy.
create table skipped_addresses (
  id              bigint generated always as identity primary key,
  account_xpub_id bigint not null references account_xpubs,
  first_index     bigint not null,
  end_index       bigint not null check (end_index > first_index),
  cause           text not null check (cause in ('database_behind', 'journal_lost', 'journal_behind')),
  noticed_at      timestamptz not null default now()
);
