-- Outputs of forgotten transactions on a chain that were booked as paid to nobody known. asked: the payout to the same script that waits, or waited, for a
-- person because of it.
create table lost_outputs (
  currency text not null,
  txid     text collate "C" not null,
  vout     integer not null,
  script   bytea not null,
  amount   units not null check (amount > 0),
  asked    text collate "C" unique references payouts,
  primary key (currency, txid, vout)
);
create index lost_outputs_script on lost_outputs (currency, script) where asked is null;
revoke update, delete on lost_outputs from bursar_app;
grant update (asked) on lost_outputs to bursar_app;
