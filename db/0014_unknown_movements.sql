-- Money that has left without this database knowing why: found where coins are compared with the chain after a start. While something stands here
-- unresolved nothing new is signed.
create table unknown_movements (
  id          bigint generated always as identity primary key,
  currency    text not null,
  -- the transaction that moved it; null where a coin is spent and nobody has found by what
  txid        text collate "C",
  -- the block that held it when it was found; null = none did
  block_hash  text,
  finding     text not null,
  seen_at     timestamptz not null,
  resolved_at timestamptz,
  resolved_by text,
  -- what was booked for it, in words
  resolution  text
);
create unique index unknown_movements_open on unknown_movements (currency, coalesce(txid, finding)) where resolved_at is null;

-- Up to which block everything that our coins did was known, and when that was found by PostgreSQL's own clock: what it says from before the
-- server was started may be of a copy that was put back.
create table coin_checks (
  currency   text primary key,
  height     integer not null,
  checked_at timestamptz not null
);

-- What a transaction paid to others than its payouts: only of one that was booked after the database had forgotten it.
alter table outgoing_attempts add column lost units not null default 0 check (lost >= 0);

-- Inputs of a batch that is dead which nothing has spent: another batch may spend them. The row stays, since the batch's transactions name it.
alter table outgoing_inputs add column freed boolean not null default false;
alter table outgoing_inputs drop constraint outgoing_inputs_pkey;
alter table outgoing_inputs add primary key (currency, txid, vout, batch_id);
create unique index outgoing_inputs_bound on outgoing_inputs (currency, txid, vout) where not freed;
