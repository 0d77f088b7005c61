-- What each price source last said of itself: a network without any must be told as such also before there was ever a price.
create table rate_sources (
  source     text primary key,
  state      text not null check (state in ('answers', 'silent', 'unreachable')),
  reason     text check (reason is null or length(reason) <= 300),
  since      timestamptz not null,
  checked_at timestamptz not null
);
