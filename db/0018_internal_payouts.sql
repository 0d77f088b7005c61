-- A payout to the address of another merchant's transaction here: an entry pays it, and nothing leaves.
alter table payouts add column internal_to text collate "C" references transactions;
-- The payout that is this payment. It is in no block; it counts as if it were in the first one, which is as final as can be, and no coin of it
-- can be spent.
alter table payments add column paid_by text collate "C" unique references payouts;
