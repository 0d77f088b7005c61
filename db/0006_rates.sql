-- The last good median of each currency, and its history: the rate of a payment's arrival is looked up here.
create table rates (
  currency   text primary key,
  usd        numeric not null check (usd > 0 and usd < 'infinity'),
  -- when the reading began that it came from
  at         timestamptz not null,
  -- [{source, usd, at}] of the sources that counted
  sources    jsonb not null,
  -- [{source, reason}] of the last reading, and when that began: later than `at` when it found no quorum
  left_out   jsonb not null,
  checked_at timestamptz not null
);
-- every change, and else one row a minute; after two days one row a minute, after 90 days none
create table rate_history (
  currency text not null,
  at       timestamptz not null,
  usd      numeric not null check (usd > 0 and usd < 'infinity'),
  primary key (currency, at)
);
