-- What the judge must look at now because facts changed. Marks are only added and taken away, one row each, so whoever marks never waits for
-- whoever decides: a watcher does not touch rows of transactions at all.
create table due_marks (
  id             bigint generated always as identity primary key,
  transaction_id text collate "C" not null
);
create index due_marks_transaction on due_marks (transaction_id);
insert into due_marks (transaction_id) select id from transactions where due_at = '-infinity';

-- The key of a transaction never changes and none is ever removed; the audit asks whether every payment has its own. Checking it at each insert
-- made a watcher wait for whoever holds that row.
alter table payments drop constraint payments_transaction_id_fkey;

-- Whose payments fall due: one row of the index for each transaction, however many payments it has.
drop index payments_due;
create index payments_due on payments (currency, due_height, transaction_id) where due_height is not null;
drop index payments_due_at;
create index payments_due_at on payments (currency, due_at, transaction_id) where due_at is not null;
