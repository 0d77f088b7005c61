-- A malleated twin is found by what it has in common with the payment, not among all payments of its transaction: there may be thousands.
create index payments_twin on payments (twin_key);
