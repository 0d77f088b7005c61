-- Why the payouts that are next in a currency do not leave, as the worker that has looked last says it; null while nothing stands against them.
alter table fee_rates add column payouts_wait text;
