-- Payouts to bank accounts. They are paid in dollars out of one balance in coins; the files that tell the bank what to pay are stored here, byte
-- for byte, before the bank gets them, and each entry of a file belongs to one payout for ever.
set role bursar_ledger;
insert into ledger.account_kind values
  -- what our bank holds may be less than nothing here: outside the sandbox nobody books what is paid in
  ('asset_bank',          '^asset:bank:USD$',           1, false, true),
  ('asset_bank_outbound', '^asset:bank:USD:outbound$',  1, false, false);
reset role;

alter table payouts
  -- ach: the balance it is paid from and what it took of that; `currency` is USD, `amount` what the account gets, `fee_max` the fee
  add column source_currency text,
  add column source_amount   units check (source_amount > 0),
  -- what came back into that balance when it was cancelled, refused or returned
  add column given_back      units check (given_back >= 0),
  add check ((method = 'ach') = (source_currency is not null)),
  add check ((source_currency is null) = (source_amount is null)),
  add check (given_back is null or (method = 'ach' and status = 'failed'));

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
  unique (day, modifier)
);
create index ach_files_open on ach_files (created_at) where state in ('built', 'uploading', 'unknown', 'acked');

create table ach_entries (
  trace       text collate "C" primary key check (trace ~ '^[0-9]{15}$'),
  file        text collate "C" not null references ach_files,
  payout_id   text collate "C" not null unique references payouts,
  cents       units not null check (cents > 0),
  -- why the bank has sent it back
  returned    text,
  returned_at timestamptz,
  -- what the bank asks to be changed for the next one (NOC)
  notice      text
);
create index ach_entries_file on ach_entries (file);
-- the last seven digits of a trace number
create sequence ach_trace maxvalue 9999999;
-- When a driver last began a look at bank and files that it has finished: one row.
create table ach_looks (
  one_row   boolean primary key default true check (one_row),
  looked_at timestamptz not null
);
