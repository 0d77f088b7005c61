-- Whether a payment is part of what pays the price, as the last verdict had it: what expand shows as `counted`.
alter table payments add column counted boolean not null default false;
update payments p
   set counted = p.state in ('mempool', 'mined') and p.currency = t.currency
                 and (p.credited > 0 or (p.on_time_minor > 0 and t.status in ('pending', 'confirmed')))
  from transactions t where t.id = p.transaction_id;
