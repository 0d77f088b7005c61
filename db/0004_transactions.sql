-- Transactions: what a merchant asks a customer to pay, what the judge must look at, and the prices at which they are made.

-- What came first, without asking any clock: a transaction takes a number when it is created, a block when it is read. The numbers only
-- rise, also in a restored copy. The first one is taken here, so that last_value is always below every number that is still to come.
create sequence fact_order;
select nextval('fact_order');

create table transactions (
  id                text collate "C" primary key,
  -- no foreign key: the only insert reads it from merchant_settings, which has one, and no merchant is ever removed
  merchant_id       bigint not null,
  currency          text not null,
  status            text not null check (status in ('started', 'pending', 'confirmed', 'succeeded', 'timedout', 'cancelled', 'declined',
                                                    'review', 'reimbursed', 'settled', 'timedout_checked')),
  usd_minor         bigint not null check (usd_minor > 0),
  -- the quote: what the customer must pay, at which rate, and which exchanges it came from
  amount_due        units not null check (amount_due > 0),
  rate              numeric not null check (rate > 0),
  rate_at           timestamptz not null,
  rate_sources      jsonb not null,
  -- the merchant's settings at creation
  tolerance_bps     integer not null check (tolerance_bps between 0 and 500),
  late_payments     text not null check (late_payments in ('accept', 'review')),
  label             text,
  email             text,
  address           text not null,
  -- the output script that pays it. Scripts of every currency are watched on every UTXO chain, so a payment on the wrong chain is found too
  script            bytea unique,
  address_index     bigint,
  created_at        timestamptz not null,
  window_ends_at    timestamptz not null,
  confirmed_at      timestamptz,
  succeeded_at      timestamptz,
  crypto_received   units not null default 0 check (crypto_received >= 0),
  -- `confirmations` is counted from this height: that of the youngest payment that counts; null while one of them is unconfirmed or there is
  -- none
  confirmed_from_height integer,
  confirmed_from_currency text,
  merchant_decision text not null default 'none' check (merchant_decision in ('none', 'cancelled', 'refused', 'accepted')),
  review_cause      text check (review_cause in ('late', 'loss', 'other')),
  -- it was declined or cancelled once, so rule 11 never accepts it
  accepted_only_by_hand boolean not null default false,
  -- until when the chain was looked up once more (rule 8)
  looked_up_at      timestamptz,
  lookup_wanted     boolean not null default false,
  -- number of the newest event
  sequence          integer not null default 1,
  -- when, on its chain's own time, the judge must look again; -infinity = at once
  due_at            timestamptz,
  -- in which database transaction it was created. A watcher reads again what was created by those that were still open at its last look, so
  -- the order of commits hides no transaction from it.
  made_in           xid8 not null default pg_current_xact_id(),
  made_order        bigint not null default nextval('fact_order')
);
-- a list reads it backwards; new rows come at its end, which keeps its pages full
create index transactions_merchant on transactions (merchant_id, created_at, id);
-- One index for lists by status, by currency and by both: a list by one of them takes the newest of each of the few values of the other.
create index transactions_kind on transactions (merchant_id, status, currency, created_at, id);
-- the label comes first, for operators who know nothing else of a transaction
create index transactions_label on transactions (label, merchant_id, created_at, id) where label is not null;
create index transactions_due on transactions (currency, due_at) where due_at is not null;
create index transactions_lookup on transactions (currency) where lookup_wanted;
create index transactions_made_in on transactions (made_in);

-- What the judge must look at now because facts changed. A mark is a row of its own that is added and deleted, never updated, so a watcher
-- that marks never waits for the judge and never touches a transaction's row.
create table due_marks (
  id             bigint generated always as identity primary key,
  transaction_id text collate "C" not null
);
create index due_marks_transaction on due_marks (transaction_id);

-- Transactions that the judge could not decide. Each rests for a time that grows with every failure, whichever worker tries, so that it
-- delays no other one. The first decision that succeeds deletes the row.
create table set_aside (
  transaction_id text collate "C" primary key,
  failures       integer not null check (failures > 0),
  -- what the last failure said
  reason         text not null,
  -- time of the first and of the last failure, on the service's clock
  since          timestamptz not null,
  failed_at      timestamptz not null,
  -- on the database's own clock, which nobody sets
  rests_until    timestamptz not null
);

-- When our own clock was set, and how far, for each chain whose waiting times were set along: the times of a transaction that was made before it
-- differ from those of its history by that. Its place in the order of facts says which were. The first row stands for everything before
-- the first setting.
create table clock_settings (
  at_order bigint primary key default nextval('fact_order'),
  currency text not null,
  by_ms    bigint not null,
  set_at   timestamptz not null default clock_timestamp()
);
insert into clock_settings (currency, by_ms) values ('*', 0);

-- Prices of the currencies in US dollars: the last good median, its history, and what each price source last did.
create table rates (
  currency   text primary key,
  usd        numeric not null check (usd > 0 and usd < 'infinity'),
  -- when the reading that it came from began
  at         timestamptz not null,
  -- [{source, usd, at}] of the sources that counted
  sources    jsonb not null,
  -- [{source, reason}] of the last reading, and when that began: later than `at` when it found no quorum
  left_out   jsonb not null,
  checked_at timestamptz not null,
  -- by a key outside the database (HMAC-SHA-256 over currency, price and time): whoever can write here cannot make a payout worth more in
  -- another currency
  seal       bytea check (octet_length(seal) = 32)
);

-- The rate at which a payment arrived is looked up here. It has every change, and otherwise one row a minute; after two days it keeps one row
-- a minute, after 90 days none.
create table rate_history (
  currency text not null,
  at       timestamptz not null,
  usd      numeric not null check (usd > 0 and usd < 'infinity'),
  primary key (currency, at)
);

-- A source has a row before it ever gave a price, so that a network without any source can be reported.
create table rate_sources (
  source     text primary key,
  state      text not null check (state in ('answers', 'silent', 'unreachable')),
  reason     text check (reason is null or length(reason) <= 300),
  since      timestamptz not null,
  checked_at timestamptz not null
);
