-- What our addresses on Ethereum's chain hold, as a node says it, beside what is known here to have come and gone up to the same block.
create table address_balances (
  currency    text not null,
  script      bytea not null,
  height      integer not null,
  -- below zero where more is known to have gone than came
  known       numeric(78) not null,
  found       units not null check (found >= 0),
  compared_at timestamptz not null,
  primary key (currency, script)
);
grant select, insert, update, delete on address_balances to bursar_app;
