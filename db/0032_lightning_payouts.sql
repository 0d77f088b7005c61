-- Payouts over Lightning. The invoice is frozen with the request; the attempt is committed before the node is asked to pay, and only what the
-- node says ends it.
set role bursar_ledger;
-- what our node has set out to pay, with the highest fee
insert into ledger.account_kind values ('asset_lightning_outbound', '^asset:ln:[A-Z]+:outbound$', 1, false, false);
reset role;

alter table payouts
  -- the invoice that is paid (BOLT11), its payment hash, and when it expires; `destination` is what was sent
  add column payment_request    text,
  add column payment_hash       text collate "C" check (payment_hash ~ '^[0-9a-f]{64}$'),
  add column invoice_expires_at timestamptz,
  add constraint payouts_lightning_check check (
    (payment_request is null) = (payment_hash is null) and (payment_request is null) = (invoice_expires_at is null)
    and (method <> 'lightning' or payment_hash is not null));
-- a payment hash is paid once
create unique index payouts_payment_hash on payouts (payment_hash) where payment_hash is not null and status <> 'failed';

-- The payment of each payout that leaves over Lightning.
create table lightning_payments (
  payout_id    text collate "C" primary key references payouts,
  payment_hash text collate "C" not null,
  -- waiting: the node was not asked yet; sent: it may have been; paid and failed: its last word; closed: ended
  -- without it, by an operator's word or an entry here
  state        text not null check (state in ('waiting', 'sent', 'paid', 'failed', 'closed')),
  -- the public key of the node that pays it, for ever
  node         text,
  lease_owner  text,
  lease_epoch  bigint not null default 0,
  lease_until  timestamptz,
  -- when it is looked at again
  due_at       timestamptz,
  -- a request to pay may still arrive at the node until then; null: each was answered
  unanswered_until timestamptz,
  sends        integer not null default 0,
  -- its place among all payments of the node, as soon as the node has said it
  payment_index bigint,
  -- the node was restored from an older state since it was asked: what it does not know, or calls failed, may have been paid
  doubted      boolean not null default false,
  preimage     bytea check (sha256(preimage) = decode(payment_hash, 'hex')),
  fee_msat     numeric(24) check (fee_msat >= 0),
  trouble      text,
  created_at   timestamptz not null,
  check ((state in ('sent', 'paid')) <= (node is not null)),
  check ((state = 'paid') = (preimage is not null) and (state = 'paid') = (fee_msat is not null))
);
create index lightning_payments_open on lightning_payments (due_at) where state in ('waiting', 'sent');
create index lightning_payments_hash on lightning_payments (payment_hash);
grant select on lightning_payments to bursar_signer;

-- What the node lists as paid or being paid, whoever asked for it.
create table lightning_sent (
  node            text not null,
  payment_index   bigint not null,
  payment_hash    text collate "C" not null,
  state           text not null check (state in ('in_flight', 'succeeded')),
  amount_msat     numeric(24) not null,
  fee_msat        numeric(24) not null,
  seen_at         timestamptz not null,
  -- an operator has booked what no payout here has asked for
  acknowledged_at timestamptz,
  primary key (node, payment_index)
);
create index lightning_sent_hash on lightning_sent (payment_hash);

alter table lightning_nodes
  -- when the payer was last able to ask it
  add column pays_at timestamptz,
  -- the highest payment index that it ever had; a lower one later means that it was restored from an older state
  add column payment_index bigint not null default 0,
  -- up to this payment everything has ended and was compared; what it had paid before we knew it is its operator's business
  add column payments_compared bigint,
  add column restored_at timestamptz;
