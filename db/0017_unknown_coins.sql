-- A transaction that was booked after the database had forgotten it may have spent coins of ours that this database never had: they are found,
-- and less than nothing is lost. Then its payouts pay no part of its fee.
alter table outgoing_attempts drop constraint outgoing_attempts_lost_check;
alter table outgoing_attempts drop constraint outgoing_attempts_fee_check;
alter table outgoing_attempts add constraint outgoing_attempts_fee_check check (fee >= 0);
