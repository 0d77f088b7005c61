-- While a worker looks for deliveries at an interval, it holds a lock, and commits do not tell it: all commits that notify take a lock one after
-- the other, until they are on disk, and wake every session that listens. The worker that ends this waits for whoever writes events then.
-- The lock is taken and given back in one expression, in which nothing can be cancelled: it is the session's, and would otherwise be kept by it.
create or replace function deliver_events() returns trigger language plpgsql as $$
declare
  polled constant bigint := hashtextextended('deliveries polled', 0);
  is_told boolean;
  woken text;
begin
  insert into deliveries (webhook, event_id, due_at)
    select w.number, e.id, '-infinity'
      from added e cross join lateral (
        select number from webhooks where merchant_id = e.merchant_id and enabled and (events is null or e.type = any (events)) offset 0) w;
  is_told := case when found then case when pg_try_advisory_lock_shared(polled) then pg_advisory_unlock_shared(polled) end end;
  woken := concat_ws(',', case when is_told then 'deliveries' end,
                          case when exists (select from added e join event_streams s using (merchant_id)) then 'streams' end);
  if woken <> '' then perform pg_notify('hurry', woken); end if;
  return null;
end $$;
