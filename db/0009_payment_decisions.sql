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
  deposit_key    text collate "C",
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
         case when d.payment_id is null then p.deposit_key else d.deposit_key end as deposit_key,
         case when d.payment_id is null then p.due_height else d.due_height end as due_height,
         case when d.payment_id is null then p.counted else d.counted end as counted,
         case when d.payment_id is null then p.due_at else d.due_at end as due_at
    from payments p left join payment_decisions d on d.transaction_id = p.transaction_id and d.payment_id = p.id;
