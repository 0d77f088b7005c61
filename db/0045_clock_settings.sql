-- When our own clock was set, and how far, for each chain whose waiting times were set along: the times of a transaction that was made before it
-- differ from those of its history by that. Its place in the order of facts says which were. The first row stands for everything before
-- this table.
create table clock_settings (
  at_order bigint primary key default nextval('fact_order'),
  currency text not null,
  by_ms    bigint not null,
  set_at   timestamptz not null default clock_timestamp()
);
insert into clock_settings (currency, by_ms) values ('*', 0);
grant select, insert on clock_settings to bursar_app;
