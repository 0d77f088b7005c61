-- The last good median of each currency, and its history: the rate of a payment's arrival is looked up here.
create table rates (
  currency text primary key,
  usd      numeric not null check (usd > 0),
  at       timestamptz not null,
  sources  jsonb not null
);
create table rate_history (
  currency text not null,
  at       timestamptz not null,
  usd      numeric not null check (usd > 0),
  primary key (currency, at)
);
