-- Blocks of Ethereum's chain that pay to us by one node's word where several are configured. Nothing large is booked of them; of what another
-- node denies nothing is recorded.
create table unconfirmed_blocks (
  currency text not null,
  height   integer not null,
  hash     text not null,
  -- another node does not show what this is about; false: none could say yet
  denied   boolean not null,
  reason   text not null,
  -- what it is about
  scripts  bytea[] not null,
  since    timestamptz not null,
  primary key (currency, height, denied)
);
