-- What of the looks at the node's channels and wallet (held_at) was followed by a reading of its payments to the end: what is missing since may be one of them.
alter table lightning_nodes add column listed_for timestamptz;
