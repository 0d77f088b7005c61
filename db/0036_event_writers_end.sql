-- While a database transaction that writes events is open no stream tells what was written since, of no merchant. So it must end, whoever
-- began it, and must be seen while it does not.

-- as in 0030, and:
-- * a second lock says since when: everybody sees it in pg_locks, where other sessions' times are hidden from most. Seconds since 2020.
-- * the server ends who does nothing for 20 s in the middle, or is not through after 2 min (PostgreSQL 17 and newer).
create or replace function hold_event_numbers() returns trigger language plpgsql as $$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('event writers', 0)),
          pg_advisory_xact_lock_shared(hashtext('event writers since'), (extract(epoch from now())::bigint - 1577836800)::integer),
          set_config('idle_in_transaction_session_timeout', '20s', true);
  if current_setting('transaction_timeout', true) is not null then perform set_config('transaction_timeout', '2min', true); end if;
  return null;
end $$;
