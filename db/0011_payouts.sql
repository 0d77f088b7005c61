-- Payouts: what merchants have asked for, and the transactions on a chain that pay them. A payout's hold is in the ledger before anything is
-- done for it; what leaves is in `outgoing_attempts`, raw bytes and id, before it is sent; nothing here is ever deleted but a reservation of inputs
-- that no signature was made for.
create table payouts (
  id             text collate "C" primary key,
  merchant_id    bigint not null,
  method         text not null check (method in ('lightning', 'bitcoin', 'ach', 'usdt')),
  -- as it was sent; the resolved amount where that was `all`
  amount_text    text not null,
  -- the balance that pays it, and what the destination gets of it, in minor units
  currency       text not null,
  amount         units not null check (amount > 0),
  -- the most that it may cost in network fees: held together with the amount
  fee_max        units not null check (fee_max >= 0),
  -- what it has cost the merchant; null until it is known
  fee            units check (fee >= 0 and fee <= fee_max),
  destination    text not null,
  -- the output script of the destination, for payouts on a chain of Bitcoin's family
  script         bytea,
  status         text not null check (status in ('pending', 'processing', 'completed', 'failed')),
  -- held: waits for `held_reason`; queued: waits for a batch; batched: is in one; ended
  step           text not null check (step in ('held', 'queued', 'batched', 'ended')),
  held_reason    text check (held_reason in ('approval', 'cool_down', 'breaker', 'receivable', 'not_final', 'unknown_outcome')),
  -- cents at the median rate when it was requested; null where there was none
  usd_minor      bigint,
  -- above the merchant's limit when it was requested: what waits for approval still waits when the limit is raised
  needs_approval boolean not null default false,
  approved_at    timestamptz,
  approved_by    text,
  -- requested by the merchant's settings and not by a call
  automatic      boolean not null default false,
  batch_id       text collate "C",
  -- its output in every transaction of the batch
  batch_position integer,
  -- what the API process signed when it took the request: the signer acts on nothing else
  intent_key     text not null,
  intent         bytea not null,
  error          text,
  created_at     timestamptz not null,
  completed_at   timestamptz,
  -- the last event's number
  sequence       integer not null default 1,
  check ((status in ('completed', 'failed')) = (step = 'ended')),
  check ((status = 'failed') = (error is not null)),
  check ((status = 'pending') <= (step = 'held'))
);
-- lists go through them backwards; one serves status, method and both
create index payouts_merchant on payouts (merchant_id, created_at, id);
create index payouts_kind on payouts (merchant_id, status, method, created_at, id);
create index payouts_waiting on payouts (created_at) where step in ('held', 'queued');
-- an automatic payout is made only when the one before has ended
create unique index payouts_automatic_open on payouts (merchant_id, method) where automatic and step <> 'ended';
create index payouts_automatic on payouts (merchant_id, created_at) where automatic;
-- what a merchant's waiting payouts hold
create index payouts_held on payouts (merchant_id) where step = 'held';
create index payouts_batch on payouts (batch_id) where batch_id is not null;

-- Payouts that are paid by one transaction on a chain. All transactions ever signed for a batch spend at least one common input and pay the
-- same outputs, so only one of them can ever be mined.
create table outgoing_batches (
  -- random: an id that a restored copy of the database gives again would be another batch for the signer
  id            text collate "C" primary key,
  currency      text not null,
  -- reserved: its payouts and inputs are fixed; signed: has an attempt; mined: one of them is in a block; final: at final depth; dead: none can
  -- be mined any more
  state         text not null check (state in ('reserved', 'signed', 'mined', 'final', 'dead')),
  -- minor units per 1,000 virtual bytes that the next attempt pays
  fee_rate      bigint not null check (fee_rate > 0),
  -- the index of its change address in the signer's account (chain 1)
  change_index  bigint,
  lease_owner   text,
  lease_epoch   bigint not null default 0,
  lease_until   timestamptz,
  -- when it is looked at again; null = only when the chain shows something new of it
  due_at        timestamptz,
  -- the attempt in a block of the best chain
  mined_attempt bigint,
  trouble       text,
  created_at    timestamptz not null
);
create index outgoing_batches_due on outgoing_batches (due_at) where due_at is not null;
alter table payouts add foreign key (batch_id) references outgoing_batches;

-- The coins that a batch spends: an outpoint belongs to one batch.
create table outgoing_inputs (
  currency      text not null,
  txid          text collate "C" not null,
  vout          integer not null,
  batch_id      text collate "C" not null references outgoing_batches,
  amount        units not null check (amount > 0),
  script        bytea not null,
  -- where its key is: the account, chain 0 (receiving) or 1 (change), the index
  account_xpub_id bigint not null references account_xpubs,
  chain         smallint not null check (chain in (0, 1)),
  address_index bigint not null,
  -- the transaction that spends it in a block of the best chain, and that block's height
  spent_by      text collate "C",
  spent_height  integer,
  made_in       xid8 not null default pg_current_xact_id(),
  primary key (currency, txid, vout)
);
create index outgoing_inputs_batch on outgoing_inputs (batch_id);
create index outgoing_inputs_made on outgoing_inputs (made_in);
create index outgoing_inputs_spent on outgoing_inputs (currency, spent_height) where spent_height is not null;

-- The signed transactions of a batch, in the order of their signatures; stored before they are sent.
create table outgoing_attempts (
  id            bigint generated always as identity primary key,
  batch_id      text collate "C" not null references outgoing_batches,
  number        integer not null,
  currency      text not null,
  txid          text collate "C" not null,
  raw           bytea not null,
  fee           units not null check (fee > 0),
  vbytes        integer not null,
  -- the output that comes back to us; null where there is none
  change_vout   integer,
  change_amount units,
  lease_epoch   bigint not null,
  -- the signer's own number of this signature
  sequence      bigint not null,
  signed_at     timestamptz not null,
  sent_at       timestamptz,
  height        integer,
  block_hash    text,
  unique (batch_id, number),
  unique (currency, txid)
);
create index outgoing_attempts_sequence on outgoing_attempts (sequence);
create index outgoing_attempts_height on outgoing_attempts (currency, height) where height is not null;

-- What each payout pays of an attempt's fee.
create table outgoing_shares (
  attempt_id bigint not null references outgoing_attempts,
  payout_id  text collate "C" not null references payouts,
  vout       integer not null,
  fee        units not null check (fee >= 0),
  primary key (attempt_id, payout_id)
);
create index outgoing_shares_payout on outgoing_shares (payout_id);

-- A payment that a batch spends. The booked ones that none spends yet are what batches choose from.
alter table payments add column spent boolean not null default false;
create index payments_spendable on payments (currency, height) where deposit_key is not null and not spent and height is not null;

-- The view of payments as they were decided last (0009) shows this column too.
create or replace view decided_payments as
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
         case when d.payment_id is null then p.due_at else d.due_at end as due_at,
         p.spent
    from payments p left join payment_decisions d on d.transaction_id = p.transaction_id and d.payment_id = p.id;

-- Addresses of our own (chain 1 of the signer's accounts): change, and the service's own capital.
create table own_addresses (
  account_xpub_id bigint not null references account_xpubs,
  address_index   bigint not null,
  currency        text not null,
  script          bytea not null unique,
  made_in         xid8 not null default pg_current_xact_id(),
  primary key (account_xpub_id, address_index)
);
create index own_addresses_made on own_addresses (made_in);

-- Coins at our own addresses, as the chain shows them.
create table own_coins (
  currency   text not null,
  txid       text collate "C" not null,
  vout       integer not null,
  amount     units not null check (amount > 0),
  script     bytea not null references own_addresses (script),
  height     integer,
  block_hash text,
  -- change of one of our transactions is booked with it; anything else is capital, booked at final depth
  booked     boolean not null default false,
  spent      boolean not null default false,
  primary key (currency, txid, vout)
);
create index own_coins_height on own_coins (currency, height) where height is not null;
create index own_coins_unbooked on own_coins (currency) where not booked;

-- Settings > Payouts: what leaves by itself, one row for a merchant.
create table payout_settings (
  merchant_id     bigint primary key references merchants,
  enabled         boolean not null,
  method          text check (method in ('lightning', 'bitcoin', 'ach', 'usdt')),
  destination     text,
  -- as sent, in the method's unit
  threshold       text,
  leave           text not null default '0',
  source_currency text,
  -- a new or changed destination waits
  usable_at       timestamptz,
  -- when it was last changed: only payouts since then count as failures in a row
  changed_at      timestamptz not null,
  -- requests in a row that were refused for a reason that lasts
  refused         integer not null default 0,
  paused_at       timestamptz,
  paused_reason   text,
  -- what the API process signed when it took the settings: it acts on nothing else
  intent_key      text not null,
  intent          bytea not null,
  check (paused_at is null = (paused_reason is null)),
  check (not enabled or (method is not null and destination is not null and threshold is not null and usable_at is not null))
);
create index payout_settings_on on payout_settings (usable_at) where enabled and paused_at is null;

-- What our nodes say a transaction costs now.
create table fee_rates (
  currency  text primary key,
  -- minor units per 1,000 virtual bytes
  fee_rate  bigint not null check (fee_rate > 0),
  asked_at  timestamptz not null
);

-- What the signer's sessions may do: read what it must check before it signs, and nothing else. The role is made and granted as the others
-- were in 0001_roles.sql.
do $$
begin
  begin
    if not exists (select from pg_roles where rolname = 'bursar_signer') then create role bursar_signer nologin; end if;
  exception when duplicate_object or unique_violation then null; end;
  begin
    execute format('grant bursar_signer to %I', current_user);
  exception when others then raise notice 'bursar_signer not granted to %: %', current_user, sqlerrm; end;
  if not pg_has_role(current_user, 'bursar_signer', 'member') then
    raise exception '% is not a member of role bursar_signer', current_user using errcode = 'insufficient_privilege';
  end if;
end $$;
grant usage on schema public, ledger to bursar_signer;
grant select on payouts, outgoing_batches, outgoing_attempts, outgoing_shares to bursar_signer;
grant select on ledger.entry, ledger.posting, ledger.account to bursar_signer;
