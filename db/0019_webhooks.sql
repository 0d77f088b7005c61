-- Events for merchants' own servers: who wants which, what is still to be delivered, and what became of each attempt.

-- a list takes the newest of each type, so one index has lists of all types and of some in order
create index events_kind on events (merchant_id, type, at, id);

create table webhooks (
  number         bigint generated always as identity primary key,
  id             text collate "C" not null unique,
  merchant_id    bigint not null references merchants,
  url            text not null,
  -- null = every type, also those of later versions
  events         text[],
  -- sealed outside the sandbox, like the former ones: [{"secret": …, "until": ms since 1970}], which sign along until then
  secret         text not null,
  former_secrets jsonb not null default '[]',
  -- false once it has answered 410
  enabled        boolean not null default true,
  created_at     timestamptz not null
);
create index webhooks_merchant on webhooks (merchant_id, created_at, id);

-- What is still to be delivered. A row is written with its event and deleted when the receiver has taken it or the last attempt has failed.
-- No foreign keys: each would lock the row of a webhook with every event. What a removed webhook leaves is deleted in small steps.
create table deliveries (
  webhook  bigint not null,
  event_id bigint not null,
  -- on the service's clock; -infinity = at once
  due_at   timestamptz not null,
  -- attempts that have failed
  failures smallint not null default 0,
  primary key (webhook, event_id)
) with (autovacuum_vacuum_scale_factor = 0.01, autovacuum_vacuum_threshold = 1000);
create index deliveries_due on deliveries (webhook, due_at, event_id);

-- Every attempt of the last 30 days.
create table delivery_attempts (
  id       bigint generated always as identity primary key,
  webhook  bigint not null,
  event_id bigint not null,
  at       timestamptz not null,
  took_ms  integer not null,
  -- the receiver's status, or why there is none
  status   smallint,
  error    text,
  -- how its answer begins, at most 1 KiB
  answer   bytea not null,
  check ((status is null) = (error is not null)),
  check (length(answer) <= 1024)
);
create index delivery_attempts_event on delivery_attempts (event_id);

-- Whoever is subscribed when an event is committed gets it: as a trigger, so that no statement that writes events can forget it. Nothing is
-- looked up for merchants without webhooks but that they have none.
create function deliver_events() returns trigger language plpgsql as $$
begin
  insert into deliveries (webhook, event_id, due_at)
    select w.number, e.id, '-infinity'
      from added e cross join lateral (
        select number from webhooks where merchant_id = e.merchant_id and enabled and (events is null or e.type = any (events)) offset 0) w;
  if found then perform pg_notify('hurry', 'deliveries'); end if;
  return null;
end $$;
create trigger deliver after insert on events referencing new table as added for each statement execute function deliver_events();
