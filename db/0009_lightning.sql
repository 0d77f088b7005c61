-- Payments and payouts over Lightning. What our node holds in its channels is an account of its own (0003); the rest of the books does not differ
-- from what came on chain.

-- Every invoice that our node was asked for. The row is committed before the node is asked, with the preimage: the same call again cannot make
-- a second invoice, and what was made for a transaction that was never written is found and cancelled.
create table lightning_invoices (
  payment_hash    text collate "C" primary key check (payment_hash ~ '^[0-9a-f]{64}$'),
  -- sealed where the installation has a key for that
  preimage        bytea not null,
  -- the transaction that it is for; it is written only once the node has the invoice
  transaction_id  text collate "C" not null unique,
  merchant_id     bigint not null,
  -- the idempotency key of the call that asked for it, and the hash of that call's body: the call repeated gets the same invoice
  key             text,
  body_hash       bytea,
  amount_msat     numeric(24) not null check (amount_msat > 0),
  usd_minor       bigint not null check (usd_minor > 0),
  -- the quote, as transactions have it
  rate            numeric not null check (rate > 0),
  rate_at         timestamptz not null,
  rate_sources    jsonb not null,
  -- reserved: no transaction is written for it yet; open: its transaction waits for payment; closed: the node cannot be paid by it any more;
  -- settled: it is paid
  state           text not null check (state in ('reserved', 'open', 'closed', 'settled')),
  created_at      timestamptz not null,
  window_ends_at  timestamptz not null,
  paid_msat       numeric(24) check (paid_msat >= amount_msat),
  settled_at      timestamptz,
  settle_index    bigint,
  check ((state = 'settled') = (paid_msat is not null)),
  check ((state = 'settled') = (settled_at is not null))
);
create unique index lightning_invoices_key on lightning_invoices (merchant_id, key) where key is not null and state = 'reserved';
create index lightning_invoices_waiting on lightning_invoices (window_ends_at) where state in ('reserved', 'open');

-- The nodes that invoices were made by and payouts paid by, and how far their settlements and payments were read. With another public key it
-- is another node.
create table lightning_nodes (
  identity     text primary key,
  settle_index bigint not null default 0 check (settle_index >= 0),
  seen_at      timestamptz not null,
  -- up to this invoice of the node everything was compared with the books, and when
  compared_index bigint not null default 0,
  compared_at    timestamptz,
  -- when the payer was last able to ask it
  pays_at timestamptz,
  -- the highest payment index that it ever had; a lower one later means that it was restored from an older state
  payment_index bigint not null default 0,
  -- up to this payment everything has ended and was compared; what it had paid before we knew it is its operator's business
  payments_compared bigint,
  restored_at timestamptz
);

-- The payment of each payout that leaves over Lightning: committed before the node is asked to pay, and only what the node says ends it.
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
  -- an operator has seen that a node which was restored has forgotten that it made this payment
  forgotten_at timestamptz,
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
