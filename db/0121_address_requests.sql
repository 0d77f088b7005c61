-- Address indexes are given out by the signer alone. Whoever needs some asks with a row of a fresh random id, which no older copy of the
-- database can hold an answer for; the signer answers from its own journal, which it has on disk before it answers.
create table address_requests (
  id              text collate "C" primary key,
  currency        text not null,
  size            integer not null check (size between 1 and 100000),
  asked_at        timestamptz not null default now(),
  -- when it was last said that somebody still waits
  renewed_at      timestamptz not null default now(),
  -- the answer: the key, and the first of `size` indexes
  account_xpub_id bigint references account_xpubs,
  first_index     bigint,
  check ((account_xpub_id is null) = (first_index is null))
);
create index address_requests_open on address_requests (asked_at) where first_index is null;

-- Where the indexes of a key begin in this database; below it this database has given nothing.
alter table account_xpubs add column start_index bigint not null default 0 check (start_index between 0 and 2147483648);

-- Which journal of a signer has last given out indexes for this database, and its count of changes: a journal that has counted less is an
-- older copy, a database that has is one.
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
