-- When a worker last looked at a chain's node, on the database's own clock: the service's clock may be set (and is, in the sandbox), and a
-- coin at which nobody looks any more is not sold.
alter table node_conditions add column looked_at timestamptz not null default clock_timestamp();
