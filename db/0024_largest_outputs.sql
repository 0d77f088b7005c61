-- The largest outputs that can be spent, for how many inputs an amount needs.
create index payments_largest on payments (currency, amount desc) where part_key is not null and not spent and height is not null;
create index own_outputs_largest on own_outputs (currency, amount desc) where booked and not spent and height is not null;
