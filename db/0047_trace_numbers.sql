-- The seven digits of a trace number begin again when they are used up: an entry is found by its file as well.
alter table ach_entries drop constraint ach_entries_pkey, add primary key (trace, file);
