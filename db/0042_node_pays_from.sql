-- Since when a Lightning node has been the one that pays; null: since before another one did, or since before this was kept. What was asked of the other is not
-- its to deny.
alter table lightning_nodes add column pays_from timestamptz;
