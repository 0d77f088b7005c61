-- Payments: outputs that were seen on a chain for a transaction, what the judge derived from each, and outputs that are no payments.
create table payments (
  id              bigint generated always as identity primary key,
  -- No foreign key: checking it would make a watcher wait for whoever holds that row. No transaction is ever removed, and the audit asks
  -- whether every payment has its own.
  transaction_id  text collate "C" not null,
  -- of the chain on which it was seen, which may not be the transaction's
  currency        text not null,
  txid            text collate "C" not null,
  vout            integer not null,
  amount          units not null check (amount > 0),
  coinbase        boolean not null default false,
  -- sha256 over the inputs and the outputs to us: a malleated twin has the same
  twin_key        bytea not null,

  -- what the watchers saw
  state           text not null check (state in ('mempool', 'mined', 'gone', 'conflicted')),
  lock            text check (lock in ('instantsend', 'chainlock')),
  height          integer,
  block_hash      text,
  block_time      timestamptz,
  -- the earliest time at which an observer saw it, and the time up to which our watcher had read the chain then
  seen_at         timestamptz not null,
  caught_up_at    timestamptz not null,
  -- first found in a block and not in the mempool
  found_mined     boolean not null,
  gone_since      timestamptz,
  -- where it was mined before it was gone
  last_height     integer,
  -- the other transaction that spends the same outpoint, while it is conflicted
  conflict_txid   text collate "C",

  -- what the judge derived. When it was classified as on time or late; null = not yet
  noticed_at      timestamptz,
  -- the rules have taken note that it is there
  present         boolean not null default false,
  -- part of what pays the price, as the last verdict had it; `expand` shows it as `counted`
  counted         boolean not null default false,
  on_time_minor   units not null default 0 check (on_time_minor >= 0 and on_time_minor <= amount),
  -- the rate at which it is valued. The rate and not a value in cents, so that sums are compared without rounding
  value_rate      numeric(24, 8) check (value_rate > 0),
  -- the block in which the judge last saw it while it was booked
  judged_block_hash text,
  -- how often it was lost
  generation      integer not null default 0,
  was_lost        boolean not null default false,
  -- key of its part in the ledger that is not reversed (ledger.part); null = not booked
  deposit_key     text collate "C" unique,
  -- how its deposit was split, …
  credited        units not null default 0 check (credited >= 0),
  suspended       units not null default 0 check (suspended >= 0),
  fee             units not null default 0 check (fee >= 0),
  -- … where its units are now, …
  in_available    units not null default 0 check (in_available >= 0),
  in_suspense     units not null default 0 check (in_suspense >= 0),
  in_refund       units not null default 0 check (in_refund >= 0),
  sent_back       units not null default 0 check (sent_back >= 0),
  -- … and what its loss took from the merchant and from the fee, until it is back or replaced
  owed            units not null default 0 check (owed >= 0),
  owed_fee        units not null default 0 check (owed_fee >= 0),
  -- the next height and the next time, on its own chain's clock, at which something can change for it
  due_height      integer,
  due_at          timestamptz,
  check ((state = 'mined') = (height is not null)),
  unique (currency, txid, vout)
);
create index payments_transaction on payments (transaction_id);
create index payments_twin on payments (twin_key);
create index payments_unmined on payments (currency) where state in ('mempool', 'gone');
create index payments_height on payments (currency, height) where height is not null;
create index payments_conflict on payments (currency, conflict_txid) where conflict_txid is not null;
-- they end in the transaction, so that finding whose payments are due reads a transaction of very many payments once
create index payments_due on payments (currency, due_height, transaction_id) where due_height is not null;
create index payments_due_at on payments (currency, due_at, transaction_id) where due_at is not null;

-- The outpoints that each payment spends, to notice replacements and double spends.
create table payment_inputs (
  currency   text not null,
  prev_txid  text collate "C" not null,
  prev_vout  integer not null,
  txid       text collate "C" not null,
  -- as transactions.made_in
  made_in    xid8 not null default pg_current_xact_id(),
  primary key (currency, prev_txid, prev_vout, txid)
);
create index payment_inputs_txid on payment_inputs (currency, txid);
create index payment_inputs_made_in on payment_inputs (made_in);

-- Transactions of the chain that spend an outpoint which a payment of ours spends too: where they are decides whether the payment is
-- conflicted.
create table rivals (
  currency text not null,
  txid     text collate "C" not null,
  -- null while it is only in the mempool
  height   integer,
  primary key (currency, txid)
);
create index rivals_unmined on rivals (currency) where height is null;
create index rivals_height on rivals (currency, height) where height is not null;

-- Outputs that were at an address of ours before its transaction was created, in a block that was read or a mempool that was seen. The
-- address was given out before, so they are nobody's payment: recorded once, never counted, never booked, named by the audit.
create table early_coins (
  currency        text not null,
  txid            text collate "C" not null,
  vout            integer not null,
  transaction_id  text collate "C" not null references transactions,
  amount          units not null check (amount > 0),
  -- of the block in which it was found; null = in the mempool
  height          integer,
  noted_at        timestamptz not null,
  -- an operator has looked at it: the audit no longer names it
  acknowledged_at timestamptz,
  acknowledged_by text,
  -- an operator has decided that it is a payment all the same: it is recorded as one when it is read the next time
  accepted_at     timestamptz,
  accepted_by     text,
  primary key (currency, txid, vout),
  constraint early_coins_accepted check (accepted_at is null or (accepted_by is not null and acknowledged_at is not null))
);
create index early_coins_open on early_coins (currency) where acknowledged_at is null;

-- Outputs at a script of ours which our key does not control on their chain: a witness program where there is no segwit. They are recorded
-- so that an operator is told once, and have no other effect: no payment, no entry, no change of the transaction.
create table unprotected_coins (
  currency       text not null,
  txid           text collate "C" not null,
  vout           integer not null,
  transaction_id text collate "C" not null references transactions,
  amount         units not null,
  -- null while it was seen in the mempool only
  height         integer,
  seen_at        timestamptz not null,
  -- when the worker's log said so
  told_at        timestamptz,
  primary key (currency, txid, vout)
);
create index unprotected_coins_transaction on unprotected_coins (transaction_id, currency);
create index unprotected_coins_untold on unprotected_coins (currency) where told_at is null;
create index unprotected_coins_seen on unprotected_coins (seen_at);
