-- Payouts to bank accounts. They are paid in dollars out of one balance in another currency; the files that tell the bank what to pay are stored
-- here, byte for byte, before the bank gets them, and each entry of a file belongs to one payout for ever.
create table ach_files (
  -- <yyyy-mm-dd>-<modifier>: its name in the folder too
  name        text collate "C" primary key,
  -- the day on which it was made, in New York, and the letter or digit that makes it different from others of that day
  day         date not null,
  modifier    text not null check (modifier ~ '^[A-Z0-9]$'),
  bytes       bytea not null,
  sha256      bytea not null unique,
  -- the credits of its control record, in cents
  credits     units not null,
  -- built: stored; uploading: the bank may have it; unknown: our last connection has ended and the bank must say; acked: it has it; refused: it
  -- will not execute it; over: the days in which it returns entries have ended
  state       text not null check (state in ('built', 'uploading', 'unknown', 'acked', 'refused', 'over')),
  -- when its entries arrive, and until when the bank may send them back
  settles_on  date not null,
  returns_end timestamptz not null,
  -- the bank has said itself that those days have ended
  is_over     boolean not null default false,
  lease_owner text,
  lease_epoch bigint not null default 0,
  lease_until timestamptz,
  trouble     text,
  created_at  timestamptz not null,
  handed_at   timestamptz,
  -- what it paid to nobody whom this database knows: only of one that was booked after the database had forgotten it
  lost        units not null default 0 check (lost >= 0),
  unique (day, modifier)
);
create index ach_files_open on ach_files (created_at) where state in ('built', 'uploading', 'unknown', 'acked');

create table ach_entries (
  -- its last seven digits begin again when they are used up: an entry is found by its file as well
  trace       text collate "C" check (trace ~ '^[0-9]{15}$'),
  file        text collate "C" not null references ach_files,
  payout_id   text collate "C" not null unique references payouts,
  cents       units not null check (cents > 0),
  -- why the bank has sent it back
  returned    text,
  returned_at timestamptz,
  -- what the bank asks to be changed for the next one (NOC)
  notice      text,
  primary key (trace, file)
);
create index ach_entries_file on ach_entries (file);
-- the last seven digits of a trace number
create sequence ach_trace maxvalue 9999999;

-- When a driver last began to read what the bank says and finished it, and what it could not book then (for /readyz): one row.
create table bank_reads (
  one_row   boolean primary key default true check (one_row),
  begun_at  timestamptz not null,
  set_aside text[] not null default '{}'
);

-- A bank file and its entries are written once. What the bank has said of them, and who works on them, is all that the service changes.
revoke update, delete on ach_files, ach_entries from bursar_app;
grant update (state, settles_on, returns_end, is_over, lease_owner, lease_epoch, lease_until, trouble, handed_at, lost) on ach_files to bursar_app;
grant update (returned, returned_at, notice) on ach_entries to bursar_app;
