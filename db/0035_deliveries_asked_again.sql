-- How often a delivery was asked for again while it waited: what was sent before that does not end it.
alter table deliveries add column asked int not null default 0;
