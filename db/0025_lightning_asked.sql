-- When the node was last to be asked for a payment: only long after that it looks for no route any more. Null: it was not, or before this column was there.
alter table lightning_payments add column asked_at timestamptz;
