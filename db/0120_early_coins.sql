-- What came first, without asking any clock: blocks take a number when they are read, transactions when they are made. The numbers only rise,
-- also in a restored copy. Rows of before have none: they are older than all that have one.
create sequence fact_order;
select nextval('fact_order');
alter table transactions add column made_order bigint;
alter table transactions alter column made_order set default nextval('fact_order');
alter table blocks add column read_order bigint;
alter table blocks alter column read_order set default nextval('fact_order');

-- Coins that lay at an address of ours before its transaction was made, in a block that was read or a mempool that was seen: the address was
-- given out before, and they are nobody's payment. Noted once, never counted, never booked, told by the audit.
create table early_coins (
  currency        text not null,
  txid            text collate "C" not null,
  vout            integer not null,
  transaction_id  text collate "C" not null references transactions,
  amount          units not null check (amount > 0),
  -- of the block in which it was found; null = in the mempool
  height          integer,
  noted_at        timestamptz not null,
  -- an operator has looked at it
  acknowledged_at timestamptz,
  acknowledged_by text,
  primary key (currency, txid, vout)
);
create index early_coins_open on early_coins (currency) where acknowledged_at is null;
