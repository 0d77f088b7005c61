-- Who may call the API, how they sign in, how often they may call, and what each merchant has set.
create table merchants (
  id            bigint generated always as identity primary key,
  affiliate_id  text not null unique,
  email         text not null,
  business_name text not null,
  created_at    timestamptz not null,
  suspended_at  timestamptz
);

create table users (
  id            bigint generated always as identity primary key,
  merchant_id   bigint not null references merchants,
  username      text not null,
  -- NFKC, case-folded: the form in which names are compared
  username_key  text not null unique,
  password_hash text not null,
  scopes        text[] not null check (scopes <@ array['read', 'payments', 'payouts']),
  created_at    timestamptz not null,
  seal          bytea,
  seal_version  bigint not null default 0
);
create index users_merchant on users (merchant_id);

create table merchant_settings (
  merchant_id           bigint primary key references merchants,
  tolerance_bps         integer not null default 100 check (tolerance_bps between 0 and 500),
  late_payments         text not null default 'accept' check (late_payments in ('accept', 'review')),
  -- as the merchant sent it last; empty = off, every destination is allowed
  payout_allow_list     text[] not null default '{}',
  -- A loosening takes effect at `_from`; until then only what `_old` holds is allowed. An empty `_old` allows nothing then: a list that is
  -- off cannot be loosened.
  payout_allow_list_old text[] not null default '{}',
  payout_allow_list_from timestamptz,
  -- cents; null = no payout waits for approval. `_old` and `_from` as above
  payout_approval_above      units check (payout_approval_above >= 0),
  payout_approval_above_old  units check (payout_approval_above_old >= 0),
  payout_approval_above_from timestamptz,
  seal                  bytea,
  seal_version          bigint not null default 0,
  check (payout_approval_above_from is null or payout_approval_above_old is not null)
);

-- A sign-in is one family of tokens (behaviour §2). Only the newest refresh token and the one before it matter: an older one that still
-- verifies was used before. No token is stored, only SHA-256 of the identifiers inside.
create table sign_ins (
  id                text collate "C" primary key,
  user_id           bigint not null references users,
  created_at        timestamptz not null,
  -- when the newest refresh token ends: the row can be deleted after that
  expires_at        timestamptz not null,
  revoked_at        timestamptz,
  revoked_because   text check (revoked_because in ('signed_out', 'refresh_token_reused', 'credentials_changed')),
  refresh_hash      bytea not null,
  access_hash       bytea not null,
  -- a token of the newest pair has been presented, so its receiver has it
  presented         boolean not null default false,
  -- the refresh token before the newest, when it was first used, and the newest pair sealed under it (only its holder can open that)
  previous_hash     bytea,
  consumed_at       timestamptz,
  sealed_pair       bytea,
  -- whether the newest pair was handed out a second time, and in how many rotations in a row that happened
  handed_out_again  boolean not null default false,
  graces_in_a_row   smallint not null default 0 check (graces_in_a_row between 0 and 2),
  seal              bytea,
  check ((revoked_at is null) = (revoked_because is null)),
  check ((previous_hash is null) = (consumed_at is null) and (previous_hash is null) = (sealed_pair is null))
) with (fillfactor = 70);
create index sign_ins_user on sign_ins (user_id);

-- The public halves of the keys that sign tokens. Each API process makes its own pair and keeps the private half in its memory only; all
-- processes on this database accept what any of them signed.
create table signing_keys (
  kid           text collate "C" primary key check (kid ~ '^[A-Za-z0-9_-]{16}$'),
  public_key    text not null,
  created_at    timestamptz not null,
  -- by then everything that it signed has expired
  useless_after timestamptz not null,
  seal          bytea
);
create index signing_keys_useless on signing_keys (useless_after);

-- Rows by which somebody signs in, or by which a payout is let through, carry a seal (HMAC) of a key that is in no database: whoever can write
-- here cannot make one. A change of a user or of settings takes a number that is never taken again, and is sealed with it, so that an older row
-- that is put back shows; the service's role cannot remove a later number.
create table seal_versions (
  subject text collate "C" not null,
  version bigint not null check (version > 0),
  primary key (subject, version)
);
revoke update, delete on seal_versions from bursar_app;

-- API processes remember sign-ins and merchants; these triggers tell them at commit which one they must read again.
create function announce_sign_in() returns trigger language plpgsql as
$$ begin perform pg_notify('sign_in_changed', 's:' || new.id); return null; end $$;
create trigger announce after update of revoked_at on sign_ins
  for each row when (old.revoked_at is distinct from new.revoked_at) execute function announce_sign_in();
create function announce_merchant() returns trigger language plpgsql as
$$ begin perform pg_notify('sign_in_changed', 'm:' || new.id); return null; end $$;
create trigger announce after update of suspended_at on merchants
  for each row when (old.suspended_at is distinct from new.suspended_at) execute function announce_merchant();

-- Failed sign-ins, by the hash of address and username. They are here even while one server runs alone, because a restart must not forget
-- them.
create table failed_sign_ins (
  key      bytea primary key check (octet_length(key) = 32),
  failures integer not null,
  -- end of the window, which began with the first failure
  ends_at  timestamptz not null
) with (fillfactor = 70);
create index failed_sign_ins_ends on failed_sign_ins (ends_at);

-- Token buckets, one row for each limit and caller, while several servers count together; a server that is alone counts in its memory. It
-- holds a minute's calls, so a crash of the database may empty it (unlogged).
create unlogged table call_counts (
  bucket   text collate "C" primary key,
  capacity double precision not null check (capacity >= 1),
  -- tokens that come back in a millisecond
  per_ms   double precision not null check (per_ms > 0),
  -- what was left at at_ms, in milliseconds of the service's clock
  tokens   double precision not null check (tokens >= 0),
  at_ms    double precision not null,
  -- what the last statement wanted and what it got: it reads its answer from its own row
  wanted   integer not null,
  granted  integer not null
) with (fillfactor = 50);

-- One row for each answer that an idempotency key stands for, written in the database transaction of its effect.
create table idempotency_keys (
  merchant_id bigint not null references merchants,
  -- the path without /v1
  operation   text collate "C" not null,
  key         text collate "C" not null,
  -- sha256 of the canonical body without access_token and idempotency_key
  body_hash   bytea not null,
  http_status smallint not null,
  -- byte for byte
  answer      text not null,
  created_at  timestamptz not null,
  -- null = kept for ever (a late retry of a payout must not pay twice)
  expires_at  timestamptz,
  primary key (merchant_id, operation, key)
);
create index idempotency_keys_expiry on idempotency_keys (expires_at) where expires_at is not null;
