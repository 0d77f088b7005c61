-- The rate at which a payment is valued instead of the value, so that sums are compared without rounding; and when a payment that is nowhere
-- is lost, on the clock of its own chain.
alter table payments add column value_rate numeric(24, 8) check (value_rate > 0);
update payments set value_rate = round(value_usd_minor * 1000000 / amount, 8) where value_usd_minor > 0;
alter table payments drop column value_usd_minor;

alter table payments add column due_at timestamptz;
create index payments_due_at on payments (currency, due_at) where due_at is not null;
-- looked at once more, so that the timers of payments that are gone are written
update transactions set due_at = '-infinity' where id in (select transaction_id from payments where state = 'gone');
