-- Who may call: merchants, their users, and what each merchant has set.
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
  created_at    timestamptz not null
);
create index users_merchant on users (merchant_id);

create table merchant_settings (
  merchant_id           bigint primary key references merchants,
  tolerance_bps         integer not null default 100 check (tolerance_bps between 0 and 500),
  late_payments         text not null default 'accept' check (late_payments in ('accept', 'review')),
  -- what was sent last; empty = off, every destination is allowed
  payout_allow_list     text[] not null default '{}',
  -- when the list was loosened: what alone is allowed until payout_allow_list_from. Empty means nothing then: a list that is off cannot
  -- be loosened
  payout_allow_list_old text[] not null default '{}',
  payout_allow_list_from timestamptz,
  -- cents; null = no payout waits for approval. The same pair for a loosening that waits
  payout_approval_above      units check (payout_approval_above >= 0),
  payout_approval_above_old  units check (payout_approval_above_old >= 0),
  payout_approval_above_from timestamptz,
  check (payout_approval_above_from is null or payout_approval_above_old is not null)
);
