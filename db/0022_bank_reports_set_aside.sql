-- What the last look at the bank's reports could not book, for /readyz.
alter table bank_reads add column set_aside text[] not null default '{}';
