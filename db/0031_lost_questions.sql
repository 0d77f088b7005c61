-- The payouts about which a person is asked, or was, because of what was booked as paid to nobody known: an output of a transaction (place: its number),
-- or an entry of a bank file (currency: USD; txid: the file's name; place: the trace number). One payout was not enough: it may be smaller than what was paid.
create table lost_questions (
  payout_id text collate "C" primary key references payouts,
  currency  text not null,
  txid      text collate "C" not null,
  place     text collate "C" not null
);
create index lost_questions_place on lost_questions (currency, txid, place);
insert into lost_questions (payout_id, currency, txid, place)
  select asked, currency, txid, vout::text from lost_outputs where asked is not null
  union all select asked, 'USD', file, trace from lost_ach_entries where asked is not null;
drop index lost_outputs_script;
alter table lost_outputs drop column asked;
alter table lost_ach_entries drop column asked;
create index lost_outputs_script on lost_outputs (currency, script);
revoke update on lost_questions from bursar_app;
