-- What is gone from an address of ours on Ethereum's chain although no transaction of ours has taken it: a token's issuer has destroyed it, or its
-- contract has kept a part of what was moved there. Below zero where what was written off is there again. It is booked as the service's loss.
create table written_off (
  id         bigint generated always as identity primary key,
  currency   text not null,
  script     bytea not null,
  amount     numeric not null check (amount <> 0 and amount = trunc(amount)),
  -- the block after which nodes were asked, or that holds what was moved
  height     integer not null,
  block_hash text not null,
  -- of what was moved and arrived in part only; null where an operator has said it
  batch_id   text,
  said_by    text not null,
  evidence   text not null,
  at         timestamptz not null
);
create index written_off_script on written_off (currency, script);
create index written_off_batch on written_off (batch_id) where batch_id is not null;
revoke update, delete on written_off from bursar_app;
