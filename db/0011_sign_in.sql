-- Sign-ins: one row is one family of tokens (behaviour §2). Only the newest refresh token and the one before it matter: anything older
-- that still verifies was used before. No token is stored, only SHA-256 of the identifiers inside.
create table sign_ins (
  id                text collate "C" primary key,
  user_id           bigint not null references users,
  created_at        timestamptz not null,
  -- the newest refresh token's end: after it the row can go
  expires_at        timestamptz not null,
  revoked_at        timestamptz,
  revoked_because   text check (revoked_because in ('signed_out', 'refresh_token_reused', 'credentials_changed')),
  refresh_hash      bytea not null,
  access_hash       bytea not null,
  -- a token of the newest pair has been presented, so its receiver has it
  presented         boolean not null default false,
  -- the refresh token before the newest, when it was first used, and the newest pair sealed under it (only its holder can open that)
  previous_hash     bytea,
  consumed_at       timestamptz,
  sealed_pair       bytea,
  -- whether the newest pair was handed out again, and in how many rotations in a row that happened
  handed_out_again  boolean not null default false,
  graces_in_a_row   smallint not null default 0 check (graces_in_a_row between 0 and 2),
  check ((revoked_at is null) = (revoked_because is null)),
  check ((previous_hash is null) = (consumed_at is null) and (previous_hash is null) = (sealed_pair is null))
) with (fillfactor = 70);
create index sign_ins_user on sign_ins (user_id);

-- The public halves of the keys that sign tokens. Each API process makes its own pair and keeps the private half in its memory only; all
-- processes on this database accept what any of them signed.
create table signing_keys (
  kid           text collate "C" primary key check (kid ~ '^[A-Za-z0-9_-]{16}$'),
  public_key    text not null,
  created_at    timestamptz not null,
  -- after this nothing that it signed can be alive
  useless_after timestamptz not null
);
create index signing_keys_useless on signing_keys (useless_after);

-- Tells every process at commit what it must look at again: a revoked sign-in or a suspended merchant.
create function announce_sign_in() returns trigger language plpgsql as
$$ begin perform pg_notify('sign_in_changed', 's:' || new.id); return null; end $$;
create trigger announce after update of revoked_at on sign_ins
  for each row when (old.revoked_at is distinct from new.revoked_at) execute function announce_sign_in();
create function announce_merchant() returns trigger language plpgsql as
$$ begin perform pg_notify('sign_in_changed', 'm:' || new.id); return null; end $$;
create trigger announce after update of suspended_at on merchants
  for each row when (old.suspended_at is distinct from new.suspended_at) execute function announce_merchant();
