-- A bank file and its entries are written once. What the bank has said of them, and who works on them, is all that the service changes.
revoke update, delete on ach_files, ach_entries from bursar_app;
grant update (state, settles_on, returns_end, is_over, lease_owner, lease_epoch, lease_until, trouble, handed_at, lost) on ach_files to bursar_app;
grant update (returned, returned_at, notice) on ach_entries to bursar_app;
