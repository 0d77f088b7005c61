-- Account keys, and which address indexes were given out. Only the signer gives out indexes; no index is ever used twice.

-- Account-level public keys that addresses are derived from. One per currency is in use; the earlier ones stay, because their addresses
-- keep receiving. Each key counts its own indexes: a range is reserved by raising next_index, so there may be gaps, but no reuse.
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
