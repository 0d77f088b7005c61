-- Transactions that the judge could not decide: each rests for a while that grows with every failure, whichever worker looks, so that it delays
-- no other one. The row goes with the first decision that succeeds.
create table set_aside (
  transaction_id text collate "C" primary key,
  failures       integer not null check (failures > 0),
  -- what the last failure said
  reason         text not null,
  -- of the first and of the last failure, on the service's clock
  since          timestamptz not null,
  failed_at      timestamptz not null,
  -- on the database's own clock, which nobody moves
  rests_until    timestamptz not null
);
