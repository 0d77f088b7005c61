-- What several servers count together. While a server is alone it counts in its own memory and nothing is here.

-- Token buckets of calls, one row for each limit and caller. A crash of the database empties it: it holds a minute's calls.
create unlogged table call_counts (
  bucket   text collate "C" primary key,
  capacity double precision not null check (capacity >= 1),
  -- how much comes back in a millisecond
  per_ms   double precision not null check (per_ms > 0),
  -- what was left at at_ms, milliseconds of the service's clock
  tokens   double precision not null check (tokens >= 0),
  at_ms    double precision not null,
  -- the last asking, which is answered from the row
  wanted   integer not null,
  granted  integer not null
) with (fillfactor = 50);

-- Failed sign-ins, by the hash of place and username, of a server that is alone too: a restart must not forget them.
create table failed_sign_ins (
  key      bytea primary key check (octet_length(key) = 32),
  failures integer not null,
  -- of the window that the first of them opened
  ends_at  timestamptz not null
) with (fillfactor = 70);
create index failed_sign_ins_ends on failed_sign_ins (ends_at);
