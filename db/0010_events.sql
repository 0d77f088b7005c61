-- Events: the history of every object, merchants' webhooks, what is still to be delivered, and the streams of events (server-sent events).

-- History and outbox in one: a row for each change of status and each announcement, written in the database transaction of the change.
create table events (
  id          bigint generated always as identity primary key,
  -- of the object that the event belongs to, in the same statement
  merchant_id bigint not null,
  object_id   text collate "C" not null,
  sequence    integer not null,
  type        text not null,
  status      text not null,
  previous    text,
  reason      text not null,
  at          timestamptz not null,
  data        jsonb,
  unique (object_id, sequence)
);
-- a list takes the newest of each type, so one index has lists of all types and of some in order
create index events_kind on events (merchant_id, type, at, id);
-- a stream goes on from one event to the next of its merchant, in the order of their numbers
create index events_merchant on events (merchant_id, id);
create trigger append_only before update or delete on events for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on events for each statement execute function ledger.refuse_change();
revoke update, delete on events from bursar_app;

-- Who wants which events on a server of their own.
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
  -- how often it was asked for again while it waited: what was sent before that does not end it
  asked    int not null default 0,
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
-- the last attempts of an endpoint, and its oldest. Rows are not in the order of their time where the service's clock was set
create index delivery_attempts_webhook on delivery_attempts (webhook, at, id);

-- Whose events which API process streams now. A notification is a lock at commit, so only events of these merchants send one. A process
-- prolongs its rows; what one that was killed leaves is deleted by the next that adds one.
create table event_streams (
  merchant_id bigint not null references merchants,
  process     text not null,
  until       timestamptz not null,
  primary key (merchant_id, process)
);

-- Numbers are drawn in one order and committed in another. Whoever writes events holds a lock from before it draws the first number until it
-- ends, so a missing number below a known one is dead for good once those who held the lock then have ended. While such a database transaction is
-- open no stream tells what was written since, of no merchant. So it must end, whoever began it, and must be seen while it does not:
-- * a second lock says since when: everybody sees it in pg_locks, where other sessions' times are hidden from most. Seconds since 2020.
-- * the server ends who does nothing for 20 s in the middle, or is not through after 2 min (PostgreSQL 17 and newer).
create function hold_event_numbers() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('event writers', 0)),
          pg_advisory_xact_lock_shared(hashtext('event writers since'), (extract(epoch from now())::bigint - 1577836800)::integer),
          set_config('idle_in_transaction_session_timeout', '20s', true);
  if current_setting('transaction_timeout', true) is not null then perform set_config('transaction_timeout', '2min', true); end if;
  return null;
end $$;
create trigger hold_numbers before insert on events for each statement execute function hold_event_numbers();

-- Whoever is subscribed when an event is committed gets it: as a trigger, so that no statement that writes events can forget it. Nothing is
-- looked up for merchants without webhooks but that they have none. One notification names who is woken: one that wakes two costs a commit no
-- more than one that wakes one.
create function deliver_events() returns trigger language plpgsql as $$
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
create trigger deliver after insert on events referencing new table as added for each statement execute function deliver_events();
