-- Rows by which somebody signs in, or by which a payout is let through, carry a seal (HMAC) of a key that is in no database: whoever can write here
-- cannot make one. A change of a user or of settings takes a number that is never taken again, and is sealed with it, so that an older row that is
-- put back shows; the service's role cannot remove a later number.
create table seal_versions (
  subject text collate "C" not null,
  version bigint not null check (version > 0),
  primary key (subject, version)
);
revoke update, delete on seal_versions from bursar_app;
alter table users add column seal bytea, add column seal_version bigint not null default 0;
alter table merchant_settings add column seal bytea, add column seal_version bigint not null default 0;
alter table sign_ins add column seal bytea;
alter table signing_keys add column seal bytea;
