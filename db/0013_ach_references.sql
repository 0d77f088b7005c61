-- A bank names the payout of an entry that it sends back by the end of its id, in capitals (core/ach/own-file): whatever a bank sends back is
-- looked up by it.
create index payouts_ach_reference on payouts (upper(right(id, 15))) where method = 'ach';
