-- Jobs that are due on the service's clock and run once for all workers: who takes one writes when, and when it was through.
create table schedules (
  name        text primary key,
  every_ms    bigint not null check (every_ms > 0),
  taken_at    timestamptz not null,
  finished_at timestamptz
);
