-- Since when a node counts each of its channels, by our clock: from its own start, or from when the channel was opened.
alter table lightning_channels add column counted_from timestamptz;
-- Since when a node that pays has been running, by our clock, and when that was first seen: whatever was asked of it before may be older than its state.
alter table lightning_nodes add column started_at timestamptz;
alter table lightning_nodes add column started_seen_at timestamptz;
