-- What the node had was its channels and its wallet since 0012.
alter table lightning_nodes rename column in_channels to at_node;
-- Which database, on which timeline, its invoices were compared with last: a standby that takes over may lack the last ones.
alter table lightning_nodes add column compared_in text;
-- An operator has paid it himself, with what is his.
alter table lightning_sent add column is_operators boolean not null default false;
