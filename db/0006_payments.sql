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
  part_key     text collate "C" unique,
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
  -- a batch spends it
  spent           boolean not null default false,
  -- The payout that is this payment (0007 makes it a foreign key). It is in no block; it counts as if it were in the first one, which is as
  -- final as can be, and no batch can spend it.
  paid_by         text collate "C" unique,
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
-- booked and not spent yet: what batches choose from
create index payments_spendable on payments (currency, height) where part_key is not null and not spent and height is not null;
-- the largest of them, for how many inputs an amount needs
create index payments_largest on payments (currency, amount desc) where part_key is not null and not spent and height is not null;
-- on Ethereum's chain and not final yet: the watcher looks for them whenever the chain's final block moves
create index payments_unfinalized on payments (currency, height)
  where lock is null and state = 'mined' and currency in ('ETH', 'USDT');

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
create table conflicting_transactions (
  currency text not null,
  txid     text collate "C" not null,
  -- null while it is only in the mempool
  height   integer,
  primary key (currency, txid)
);
create index conflicting_transactions_unmined on conflicting_transactions (currency) where height is null;
create index conflicting_transactions_height on conflicting_transactions (currency, height) where height is not null;

-- Outputs that were at an address of ours before its transaction was created, in a block that was read or a mempool that was seen. The
-- address was given out before, so they are nobody's payment: recorded once, never counted, never booked, named by the audit.
create table early_payments (
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
  constraint early_payments_accepted check (accepted_at is null or (accepted_by is not null and acknowledged_at is not null))
);
create index early_payments_open on early_payments (currency) where acknowledged_at is null;

-- Outputs at a script of ours which our key does not control on their chain: a witness program where there is no segwit. They are recorded
-- so that an operator is told once, and have no other effect: no payment, no entry, no change of the transaction.
create table unprotected_payments (
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
create index unprotected_payments_transaction on unprotected_payments (transaction_id, currency);
create index unprotected_payments_untold on unprotected_payments (currency) where told_at is null;
create index unprotected_payments_seen on unprotected_payments (seen_at);

-- What a verdict has decided of payments whose rows are not written yet. A price may be paid in thousands of outputs, and the merchant may
-- accept thousands at once: that is one decision, with one entry in the ledger and one change of status, in one database transaction. But
-- to write all their rows in it would lock them for seconds, and watchers write these rows too. So what was decided is kept here by the
-- same database transaction, locks no payment, and is written to the rows afterwards, some at a time, before anything else is decided.
create table payment_decisions (
  transaction_id text collate "C" not null,
  payment_id     bigint not null,
  decided_at     timestamptz not null,
  classified     boolean not null,
  -- as in payments
  present        boolean not null,
  on_time_minor  numeric not null,
  value_rate     numeric(24,8),
  judged_block_hash text,
  generation     integer not null,
  credited       numeric not null,
  suspended      numeric not null,
  fee            numeric not null,
  in_available   numeric not null,
  in_suspense    numeric not null,
  in_refund      numeric not null,
  sent_back      numeric not null,
  owed           numeric not null,
  owed_fee       numeric not null,
  was_lost       boolean not null,
  part_key    text collate "C",
  due_height     integer,
  counted        boolean not null,
  due_at         timestamptz,
  primary key (transaction_id, payment_id),
  -- what payments would refuse must be refused where it is decided
  check (least(on_time_minor, credited, suspended, fee, in_available, in_suspense, in_refund, sent_back, owed, owed_fee) >= 0),
  check (coalesce(value_rate > 0, true))
);

-- Payments as they were decided last. The judge's columns are read here and not in payments, except by the judge, which writes all of them
-- before it decides again.
create view decided_payments as
  select p.id, p.transaction_id, p.currency, p.txid, p.vout, p.amount, p.coinbase, p.twin_key, p.state, p.lock, p.height, p.block_hash, p.block_time,
         p.seen_at, p.caught_up_at, p.found_mined, p.gone_since, p.last_height, p.conflict_txid,
         case when d.classified then coalesce(p.noticed_at, d.decided_at) when d.payment_id is null then p.noticed_at end as noticed_at,
         case when d.payment_id is null then p.present else d.present end as present,
         case when d.payment_id is null then p.on_time_minor else d.on_time_minor end as on_time_minor,
         case when d.payment_id is null then p.value_rate else d.value_rate end as value_rate,
         case when d.payment_id is null then p.judged_block_hash else d.judged_block_hash end as judged_block_hash,
         case when d.payment_id is null then p.generation else d.generation end as generation,
         case when d.payment_id is null then p.credited else d.credited end as credited,
         case when d.payment_id is null then p.suspended else d.suspended end as suspended,
         case when d.payment_id is null then p.fee else d.fee end as fee,
         case when d.payment_id is null then p.in_available else d.in_available end as in_available,
         case when d.payment_id is null then p.in_suspense else d.in_suspense end as in_suspense,
         case when d.payment_id is null then p.in_refund else d.in_refund end as in_refund,
         case when d.payment_id is null then p.sent_back else d.sent_back end as sent_back,
         case when d.payment_id is null then p.owed else d.owed end as owed,
         case when d.payment_id is null then p.owed_fee else d.owed_fee end as owed_fee,
         case when d.payment_id is null then p.was_lost else d.was_lost end as was_lost,
         case when d.payment_id is null then p.part_key else d.part_key end as part_key,
         case when d.payment_id is null then p.due_height else d.due_height end as due_height,
         case when d.payment_id is null then p.counted else d.counted end as counted,
         case when d.payment_id is null then p.due_at else d.due_at end as due_at,
         p.spent, p.paid_by
    from payments p left join payment_decisions d on d.transaction_id = p.transaction_id and d.payment_id = p.id;
