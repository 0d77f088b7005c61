-- Since when the node had been running that was last asked for a payment, by our clock: one that was started since may have been put back to an older state.
-- Null: none was asked, or it was not known.
alter table lightning_payments add column node_started_at timestamptz;
