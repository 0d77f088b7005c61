-- A database that was put back to an earlier state tells so by itself, as far as that can be.

-- Where this database is. `written` is the database transaction that wrote the row: of a dump that was restored it is another one's, and a copy of
-- the server's files has another place. So no later file of db/ may rewrite this table. It is filled by the first process that starts.
create table database_home (
  one      boolean primary key default true check (one),
  -- made once; every copy has it too
  lineage  text not null,
  cluster  text,
  database text not null,
  timeline text,
  written  xid not null
);

-- After an earlier state was put back, events of objects that were there already are numbered this much higher than they count: the numbers
-- that follow `after_event` may have been told of events that are lost.
create table raised_event_numbers (
  after_event bigint not null,
  added       integer not null check (added > 0),
  primary key (after_event, added)
);

-- An operator has looked at it.
alter table database_replacements add column acknowledged_at timestamptz, add column acknowledged_by text;

revoke delete on database_home from bursar_app;
revoke update, delete on raised_event_numbers from bursar_app;
