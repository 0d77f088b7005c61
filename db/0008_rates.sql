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
  checked_at timestamptz not null
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
