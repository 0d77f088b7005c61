-- Beside a block that nobody could confirm: how much contracts have sent in it to addresses of ours, by node (`node script wei`). A node may not
-- know any more later what it has shown once.
alter table unconfirmed_blocks add column words text[] not null default '{}';
