-- Every change of a merchant's automatic payouts takes a number that is never taken again and is signed with them. Whoever puts an older row back
-- puts back an older number: the service's role cannot remove a later one.
create table payout_settings_versions (
  merchant_id bigint not null references merchants,
  version     bigint not null check (version > 0),
  primary key (merchant_id, version)
);
revoke update, delete on payout_settings_versions from bursar_app;
alter table payout_settings add column version bigint not null default 0;
