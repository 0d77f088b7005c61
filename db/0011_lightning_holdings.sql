-- What the node had in its channels at the last look that found nothing on its way out, and what the books had there then. Satoshis.
alter table lightning_nodes
  add column in_channels  numeric(24),
  add column booked_there numeric(24),
  add column held_at      timestamptz;
