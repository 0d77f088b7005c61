-- What the chain watchers need to miss nothing: in which database transaction a row was made (rows made by transactions that were still
-- open at the last look are read again, so that the order of commits cannot hide one), and the rivals of conflicted payments.
alter table transactions add column made_in xid8 not null default pg_current_xact_id();
create index transactions_made_in on transactions (made_in);
alter table payment_inputs add column made_in xid8 not null default pg_current_xact_id();
create index payment_inputs_made_in on payment_inputs (made_in);

-- Transactions that spend what a payment of ours spends: where they are now decides whether the payment is conflicted.
create table rivals (
  currency text not null,
  txid     text collate "C" not null,
  -- null while it is only in the mempool
  height   integer,
  primary key (currency, txid)
);
create index rivals_unmined on rivals (currency) where height is null;
create index rivals_height on rivals (currency, height) where height is not null;
create index payments_conflict on payments (currency, conflict_txid) where conflict_txid is not null;
