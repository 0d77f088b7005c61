-- How far each chain was read, the best chain's headers as we saw them, and what the node last said of itself.
create table chain_cursors (
  currency      text primary key,
  height        integer not null,
  hash          text not null,
  -- all that the node knew at this time has been read: the chain's own clock for timers
  caught_up_at  timestamptz not null,
  -- counts changes; every write compares and sets it, so that of two watchers one loses and reads again
  epoch         bigint not null default 0,
  -- up to here every output was looked up among all addresses, also the old ones
  deep_height   integer not null,
  updated_at    timestamptz not null
);

create table blocks (
  currency text not null,
  height   integer not null,
  hash     text not null,
  previous text not null,
  time     timestamptz not null,
  primary key (currency, height)
);

create table node_conditions (
  currency   text primary key,
  state      text not null,
  reason     text,
  height     integer,
  hash       text,
  checked_at timestamptz not null
);
