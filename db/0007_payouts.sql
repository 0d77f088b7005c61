-- Payouts: what merchants have asked for, what goes back to customers, and the transactions on a chain that pay them. A payout's hold is in the
-- ledger before anything is done for it; what leaves is in `outgoing_attempts`, raw bytes and id, before it is sent; nothing here is ever deleted
-- but a reservation of inputs that no signature was made for.

-- Payouts that are paid by one transaction on a chain. All transactions ever signed for a batch spend at least one common input and pay the
-- same outputs, so only one of them can ever be mined.
create table outgoing_batches (
  -- random: an id that a restored copy of the database gives again would be another batch for the signer
  id            text collate "C" primary key,
  currency      text not null,
  -- reserved: its payouts and inputs are fixed; signed: has an attempt; mined: one of them is in a block; final: at final depth; dead: none can
  -- be mined any more
  state         text not null check (state in ('reserved', 'signed', 'mined', 'final', 'dead')),
  -- minor units per 1,000 virtual bytes that the next attempt pays; on Ethereum's chain the most that a unit of gas may cost, in wei
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
  created_at    timestamptz not null,
  -- on Ethereum's chain: what its first transaction offers besides fee_rate, and the most gas it may use
  tip           units check (tip > 0),
  gas_limit     integer check (gas_limit > 0),
  -- Payments in ether and tokens move from the addresses of their transactions to the address that payouts leave from. sweep: from the address
  -- of its input to that one; top_up: ether for gas to an address of ours. Such a batch has no payouts.
  purpose       text not null default 'payout' check (purpose in ('payout', 'sweep', 'top_up')),
  -- the output script of whom a sweep or a top-up pays; null of payouts
  target        bytea,
  constraint outgoing_batches_target_check check ((purpose = 'payout') = (target is null))
);
create index outgoing_batches_due on outgoing_batches (due_at) where due_at is not null;
create index outgoing_batches_target on outgoing_batches (target) where purpose = 'top_up';

create table payouts (
  id             text collate "C" primary key,
  merchant_id    bigint not null,
  -- a reimbursement is a row that no merchant sees among the payouts; its `amount` is all that it takes, the network fee included, and its hold
  -- is in `refund_payable`
  method         text not null check (method in ('lightning', 'bitcoin', 'ach', 'usdt', 'reimbursement')),
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
  batch_id       text collate "C" references outgoing_batches,
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
  -- the transaction whose payments go back; null for a payout
  reimburses     text collate "C" references transactions,
  -- `whole`: everything of the currency; `excess`: what was in suspense
  part           text check (part in ('whole', 'excess')),
  -- the judge has drawn the consequences of its end
  noted          boolean not null default false,
  -- ach: the balance it is paid from and what it took of that; `currency` is USD, `amount` what the account gets, `fee_max` the fee
  source_currency text,
  source_amount  units check (source_amount > 0),
  -- what came back into that balance when it was cancelled, refused or returned
  given_back     units check (given_back >= 0),
  -- a person has said how it ended: nothing else here proves it
  resolved       boolean not null default false,
  -- to the address of another merchant's transaction here: an entry pays it, and nothing leaves
  internal_to    text collate "C" references transactions,
  -- lightning: the invoice that is paid (BOLT11), frozen with the request, its payment hash, and when it expires; `destination` is what was sent
  payment_request text,
  payment_hash   text collate "C" check (payment_hash ~ '^[0-9a-f]{64}$'),
  invoice_expires_at timestamptz,
  -- A payout above its merchant's limit leaves with an operator's approval that the key of an API has signed: `approved_at` alone can be written
  -- by whoever has the database's password.
  approval_key   text,
  approval       bytea,
  check ((status in ('completed', 'failed')) = (step = 'ended')),
  check ((status = 'failed') = (error is not null)),
  check ((status = 'pending') <= (step = 'held')),
  check ((method = 'ach') = (source_currency is not null)),
  check ((source_currency is null) = (source_amount is null)),
  check (given_back is null or (method = 'ach' and status = 'failed')),
  constraint payouts_reimbursement_check check ((method = 'reimbursement') = (reimburses is not null) and (reimburses is null) = (part is null)),
  constraint payouts_lightning_check check (
    (payment_request is null) = (payment_hash is null) and (payment_request is null) = (invoice_expires_at is null)
    and (method <> 'lightning' or payment_hash is not null))
);
-- lists go through them backwards; one serves status, method and both. They leave reimbursements out.
create index payouts_merchant on payouts (merchant_id, created_at, id) where reimburses is null;
create index payouts_kind on payouts (merchant_id, status, method, created_at, id) where reimburses is null;
create index payouts_waiting on payouts (created_at) where step in ('held', 'queued');
-- an automatic payout is made only when the one before has ended
create unique index payouts_automatic_open on payouts (merchant_id, method) where automatic and step <> 'ended';
create index payouts_automatic on payouts (merchant_id, created_at) where automatic;
-- what a merchant's waiting payouts hold
create index payouts_held on payouts (merchant_id) where step = 'held';
create index payouts_batch on payouts (batch_id) where batch_id is not null;
create index payouts_reimbursing on payouts (reimburses, created_at, id) where reimburses is not null;
create index payouts_unnoted on payouts (reimburses) where reimburses is not null and not noted;
-- one reimbursement of a transaction at a time
create unique index payouts_reimbursing_open on payouts (reimburses) where reimburses is not null and step <> 'ended';
-- a payment hash is paid once
create unique index payouts_payment_hash on payouts (payment_hash) where payment_hash is not null and status <> 'failed';
-- what a merchant has on its way over Lightning is counted before each payout
create index payouts_under_way on payouts (merchant_id, step) where payment_hash is not null and step in ('queued', 'batched');

-- payments are there before payouts (0006)
alter table payments add foreign key (paid_by) references payouts;

-- What a reimbursement took of each payment, and from where.
create table reimbursement_shares (
  payout_id      text collate "C" not null references payouts,
  payment_id     bigint not null,
  from_available units not null check (from_available >= 0),
  from_suspense  units not null check (from_suspense >= 0),
  primary key (payout_id, payment_id),
  check (from_available + from_suspense > 0)
);

-- The outputs that a batch spends: an outpoint belongs to one batch that is not dead. On Ethereum's chain sender and nonce of a transaction stand
-- in the place of an input, so that all transactions of a batch spend the same one.
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
  -- The batch is dead and nothing has spent it: another batch may. The row stays, since the batch's transactions name it.
  freed         boolean not null default false,
  primary key (currency, txid, vout, batch_id)
);
create unique index outgoing_inputs_bound on outgoing_inputs (currency, txid, vout) where not freed;
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
  -- On Ethereum's chain the most that its gas may cost; what it has cost is gas_paid, once a block holds it.
  fee           units not null check (fee >= 0),
  -- on Ethereum's chain the most gas
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
  -- What it paid to others than its payouts: only of one that was booked after the database had forgotten it. Below zero where it spent outputs
  -- of ours that this database never had; then its payouts pay no part of its fee.
  lost          units not null default 0,
  -- what it asks for: the most that a unit of gas may cost, in wei. Null on other chains
  max_fee       units check (max_fee > 0),
  -- how it ended, as the block that holds it shows: paid, failed (it changed nothing but its nonce), or unclear (it says that it did something else)
  result        text check (result in ('paid', 'failed', 'unclear')),
  -- what its gas has cost, in wei
  gas_paid      units check (gas_paid >= 0),
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

-- Addresses of our own (chain 1 of the signer's accounts): change, and the service's own capital. One of them may hold ether and a token.
create table own_addresses (
  account_xpub_id bigint not null references account_xpubs,
  address_index   bigint not null,
  currency        text not null,
  script          bytea not null,
  made_in         xid8 not null default pg_current_xact_id(),
  primary key (account_xpub_id, address_index, currency),
  constraint own_addresses_script_key unique (script, currency)
);
create index own_addresses_made on own_addresses (made_in);

-- Outputs at our own addresses, as the chain shows them.
create table own_outputs (
  currency   text not null,
  txid       text collate "C" not null,
  vout       integer not null,
  amount     units not null check (amount > 0),
  script     bytea not null,
  height     integer,
  block_hash text,
  -- change of one of our transactions is booked with it; anything else is capital, booked at final depth
  booked     boolean not null default false,
  spent      boolean not null default false,
  primary key (currency, txid, vout),
  constraint own_outputs_script_fkey foreign key (script, currency) references own_addresses (script, currency)
);
create index own_outputs_height on own_outputs (currency, height) where height is not null;
create index own_outputs_unbooked on own_outputs (currency) where not booked;
-- as payments_largest
create index own_outputs_largest on own_outputs (currency, amount desc) where booked and not spent and height is not null;

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

-- Money that has left without this database knowing why: found where our outputs are compared with the chain after a start. While something
-- stands here unresolved nothing new is signed.
create table unknown_movements (
  id          bigint generated always as identity primary key,
  currency    text not null,
  -- the transaction that moved it; null where an output is spent and nobody has found by what
  txid        text collate "C",
  -- the block that held it when it was found; null = none did
  block_hash  text,
  finding     text not null,
  seen_at     timestamptz not null,
  resolved_at timestamptz,
  resolved_by text,
  -- what was booked for it, in words
  resolution  text
);
create unique index unknown_movements_open on unknown_movements (currency, coalesce(txid, finding)) where resolved_at is null;

-- Up to which block (USD: when) everything that our outputs and the bank's files did was known, and when that was found by PostgreSQL's own
-- clock: what it says from before the server was started may be of a copy that was put back.
create table comparisons (
  currency   text primary key,
  height     integer not null,
  checked_at timestamptz not null,
  -- On which timeline of PostgreSQL it was written. A standby that takes over has been running for long, and may lack the last of what was
  -- written: its timeline is another one.
  timeline   text
);

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
  version         bigint not null default 0,
  check (paused_at is null = (paused_reason is null)),
  check (not enabled or (method is not null and destination is not null and threshold is not null and usable_at is not null))
);
create index payout_settings_on on payout_settings (usable_at) where enabled and paused_at is null;

-- Every change of a merchant's automatic payouts takes a number that is never taken again and is signed with them. Whoever puts an older row back
-- puts back an older number: the service's role cannot remove a later one.
create table payout_settings_versions (
  merchant_id bigint not null references merchants,
  version     bigint not null check (version > 0),
  primary key (merchant_id, version)
);
revoke update, delete on payout_settings_versions from bursar_app;

-- What our nodes say a transaction costs now.
create table fee_rates (
  currency     text primary key,
  -- minor units per 1,000 virtual bytes
  fee_rate     bigint not null check (fee_rate > 0),
  asked_at     timestamptz not null,
  -- why the payouts that are next do not leave, as the worker that has looked last says it; null while nothing stands against them
  payouts_wait text
);

-- What a payout was requested with never changes: the service's sessions may only move it on. A column that a later file adds and that changes
-- needs a grant of its own.
revoke update, delete on payouts, outgoing_attempts, outgoing_shares, reimbursement_shares from bursar_app;
grant update (status, step, held_reason, approved_at, approved_by, approval_key, approval, batch_id, batch_position, fee, given_back, error,
              completed_at, sequence, noted, resolved)
  on payouts to bursar_app;
grant update (sent_at, height, block_hash, result, gas_paid) on outgoing_attempts to bursar_app;
-- the amount and script of an output are what the chain shows
revoke update on outgoing_inputs, own_outputs from bursar_app;
-- made_in: a worker that starts resets marks of another cluster
grant update (spent_by, spent_height, freed, made_in) on outgoing_inputs to bursar_app;
grant update (height, block_hash, booked, spent) on own_outputs to bursar_app;

-- What the signer's sessions may read here. It signs nonces in their order; which of them blocks have used without it is in the inputs.
grant select on payouts, outgoing_batches, outgoing_attempts, outgoing_shares, outgoing_inputs to bursar_signer;
