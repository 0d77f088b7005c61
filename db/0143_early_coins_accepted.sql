-- An operator has decided that an output that was noted as early is a payment all the same: it is recorded when it is read the next time.
alter table early_coins add column accepted_at timestamptz;
alter table early_coins add column accepted_by text;
alter table early_coins add constraint early_coins_accepted check (accepted_at is null or (accepted_by is not null and acknowledged_at is not null));
