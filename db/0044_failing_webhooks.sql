-- Endpoints that fail are shown, attempts are forgotten wherever they lie, and one notification wakes all who wait for events.

-- the last attempts of an endpoint, and its oldest. Rows are not in the order of their time where the service's clock was set
create index delivery_attempts_webhook on delivery_attempts (webhook, at, id);

-- As in 0030, but with one notification: it names who is woken. One that wakes two costs a commit no more than one that wakes one.
create or replace function deliver_events() returns trigger language plpgsql as $$
declare
  woken text;
begin
  insert into deliveries (webhook, event_id, due_at)
    select w.number, e.id, '-infinity'
      from added e cross join lateral (
        select number from webhooks where merchant_id = e.merchant_id and enabled and (events is null or e.type = any (events)) offset 0) w;
  woken := concat_ws(',', case when found then 'deliveries' end,
                          case when exists (select from added e join event_streams s using (merchant_id)) then 'streams' end);
  if woken <> '' then perform pg_notify('hurry', woken); end if;
  return null;
end $$;
