-- From when on it counts that the second reading cannot go on: what a node answers for a moment stops nothing.
alter table chain_reconciled add column trouble_counts_from timestamptz;
update chain_reconciled set trouble_counts_from = updated_at where trouble is not null;
