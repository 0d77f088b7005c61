-- The lowest height at which the cursor stood since the chain was last read to its end, where that is lower than now: time below the height
-- where a payment was last seen does not count towards the ten minutes and the 72 hours for which it must be gone.
alter table chain_cursors add column low_height integer;
