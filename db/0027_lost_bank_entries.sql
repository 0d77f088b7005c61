-- The entries of forgotten bank files that were booked as paid to nobody known. reference: what names the payout in it; asked: the payout to the same
-- account that waits, or waited, for a person because of it; paid: the one that it turned out to have paid; returned: what the bank sent it back with.
create table lost_ach_entries (
  file text collate "C" not null references ach_files,
  trace text collate "C" not null,
  reference text collate "C" not null,
  cents units not null check (cents > 0),
  asked text collate "C" unique references payouts,
  paid text collate "C" unique references payouts,
  returned text,
  primary key (trace, file)
);
revoke update, delete on lost_ach_entries from bursar_app;
grant update (asked, paid, returned) on lost_ach_entries to bursar_app;
