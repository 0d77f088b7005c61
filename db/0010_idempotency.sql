-- Idempotency keys: one row for each answer that a key stands for, written in the transaction of its effect.
create table idempotency_keys (
  merchant_id bigint not null references merchants,
  -- the path without /v1
  operation   text collate "C" not null,
  key         text collate "C" not null,
  -- sha256 of the canonical body without access_token and idempotency_key
  body_hash   bytea not null,
  http_status smallint not null,
  -- byte for byte
  answer      text not null,
  created_at  timestamptz not null,
  -- null = kept for ever (a late retry of a payout must not pay twice)
  expires_at  timestamptz,
  primary key (merchant_id, operation, key)
);
create index idempotency_keys_expiry on idempotency_keys (expires_at) where expires_at is not null;
