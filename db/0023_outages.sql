-- Whether the node was not usable at some time since the chain was last read to its end: that time does not count towards the ten minutes
-- and the 72 hours for which a payment must be gone.
alter table node_conditions add column outage boolean not null default false;
