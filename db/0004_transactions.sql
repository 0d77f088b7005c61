-- Transactions (what a merchant creates), payments (coins seen on a chain), and the events that are both the history and the outbox.
create table transactions (
  id                text collate "C" primary key,
  -- no foreign key: the only insert takes it from merchant_settings, which has one, and merchants are never removed
  merchant_id       bigint not null,
  currency          text not null,
  status            text not null check (status in ('started', 'pending', 'confirmed', 'succeeded', 'timedout', 'cancelled', 'declined',
                                                    'review', 'reimbursed', 'settled', 'timedout_checked')),
  usd_minor         bigint not null check (usd_minor > 0),
  need              units not null check (need > 0),
  rate              numeric not null check (rate > 0),
  rate_at           timestamptz not null,
  rate_sources      jsonb not null,
  tolerance_bps     integer not null check (tolerance_bps between 0 and 500),
  late_payments     text not null check (late_payments in ('accept', 'review')),
  label             text,
  email             text,
  address           text not null,
  -- the output script that pays it; of every UTXO chain, so that a coin sent on the wrong one is found too
  script            bytea unique,
  address_index     bigint,
  created_at        timestamptz not null,
  window_ends_at    timestamptz not null,
  confirmed_at      timestamptz,
  succeeded_at      timestamptz,
  crypto_received   units not null default 0 check (crypto_received >= 0),
  -- height from which `confirmations` is counted: that of the youngest payment that counts; null while one of them is unconfirmed or there is none
  confirmed_from_height integer,
  confirmed_from_currency text,
  -- the merchant's last word on it
  word              text not null default 'none' check (word in ('none', 'cancelled', 'refused', 'accepted')),
  -- why it is in review
  why               text check (why in ('late', 'loss', 'other')),
  -- was declined or cancelled once: never accepted automatically after that
  barred            boolean not null default false,
  -- until when the chain was looked up once more (rule 8)
  looked_up_at      timestamptz,
  lookup_wanted     boolean not null default false,
  -- the last event's number
  sequence          integer not null default 1,
  -- when, on its chain's own time, the judge must look again; -infinity = at once
  due_at            timestamptz
);
-- lists go through it backwards: it grows at its end, which fills its pages
create index transactions_merchant on transactions (merchant_id, created_at, id);
create index transactions_due on transactions (currency, due_at) where due_at is not null;
create index transactions_lookup on transactions (currency) where lookup_wanted;

create table payments (
  id              bigint generated always as identity primary key,
  transaction_id  text collate "C" not null references transactions,
  -- of the chain on which it was seen, which may not be the transaction's
  currency        text not null,
  txid            text collate "C" not null,
  vout            integer not null,
  amount          units not null check (amount > 0),
  coinbase        boolean not null default false,
  -- sha256 over the inputs and the outputs to us: a malleated twin has the same
  twin_key        bytea not null,
  state           text not null check (state in ('mempool', 'mined', 'gone', 'conflicted')),
  lock            text check (lock in ('instantsend', 'chainlock')),
  height          integer,
  block_hash      text,
  block_time      timestamptz,
  -- the earliest time at which an observer saw it, and how far our watcher had caught up when we noticed
  seen_at         timestamptz not null,
  caught_up_at    timestamptz not null,
  -- first found in a block (and not in the mempool)
  found_mined     boolean not null,
  gone_since      timestamptz,
  last_height     integer,
  conflict_txid   text collate "C",
  -- the judge's: null until noticed
  noticed_at      timestamptz,
  -- the rules have been told that it is there
  present         boolean not null default false,
  judged_block_hash text,
  on_time_minor   units not null default 0 check (on_time_minor >= 0 and on_time_minor <= amount),
  value_usd_minor bigint,
  -- where each unit lies in the ledger now
  generation      integer not null default 0,
  credited        units not null default 0 check (credited >= 0),
  suspended       units not null default 0 check (suspended >= 0),
  fee             units not null default 0 check (fee >= 0),
  in_available    units not null default 0 check (in_available >= 0),
  in_suspense     units not null default 0 check (in_suspense >= 0),
  in_refund       units not null default 0 check (in_refund >= 0),
  sent_back       units not null default 0 check (sent_back >= 0),
  owed            units not null default 0 check (owed >= 0),
  owed_fee        units not null default 0 check (owed_fee >= 0),
  was_lost        boolean not null default false,
  -- ledger.entry.key of its deposit entry that is not reversed; null = not booked
  deposit_key     text collate "C" unique,
  -- the next height of its chain at which something changes for it
  due_height      integer,
  check ((state = 'mined') = (height is not null)),
  unique (currency, txid, vout)
);
create index payments_transaction on payments (transaction_id);
create index payments_due on payments (currency, due_height) where due_height is not null;
create index payments_unmined on payments (currency) where state in ('mempool', 'gone');
create index payments_height on payments (currency, height) where height is not null;

-- What each payment spends, to notice replacements and double spends by outpoint.
create table payment_inputs (
  currency   text not null,
  prev_txid  text collate "C" not null,
  prev_vout  integer not null,
  txid       text collate "C" not null,
  primary key (currency, prev_txid, prev_vout, txid)
);
create index payment_inputs_txid on payment_inputs (currency, txid);

-- History and outbox in one: one row for each change of status and each announcement, written in the transaction of the change.
create table events (
  id          bigint generated always as identity primary key,
  -- of the object that the event belongs to, in the same statement
  merchant_id bigint not null,
  object_id   text collate "C" not null,
  sequence    integer not null,
  type        text not null,
  status      text not null,
  previous    text,
  reason      text not null,
  at          timestamptz not null,
  data        jsonb,
  unique (object_id, sequence)
);
create trigger append_only before update or delete on events for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on events for each statement execute function ledger.refuse_change();

-- Account-level public keys that addresses are derived from. One per currency is in use; the earlier ones stay, because their addresses
-- do. `next_index` counts per key: ranges of indexes are reserved by raising it, so gaps are possible, reuse is not.
create table account_xpubs (
  id           bigint generated always as identity primary key,
  currency     text not null,
  -- in the canonical form (xpub, tpub); no two currencies may share a key, or they would share output scripts
  xpub         text not null unique,
  origin       text not null check (origin in ('signer', 'imported')),
  next_index   bigint not null default 0 check (next_index between 0 and 2147483648),
  created_at   timestamptz not null,
  -- when the signer last said that this key is its own; a key of origin 'signer' is not derived from before that
  confirmed_at timestamptz,
  -- when another key took its place; null for the one in use
  retired_at   timestamptz
);
create unique index account_xpubs_in_use on account_xpubs (currency) where retired_at is null;
