-- Whether the node that is read announces blocks and transactions (ZMQ) and the announcements arrive, as of the last sign of life.
alter table node_conditions add column pushes boolean not null default false;
