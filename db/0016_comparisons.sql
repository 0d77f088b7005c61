-- On which timeline of PostgreSQL a comparison was written. A standby that takes over has been running for long, and may lack the last of what
-- was written: its timeline is another one.
alter table coin_checks add column timeline text;

-- What a bank file paid to nobody whom this database knows: only of one that was booked after the database had forgotten it.
alter table ach_files add column lost units not null default 0 check (lost >= 0);
-- A person has said how it ended: nothing else here proves it.
alter table payouts add column resolved boolean not null default false;
