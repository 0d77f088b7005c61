-- Up to which block two of a chain's nodes agree: nothing large is booked above it.
alter table node_conditions
  -- The highest block of those that we read that two nodes held, and its hash: what is there now may be another branch. −1: none yet. Null:
  -- only one node is configured.
  add column agreed_height integer,
  add column agreed_hash   text;
