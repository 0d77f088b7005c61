-- Streams of events (server-sent events): what wakes them, and how they know that no event is missing.

-- a stream goes on from one event to the next of its merchant, in the order of their numbers
create index events_merchant on events (merchant_id, id);

-- Numbers are drawn in one order and committed in another. Whoever writes events holds this lock from before it draws the first number until
-- it ends, so a missing number below a known one is dead for good once those who held the lock then have ended.
create function hold_event_numbers() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('event writers', 0));
  return null;
end $$;
create trigger hold_numbers before insert on events for each statement execute function hold_event_numbers();

-- Whose events which API process streams now. A notification is a lock at commit, so only events of these merchants send one. A process
-- prolongs its rows; what one that was killed leaves is deleted by the next that adds one.
create table event_streams (
  merchant_id bigint not null references merchants,
  process     text not null,
  until       timestamptz not null,
  primary key (merchant_id, process)
);

-- as in 0019, and wakes the streams
create or replace function deliver_events() returns trigger language plpgsql as $$
begin
  insert into deliveries (webhook, event_id, due_at)
    select w.number, e.id, '-infinity'
      from added e cross join lateral (
        select number from webhooks where merchant_id = e.merchant_id and enabled and (events is null or e.type = any (events)) offset 0) w;
  if found then perform pg_notify('hurry', 'deliveries'); end if;
  if exists (select from added e join event_streams s using (merchant_id)) then perform pg_notify('events_written', ''); end if;
  return null;
end $$;
