-- Today’s schema, dumped from a migrated database. Do not edit: change db/, then run `npm test -- test/store/schema -u`.

-- Domains

create domain public.units as numeric
  CHECK (((VALUE = trunc(VALUE)) AND (abs(VALUE) < '1000000000000000000000000000000000000000000000000000000000000'::numeric)));

-- Tables

create table ledger.account (
  id bigint generated always as identity not null,
  code text collate "C" not null,
  kind text not null,
  currency text not null,
  normal_side smallint not null,
  locked boolean not null,
  merchant_id bigint,
  created_at timestamp with time zone default clock_timestamp() not null,
  constraint account_code_key UNIQUE (code),
  constraint account_id_currency_key UNIQUE (id, currency),
  constraint account_pkey PRIMARY KEY (id),
  constraint account_kind_fkey FOREIGN KEY (kind) REFERENCES ledger.account_kind(kind),
  constraint account_normal_side_check CHECK ((normal_side = ANY (ARRAY[1, '-1'::integer])))
);

create table ledger.account_kind (
  kind text not null,
  pattern text not null,
  normal_side smallint not null,
  locked boolean not null,
  allow_negative boolean default false not null,
  constraint account_kind_pattern_key UNIQUE (pattern),
  constraint account_kind_pkey PRIMARY KEY (kind),
  constraint account_kind_normal_side_check CHECK ((normal_side = ANY (ARRAY[1, '-1'::integer])))
);

create table ledger.balance (
  account_id bigint not null,
  amount units default 0 not null,
  constraint balance_pkey PRIMARY KEY (account_id),
  constraint balance_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger.account(id),
  constraint no_overdraft CHECK (((amount)::numeric >= (0)::numeric))
) with (fillfactor=80);

create table ledger.entry (
  id bigint generated always as identity not null,
  kind text not null,
  key text collate "C" not null,
  body_hash bytea not null,
  reverses_id bigint,
  transaction_id text,
  payout_id text,
  created_at timestamp with time zone not null,
  xid xid8 default pg_current_xact_id() not null,
  constraint entry_key_key UNIQUE (key),
  constraint entry_reverses_id_key UNIQUE (reverses_id),
  constraint entry_pkey PRIMARY KEY (id),
  constraint entry_reverses_id_fkey FOREIGN KEY (reverses_id) REFERENCES ledger.entry(id),
  constraint entry_key_check CHECK (((length(key) >= 3) AND (length(key) <= 255))),
  constraint entry_kind_check CHECK ((kind ~ '^[a-z_]{3,40}$'::text))
);

create table ledger.link (
  number bigint not null,
  last_entry bigint not null,
  hash bytea not null,
  made_at timestamp with time zone not null,
  constraint link_last_entry_key UNIQUE (last_entry),
  constraint link_pkey PRIMARY KEY (number),
  constraint link_number_check CHECK ((number > 0))
);

create table ledger.link_seal (
  number bigint not null,
  seal bytea not null,
  constraint link_seal_pkey PRIMARY KEY (number, seal),
  constraint link_seal_number_fkey FOREIGN KEY (number) REFERENCES ledger.link(number)
);

create table ledger.part (
  key text collate "C" not null,
  entry_id bigint not null,
  amount units not null,
  reverses text collate "C",
  constraint part_reverses_key UNIQUE (reverses),
  constraint part_pkey PRIMARY KEY (key),
  constraint part_reverses_fkey FOREIGN KEY (reverses) REFERENCES ledger.part(key),
  constraint part_amount_check CHECK (((amount)::numeric <> (0)::numeric)),
  constraint part_key_check CHECK (((length(key) >= 3) AND (length(key) <= 255)))
);

create table ledger.posting (
  entry_id bigint not null,
  line smallint not null,
  account_id bigint not null,
  currency text not null,
  amount units not null,
  balance_after units,
  constraint posting_account_id_entry_id_key UNIQUE (account_id, entry_id),
  constraint posting_pkey PRIMARY KEY (entry_id, line),
  constraint posting_account_id_currency_fkey FOREIGN KEY (account_id, currency) REFERENCES ledger.account(id, currency),
  constraint posting_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES ledger.entry(id),
  constraint posting_amount_check CHECK (((amount)::numeric <> (0)::numeric))
);

create table ledger.rolled_up_balance (
  account_id bigint not null,
  amount units default 0 not null,
  constraint rolled_up_balance_pkey PRIMARY KEY (account_id),
  constraint rolled_up_balance_account_id_fkey FOREIGN KEY (account_id) REFERENCES ledger.account(id)
);

create table ledger.unrolled (
  entry_id bigint not null,
  constraint unrolled_pkey PRIMARY KEY (entry_id),
  constraint unrolled_entry_id_fkey FOREIGN KEY (entry_id) REFERENCES ledger.entry(id)
);

create table public.account_xpubs (
  id bigint generated always as identity not null,
  currency text not null,
  xpub text not null,
  origin text not null,
  start_index bigint default 0 not null,
  next_index bigint default 0 not null,
  created_at timestamp with time zone not null,
  confirmed_at timestamp with time zone,
  retired_at timestamp with time zone,
  constraint account_xpubs_xpub_key UNIQUE (xpub),
  constraint account_xpubs_pkey PRIMARY KEY (id),
  constraint account_xpubs_next_index_check CHECK (((next_index >= 0) AND (next_index <= '2147483648'::bigint))),
  constraint account_xpubs_origin_check CHECK ((origin = ANY (ARRAY['signer'::text, 'imported'::text]))),
  constraint account_xpubs_start_index_check CHECK (((start_index >= 0) AND (start_index <= '2147483648'::bigint)))
);

create table public.ach_entries (
  trace text collate "C" not null,
  file text collate "C" not null,
  payout_id text collate "C" not null,
  cents units not null,
  returned text,
  returned_at timestamp with time zone,
  notice text,
  constraint ach_entries_payout_id_key UNIQUE (payout_id),
  constraint ach_entries_pkey PRIMARY KEY (trace, file),
  constraint ach_entries_file_fkey FOREIGN KEY (file) REFERENCES ach_files(name),
  constraint ach_entries_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(id),
  constraint ach_entries_cents_check CHECK (((cents)::numeric > (0)::numeric)),
  constraint ach_entries_trace_check CHECK ((trace ~ '^[0-9]{15}$'::text))
);

create table public.ach_files (
  name text collate "C" not null,
  day date not null,
  modifier text not null,
  bytes bytea not null,
  sha256 bytea not null,
  credits units not null,
  state text not null,
  settles_on date not null,
  returns_end timestamp with time zone not null,
  is_over boolean default false not null,
  lease_owner text,
  lease_epoch bigint default 0 not null,
  lease_until timestamp with time zone,
  trouble text,
  created_at timestamp with time zone not null,
  handed_at timestamp with time zone,
  lost units default 0 not null,
  constraint ach_files_day_modifier_key UNIQUE (day, modifier),
  constraint ach_files_sha256_key UNIQUE (sha256),
  constraint ach_files_pkey PRIMARY KEY (name),
  constraint ach_files_lost_check CHECK (((lost)::numeric >= (0)::numeric)),
  constraint ach_files_modifier_check CHECK ((modifier ~ '^[A-Z0-9]$'::text)),
  constraint ach_files_state_check CHECK ((state = ANY (ARRAY['built'::text, 'uploading'::text, 'unknown'::text, 'acked'::text, 'refused'::text, 'over'::text])))
);

create table public.address_balances (
  currency text not null,
  script bytea not null,
  height integer not null,
  known numeric(78,0) not null,
  found units not null,
  compared_at timestamp with time zone not null,
  said_less units,
  said_less_by text,
  constraint address_balances_pkey PRIMARY KEY (currency, script),
  constraint address_balances_found_check CHECK (((found)::numeric >= (0)::numeric)),
  constraint address_balances_said_less_check CHECK ((((said_less IS NULL) = (said_less_by IS NULL)) AND ((said_less)::numeric >= (0)::numeric) AND ((said_less)::numeric < (found)::numeric)))
);

create table public.address_requests (
  id text collate "C" not null,
  currency text not null,
  size integer not null,
  asked_at timestamp with time zone default now() not null,
  renewed_at timestamp with time zone default now() not null,
  account_xpub_id bigint,
  first_index bigint,
  constraint address_requests_pkey PRIMARY KEY (id),
  constraint address_requests_account_xpub_id_fkey FOREIGN KEY (account_xpub_id) REFERENCES account_xpubs(id),
  constraint address_requests_check CHECK (((account_xpub_id IS NULL) = (first_index IS NULL))),
  constraint address_requests_size_check CHECK (((size >= 1) AND (size <= 100000)))
);

create table public.authorized_nonces (
  currency text not null,
  sender text not null,
  nonce integer not null,
  txid text not null,
  height integer not null,
  block_hash text not null,
  said_by text not null,
  at timestamp with time zone not null,
  constraint authorized_nonces_pkey PRIMARY KEY (currency, sender, nonce)
);

create table public.bank_reads (
  one_row boolean default true not null,
  begun_at timestamp with time zone not null,
  set_aside text[] default '{}'::text[] not null,
  constraint bank_reads_pkey PRIMARY KEY (one_row),
  constraint bank_reads_one_row_check CHECK (one_row)
);

create table public.blocks (
  currency text not null,
  height integer not null,
  hash text not null,
  previous text not null,
  "time" timestamp with time zone not null,
  read_order bigint default nextval('fact_order'::regclass) not null,
  constraint blocks_pkey PRIMARY KEY (currency, height)
);

create table public.breakers (
  id bigint generated always as identity not null,
  name text not null,
  tripped_by text[] not null,
  findings text[] not null,
  tripped_at timestamp with time zone not null,
  seen_at timestamp with time zone not null,
  cleared_at timestamp with time zone,
  cleared_by text,
  constraint breakers_pkey PRIMARY KEY (id),
  constraint breakers_name_check CHECK ((name = 'payouts'::text))
);

create table public.call_counts (
  bucket text collate "C" not null,
  capacity double precision not null,
  per_ms double precision not null,
  tokens double precision not null,
  at_ms double precision not null,
  wanted integer not null,
  granted integer not null,
  constraint call_counts_pkey PRIMARY KEY (bucket),
  constraint call_counts_capacity_check CHECK ((capacity >= (1)::double precision)),
  constraint call_counts_per_ms_check CHECK ((per_ms > (0)::double precision)),
  constraint call_counts_tokens_check CHECK ((tokens >= (0)::double precision))
) with (fillfactor=50);

create table public.chain_cursors (
  currency text not null,
  height integer not null,
  hash text not null,
  caught_up_at timestamp with time zone not null,
  low_height integer,
  epoch bigint default 0 not null,
  deep_height integer not null,
  updated_at timestamp with time zone not null,
  constraint chain_cursors_pkey PRIMARY KEY (currency)
);

create table public.chain_receipts (
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  height integer not null,
  block_hash text not null,
  coinbase boolean not null,
  transaction_id text collate "C" not null,
  amount units not null,
  constraint chain_receipts_pkey PRIMARY KEY (currency, txid, vout),
  constraint chain_receipts_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES transactions(id),
  constraint chain_receipts_amount_check CHECK (((amount)::numeric > (0)::numeric))
);

create table public.chain_reconciled (
  currency text not null,
  from_height integer not null,
  height integer not null,
  hash text not null,
  trouble text,
  updated_at timestamp with time zone not null,
  trouble_counts_from timestamp with time zone,
  constraint chain_reconciled_pkey PRIMARY KEY (currency),
  constraint chain_reconciled_check CHECK ((height >= from_height))
);

create table public.chain_reconciled_blocks (
  currency text not null,
  height integer not null,
  hash text not null,
  constraint chain_reconciled_blocks_pkey PRIMARY KEY (currency, height)
);

create table public.clock_settings (
  at_order bigint default nextval('fact_order'::regclass) not null,
  currency text not null,
  by_ms bigint not null,
  set_at timestamp with time zone default clock_timestamp() not null,
  constraint clock_settings_pkey PRIMARY KEY (at_order)
);

create table public.comparisons (
  currency text not null,
  height integer not null,
  checked_at timestamp with time zone not null,
  timeline text,
  constraint comparisons_pkey PRIMARY KEY (currency)
);

create table public.conflicting_transactions (
  currency text not null,
  txid text collate "C" not null,
  height integer,
  constraint conflicting_transactions_pkey PRIMARY KEY (currency, txid)
);

create table public.database_home (
  one boolean default true not null,
  lineage text not null,
  cluster text,
  database text not null,
  timeline text,
  written xid not null,
  constraint database_home_pkey PRIMARY KEY (one),
  constraint database_home_one_check CHECK (one)
);

create table public.database_replacements (
  evidence text not null,
  noticed_at timestamp with time zone not null,
  acknowledged_at timestamp with time zone,
  acknowledged_by text,
  constraint database_replacements_pkey PRIMARY KEY (evidence)
);

create table public.deliveries (
  webhook bigint not null,
  event_id bigint not null,
  due_at timestamp with time zone not null,
  failures smallint default 0 not null,
  asked integer default 0 not null,
  constraint deliveries_pkey PRIMARY KEY (webhook, event_id)
) with (autovacuum_vacuum_scale_factor=0.01, autovacuum_vacuum_threshold=1000);

create table public.delivery_attempts (
  id bigint generated always as identity not null,
  webhook bigint not null,
  event_id bigint not null,
  at timestamp with time zone not null,
  took_ms integer not null,
  status smallint,
  error text,
  answer bytea not null,
  constraint delivery_attempts_pkey PRIMARY KEY (id),
  constraint delivery_attempts_answer_check CHECK ((length(answer) <= 1024)),
  constraint delivery_attempts_check CHECK (((status IS NULL) = (error IS NOT NULL)))
);

create table public.due_marks (
  id bigint generated always as identity not null,
  transaction_id text collate "C" not null,
  constraint due_marks_pkey PRIMARY KEY (id)
);

create table public.early_payments (
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  transaction_id text collate "C" not null,
  amount units not null,
  height integer,
  noted_at timestamp with time zone not null,
  acknowledged_at timestamp with time zone,
  acknowledged_by text,
  accepted_at timestamp with time zone,
  accepted_by text,
  constraint early_payments_pkey PRIMARY KEY (currency, txid, vout),
  constraint early_payments_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES transactions(id),
  constraint early_payments_accepted CHECK (((accepted_at IS NULL) OR ((accepted_by IS NOT NULL) AND (acknowledged_at IS NOT NULL)))),
  constraint early_payments_amount_check CHECK (((amount)::numeric > (0)::numeric))
);

create table public.event_streams (
  merchant_id bigint not null,
  process text not null,
  until timestamp with time zone not null,
  constraint event_streams_pkey PRIMARY KEY (merchant_id, process),
  constraint event_streams_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id)
);

create table public.events (
  id bigint generated always as identity not null,
  merchant_id bigint not null,
  object_id text collate "C" not null,
  sequence integer not null,
  type text not null,
  status text not null,
  previous text,
  reason text not null,
  at timestamp with time zone not null,
  data jsonb,
  constraint events_object_id_sequence_key UNIQUE (object_id, sequence),
  constraint events_pkey PRIMARY KEY (id)
);

create table public.failed_sign_ins (
  key bytea not null,
  failures integer not null,
  ends_at timestamp with time zone not null,
  constraint failed_sign_ins_pkey PRIMARY KEY (key),
  constraint failed_sign_ins_key_check CHECK ((octet_length(key) = 32))
) with (fillfactor=70);

create table public.fee_rates (
  currency text not null,
  fee_rate bigint not null,
  asked_at timestamp with time zone not null,
  payouts_wait text,
  constraint fee_rates_pkey PRIMARY KEY (currency),
  constraint fee_rates_fee_rate_check CHECK ((fee_rate > 0))
);

create table public.forgotten_moves (
  currency text not null,
  txid text not null,
  sender text not null,
  nonce integer not null,
  height integer not null,
  block_hash text not null,
  constraint forgotten_moves_pkey PRIMARY KEY (currency, txid)
);

create table public.idempotency_keys (
  merchant_id bigint not null,
  operation text collate "C" not null,
  key text collate "C" not null,
  body_hash bytea not null,
  http_status smallint not null,
  answer text not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone,
  constraint idempotency_keys_pkey PRIMARY KEY (merchant_id, operation, key),
  constraint idempotency_keys_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id)
);

create table public.lightning_channels (
  node text not null,
  channel_point text collate "C" not null,
  gone_at timestamp with time zone,
  counted_from timestamp with time zone,
  constraint lightning_channels_pkey PRIMARY KEY (node, channel_point)
);

create table public.lightning_invoices (
  payment_hash text collate "C" not null,
  preimage bytea not null,
  transaction_id text collate "C" not null,
  merchant_id bigint not null,
  key text,
  body_hash bytea,
  amount_msat numeric(24,0) not null,
  usd_minor bigint not null,
  rate numeric not null,
  rate_at timestamp with time zone not null,
  rate_sources jsonb not null,
  state text not null,
  created_at timestamp with time zone not null,
  window_ends_at timestamp with time zone not null,
  paid_msat numeric(24,0),
  settled_at timestamp with time zone,
  settle_index bigint,
  cancel_asked_at timestamp with time zone,
  constraint lightning_invoices_transaction_id_key UNIQUE (transaction_id),
  constraint lightning_invoices_pkey PRIMARY KEY (payment_hash),
  constraint lightning_invoices_amount_msat_check CHECK ((amount_msat > (0)::numeric)),
  constraint lightning_invoices_check CHECK ((paid_msat >= amount_msat)),
  constraint lightning_invoices_check1 CHECK (((state = 'settled'::text) = (paid_msat IS NOT NULL))),
  constraint lightning_invoices_check2 CHECK (((state = 'settled'::text) = (settled_at IS NOT NULL))),
  constraint lightning_invoices_payment_hash_check CHECK ((payment_hash ~ '^[0-9a-f]{64}$'::text)),
  constraint lightning_invoices_rate_check CHECK ((rate > (0)::numeric)),
  constraint lightning_invoices_state_check CHECK ((state = ANY (ARRAY['reserved'::text, 'open'::text, 'closed'::text, 'settled'::text]))),
  constraint lightning_invoices_usd_minor_check CHECK ((usd_minor > 0))
);

create table public.lightning_nodes (
  identity text not null,
  settle_index bigint default 0 not null,
  seen_at timestamp with time zone not null,
  compared_index bigint default 0 not null,
  compared_at timestamp with time zone,
  pays_at timestamp with time zone,
  payment_index bigint default 0 not null,
  payments_compared bigint,
  restored_at timestamp with time zone,
  at_node numeric(24,0),
  booked_there numeric(24,0),
  held_at timestamp with time zone,
  part_since timestamp with time zone,
  forwarded_ns bigint,
  forwarded_msat numeric(24,0) default 0 not null,
  wallet_height integer default 0 not null,
  closed_height integer default 0 not null,
  compared_in text,
  listed_for timestamp with time zone,
  started_at timestamp with time zone,
  started_seen_at timestamp with time zone,
  pays_from timestamp with time zone,
  constraint lightning_nodes_pkey PRIMARY KEY (identity),
  constraint lightning_nodes_settle_index_check CHECK ((settle_index >= 0))
);

create table public.lightning_payments (
  payout_id text collate "C" not null,
  payment_hash text collate "C" not null,
  state text not null,
  node text,
  lease_owner text,
  lease_epoch bigint default 0 not null,
  lease_until timestamp with time zone,
  due_at timestamp with time zone,
  unanswered_until timestamp with time zone,
  sends integer default 0 not null,
  payment_index bigint,
  doubted boolean default false not null,
  preimage bytea,
  fee_msat numeric(24,0),
  trouble text,
  created_at timestamp with time zone not null,
  forgotten_at timestamp with time zone,
  asked_at timestamp with time zone,
  node_started_at timestamp with time zone,
  constraint lightning_payments_pkey PRIMARY KEY (payout_id),
  constraint lightning_payments_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(id),
  constraint lightning_payments_check CHECK ((sha256(preimage) = decode(payment_hash, 'hex'::text))),
  constraint lightning_payments_check1 CHECK (((state = ANY (ARRAY['sent'::text, 'paid'::text])) <= (node IS NOT NULL))),
  constraint lightning_payments_check2 CHECK ((((state = 'paid'::text) = (preimage IS NOT NULL)) AND ((state = 'paid'::text) = (fee_msat IS NOT NULL)))),
  constraint lightning_payments_fee_msat_check CHECK ((fee_msat >= (0)::numeric)),
  constraint lightning_payments_state_check CHECK ((state = ANY (ARRAY['waiting'::text, 'sent'::text, 'paid'::text, 'failed'::text, 'closed'::text])))
);

create table public.lightning_sent (
  node text not null,
  payment_index bigint not null,
  payment_hash text collate "C" not null,
  state text not null,
  amount_msat numeric(24,0) not null,
  fee_msat numeric(24,0) not null,
  seen_at timestamp with time zone not null,
  acknowledged_at timestamp with time zone,
  is_operators boolean default false not null,
  constraint lightning_sent_pkey PRIMARY KEY (node, payment_index),
  constraint lightning_sent_state_check CHECK ((state = ANY (ARRAY['in_flight'::text, 'succeeded'::text])))
);

create table public.lightning_unknown_invoices (
  payment_hash text collate "C" not null,
  node text not null,
  added_at timestamp with time zone not null,
  paid_msat numeric(24,0),
  acknowledged_at timestamp with time zone,
  constraint lightning_unknown_invoices_pkey PRIMARY KEY (payment_hash),
  constraint lightning_unknown_invoices_payment_hash_check CHECK ((payment_hash ~ '^[0-9a-f]{64}$'::text))
);

create table public.lost_ach_entries (
  file text collate "C" not null,
  trace text collate "C" not null,
  reference text collate "C" not null,
  cents units not null,
  paid text collate "C",
  returned text,
  constraint lost_ach_entries_paid_key UNIQUE (paid),
  constraint lost_ach_entries_pkey PRIMARY KEY (trace, file),
  constraint lost_ach_entries_file_fkey FOREIGN KEY (file) REFERENCES ach_files(name),
  constraint lost_ach_entries_paid_fkey FOREIGN KEY (paid) REFERENCES payouts(id),
  constraint lost_ach_entries_cents_check CHECK (((cents)::numeric > (0)::numeric))
);

create table public.lost_outputs (
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  script bytea not null,
  amount units not null,
  constraint lost_outputs_pkey PRIMARY KEY (currency, txid, vout),
  constraint lost_outputs_amount_check CHECK (((amount)::numeric > (0)::numeric))
);

create table public.lost_questions (
  payout_id text collate "C" not null,
  currency text not null,
  txid text collate "C" not null,
  place text collate "C" not null,
  constraint lost_questions_pkey PRIMARY KEY (payout_id),
  constraint lost_questions_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(id)
);

create table public.merchant_settings (
  merchant_id bigint not null,
  tolerance_bps integer default 100 not null,
  late_payments text default 'accept'::text not null,
  payout_allow_list text[] default '{}'::text[] not null,
  payout_allow_list_old text[] default '{}'::text[] not null,
  payout_allow_list_from timestamp with time zone,
  payout_approval_above units,
  payout_approval_above_old units,
  payout_approval_above_from timestamp with time zone,
  seal bytea,
  seal_version bigint default 0 not null,
  constraint merchant_settings_pkey PRIMARY KEY (merchant_id),
  constraint merchant_settings_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id),
  constraint merchant_settings_check CHECK (((payout_approval_above_from IS NULL) OR (payout_approval_above_old IS NOT NULL))),
  constraint merchant_settings_late_payments_check CHECK ((late_payments = ANY (ARRAY['accept'::text, 'review'::text]))),
  constraint merchant_settings_payout_approval_above_check CHECK (((payout_approval_above)::numeric >= (0)::numeric)),
  constraint merchant_settings_payout_approval_above_old_check CHECK (((payout_approval_above_old)::numeric >= (0)::numeric)),
  constraint merchant_settings_tolerance_bps_check CHECK (((tolerance_bps >= 0) AND (tolerance_bps <= 500)))
);

create table public.merchants (
  id bigint generated always as identity not null,
  affiliate_id text not null,
  email text not null,
  business_name text not null,
  created_at timestamp with time zone not null,
  suspended_at timestamp with time zone,
  constraint merchants_affiliate_id_key UNIQUE (affiliate_id),
  constraint merchants_pkey PRIMARY KEY (id)
);

create table public.network (
  one boolean default true not null,
  name text not null,
  written_at timestamp with time zone default now() not null,
  constraint network_pkey PRIMARY KEY (one),
  constraint network_name_check CHECK ((name = ANY (ARRAY['sandbox'::text, 'regtest'::text, 'testnet'::text, 'mainnet'::text]))),
  constraint network_one_check CHECK (one)
);

create table public.node_conditions (
  currency text not null,
  state text not null,
  reason text,
  height integer,
  hash text,
  checked_at timestamp with time zone not null,
  looked_at timestamp with time zone default clock_timestamp() not null,
  node text,
  others text[] default '{}'::text[] not null,
  contested text,
  outage boolean default false not null,
  pushes boolean default false not null,
  agreed_height integer,
  agreed_hash text,
  constraint node_conditions_pkey PRIMARY KEY (currency)
);

create table public.outgoing_attempts (
  id bigint generated always as identity not null,
  batch_id text collate "C" not null,
  number integer not null,
  currency text not null,
  txid text collate "C" not null,
  raw bytea not null,
  fee units not null,
  vbytes integer not null,
  change_vout integer,
  change_amount units,
  lease_epoch bigint not null,
  sequence bigint not null,
  signed_at timestamp with time zone not null,
  sent_at timestamp with time zone,
  height integer,
  block_hash text,
  lost units default 0 not null,
  max_fee units,
  result text,
  gas_paid units,
  constraint outgoing_attempts_batch_id_number_key UNIQUE (batch_id, number),
  constraint outgoing_attempts_currency_txid_key UNIQUE (currency, txid),
  constraint outgoing_attempts_pkey PRIMARY KEY (id),
  constraint outgoing_attempts_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES outgoing_batches(id),
  constraint outgoing_attempts_fee_check CHECK (((fee)::numeric >= (0)::numeric)),
  constraint outgoing_attempts_gas_paid_check CHECK (((gas_paid)::numeric >= (0)::numeric)),
  constraint outgoing_attempts_max_fee_check CHECK (((max_fee)::numeric > (0)::numeric)),
  constraint outgoing_attempts_result_check CHECK ((result = ANY (ARRAY['paid'::text, 'failed'::text, 'unclear'::text])))
);

create table public.outgoing_batches (
  id text collate "C" not null,
  currency text not null,
  state text not null,
  fee_rate bigint not null,
  change_index bigint,
  lease_owner text,
  lease_epoch bigint default 0 not null,
  lease_until timestamp with time zone,
  due_at timestamp with time zone,
  mined_attempt bigint,
  trouble text,
  created_at timestamp with time zone not null,
  tip units,
  gas_limit integer,
  purpose text default 'payout'::text not null,
  target bytea,
  given_up text,
  constraint outgoing_batches_pkey PRIMARY KEY (id),
  constraint outgoing_batches_fee_rate_check CHECK ((fee_rate > 0)),
  constraint outgoing_batches_gas_limit_check CHECK ((gas_limit > 0)),
  constraint outgoing_batches_purpose_check CHECK ((purpose = ANY (ARRAY['payout'::text, 'sweep'::text, 'top_up'::text]))),
  constraint outgoing_batches_state_check CHECK ((state = ANY (ARRAY['reserved'::text, 'signed'::text, 'mined'::text, 'final'::text, 'dead'::text]))),
  constraint outgoing_batches_target_check CHECK (((purpose = 'payout'::text) = (target IS NULL))),
  constraint outgoing_batches_tip_check CHECK (((tip)::numeric > (0)::numeric))
);

create table public.outgoing_inputs (
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  batch_id text collate "C" not null,
  amount units not null,
  script bytea not null,
  account_xpub_id bigint not null,
  chain smallint not null,
  address_index bigint not null,
  spent_by text collate "C",
  spent_height integer,
  made_in xid8 default pg_current_xact_id() not null,
  freed boolean default false not null,
  undone_height integer,
  constraint outgoing_inputs_pkey PRIMARY KEY (currency, txid, vout, batch_id),
  constraint outgoing_inputs_account_xpub_id_fkey FOREIGN KEY (account_xpub_id) REFERENCES account_xpubs(id),
  constraint outgoing_inputs_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES outgoing_batches(id),
  constraint outgoing_inputs_amount_check CHECK (((amount)::numeric > (0)::numeric)),
  constraint outgoing_inputs_chain_check CHECK ((chain = ANY (ARRAY[0, 1])))
);

create table public.outgoing_shares (
  attempt_id bigint not null,
  payout_id text collate "C" not null,
  vout integer not null,
  fee units not null,
  constraint outgoing_shares_pkey PRIMARY KEY (attempt_id, payout_id),
  constraint outgoing_shares_attempt_id_fkey FOREIGN KEY (attempt_id) REFERENCES outgoing_attempts(id),
  constraint outgoing_shares_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(id),
  constraint outgoing_shares_fee_check CHECK (((fee)::numeric >= (0)::numeric))
);

create table public.own_addresses (
  account_xpub_id bigint not null,
  address_index bigint not null,
  currency text not null,
  script bytea not null,
  made_in xid8 default pg_current_xact_id() not null,
  constraint own_addresses_script_key UNIQUE (script, currency),
  constraint own_addresses_pkey PRIMARY KEY (account_xpub_id, address_index, currency),
  constraint own_addresses_account_xpub_id_fkey FOREIGN KEY (account_xpub_id) REFERENCES account_xpubs(id)
);

create table public.own_outputs (
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  amount units not null,
  script bytea not null,
  height integer,
  block_hash text,
  booked boolean default false not null,
  spent boolean default false not null,
  coinbase boolean default false not null,
  lost integer default 0 not null,
  gone_height integer,
  of_block boolean default false not null,
  constraint own_outputs_pkey PRIMARY KEY (currency, txid, vout),
  constraint own_outputs_script_fkey FOREIGN KEY (script, currency) REFERENCES own_addresses(script, currency),
  constraint own_outputs_amount_check CHECK (((amount)::numeric > (0)::numeric)),
  constraint own_outputs_lost_check CHECK ((lost >= 0))
);

create table public.payment_decisions (
  transaction_id text collate "C" not null,
  payment_id bigint not null,
  decided_at timestamp with time zone not null,
  classified boolean not null,
  present boolean not null,
  on_time_minor numeric not null,
  value_rate numeric(24,8),
  judged_block_hash text,
  generation integer not null,
  credited numeric not null,
  suspended numeric not null,
  fee numeric not null,
  in_available numeric not null,
  in_suspense numeric not null,
  in_refund numeric not null,
  sent_back numeric not null,
  owed numeric not null,
  owed_fee numeric not null,
  was_lost boolean not null,
  part_key text collate "C",
  due_height integer,
  counted boolean not null,
  due_at timestamp with time zone,
  constraint payment_decisions_pkey PRIMARY KEY (transaction_id, payment_id),
  constraint payment_decisions_check CHECK ((LEAST(on_time_minor, credited, suspended, fee, in_available, in_suspense, in_refund, sent_back, owed, owed_fee) >= (0)::numeric)),
  constraint payment_decisions_value_rate_check CHECK (COALESCE((value_rate > (0)::numeric), true))
);

create table public.payment_inputs (
  currency text not null,
  prev_txid text collate "C" not null,
  prev_vout integer not null,
  txid text collate "C" not null,
  made_in xid8 default pg_current_xact_id() not null,
  constraint payment_inputs_pkey PRIMARY KEY (currency, prev_txid, prev_vout, txid)
);

create table public.payments (
  id bigint generated always as identity not null,
  transaction_id text collate "C" not null,
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  amount units not null,
  coinbase boolean default false not null,
  twin_key bytea not null,
  state text not null,
  lock text,
  height integer,
  block_hash text,
  block_time timestamp with time zone,
  seen_at timestamp with time zone not null,
  caught_up_at timestamp with time zone not null,
  found_mined boolean not null,
  gone_since timestamp with time zone,
  last_height integer,
  conflict_txid text collate "C",
  noticed_at timestamp with time zone,
  present boolean default false not null,
  counted boolean default false not null,
  on_time_minor units default 0 not null,
  value_rate numeric(24,8),
  judged_block_hash text,
  generation integer default 0 not null,
  was_lost boolean default false not null,
  part_key text collate "C",
  credited units default 0 not null,
  suspended units default 0 not null,
  fee units default 0 not null,
  in_available units default 0 not null,
  in_suspense units default 0 not null,
  in_refund units default 0 not null,
  sent_back units default 0 not null,
  owed units default 0 not null,
  owed_fee units default 0 not null,
  due_height integer,
  due_at timestamp with time zone,
  spent boolean default false not null,
  paid_by text collate "C",
  constraint payments_currency_txid_vout_key UNIQUE (currency, txid, vout),
  constraint payments_paid_by_key UNIQUE (paid_by),
  constraint payments_part_key_key UNIQUE (part_key),
  constraint payments_pkey PRIMARY KEY (id),
  constraint payments_paid_by_fkey FOREIGN KEY (paid_by) REFERENCES payouts(id),
  constraint payments_amount_check CHECK (((amount)::numeric > (0)::numeric)),
  constraint payments_check CHECK ((((on_time_minor)::numeric >= (0)::numeric) AND ((on_time_minor)::numeric <= (amount)::numeric))),
  constraint payments_check1 CHECK (((state = 'mined'::text) = (height IS NOT NULL))),
  constraint payments_credited_check CHECK (((credited)::numeric >= (0)::numeric)),
  constraint payments_fee_check CHECK (((fee)::numeric >= (0)::numeric)),
  constraint payments_in_available_check CHECK (((in_available)::numeric >= (0)::numeric)),
  constraint payments_in_refund_check CHECK (((in_refund)::numeric >= (0)::numeric)),
  constraint payments_in_suspense_check CHECK (((in_suspense)::numeric >= (0)::numeric)),
  constraint payments_lock_check CHECK ((lock = ANY (ARRAY['instantsend'::text, 'chainlock'::text]))),
  constraint payments_owed_check CHECK (((owed)::numeric >= (0)::numeric)),
  constraint payments_owed_fee_check CHECK (((owed_fee)::numeric >= (0)::numeric)),
  constraint payments_sent_back_check CHECK (((sent_back)::numeric >= (0)::numeric)),
  constraint payments_state_check CHECK ((state = ANY (ARRAY['mempool'::text, 'mined'::text, 'gone'::text, 'conflicted'::text]))),
  constraint payments_suspended_check CHECK (((suspended)::numeric >= (0)::numeric)),
  constraint payments_value_rate_check CHECK ((value_rate > (0)::numeric))
);

create table public.payout_settings (
  merchant_id bigint not null,
  enabled boolean not null,
  method text,
  destination text,
  threshold text,
  leave text default '0'::text not null,
  source_currency text,
  usable_at timestamp with time zone,
  changed_at timestamp with time zone not null,
  refused integer default 0 not null,
  paused_at timestamp with time zone,
  paused_reason text,
  intent_key text not null,
  intent bytea not null,
  version bigint default 0 not null,
  constraint payout_settings_pkey PRIMARY KEY (merchant_id),
  constraint payout_settings_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id),
  constraint payout_settings_check CHECK (((paused_at IS NULL) = (paused_reason IS NULL))),
  constraint payout_settings_check1 CHECK (((NOT enabled) OR ((method IS NOT NULL) AND (destination IS NOT NULL) AND (threshold IS NOT NULL) AND (usable_at IS NOT NULL)))),
  constraint payout_settings_method_check CHECK ((method = ANY (ARRAY['lightning'::text, 'bitcoin'::text, 'ach'::text, 'usdt'::text])))
);

create table public.payout_settings_versions (
  merchant_id bigint not null,
  version bigint not null,
  constraint payout_settings_versions_pkey PRIMARY KEY (merchant_id, version),
  constraint payout_settings_versions_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id),
  constraint payout_settings_versions_version_check CHECK ((version > 0))
);

create table public.payouts (
  id text collate "C" not null,
  merchant_id bigint not null,
  method text not null,
  amount_text text not null,
  currency text not null,
  amount units not null,
  fee_max units not null,
  fee units,
  destination text not null,
  script bytea,
  status text not null,
  step text not null,
  held_reason text,
  usd_minor bigint,
  needs_approval boolean default false not null,
  approved_at timestamp with time zone,
  approved_by text,
  automatic boolean default false not null,
  batch_id text collate "C",
  batch_position integer,
  intent_key text not null,
  intent bytea not null,
  error text,
  created_at timestamp with time zone not null,
  completed_at timestamp with time zone,
  sequence integer default 1 not null,
  reimburses text collate "C",
  part text,
  noted boolean default false not null,
  source_currency text,
  source_amount units,
  given_back units,
  resolved boolean default false not null,
  internal_to text collate "C",
  payment_request text,
  payment_hash text collate "C",
  invoice_expires_at timestamp with time zone,
  approval_key text,
  approval bytea,
  kept units,
  constraint payouts_pkey PRIMARY KEY (id),
  constraint payouts_batch_id_fkey FOREIGN KEY (batch_id) REFERENCES outgoing_batches(id),
  constraint payouts_internal_to_fkey FOREIGN KEY (internal_to) REFERENCES transactions(id),
  constraint payouts_reimburses_fkey FOREIGN KEY (reimburses) REFERENCES transactions(id),
  constraint payouts_amount_check CHECK (((amount)::numeric > (0)::numeric)),
  constraint payouts_check CHECK ((((fee)::numeric >= (0)::numeric) AND ((fee)::numeric <= (fee_max)::numeric))),
  constraint payouts_check1 CHECK (((status = ANY (ARRAY['completed'::text, 'failed'::text])) = (step = 'ended'::text))),
  constraint payouts_check2 CHECK (((status = 'failed'::text) = (error IS NOT NULL))),
  constraint payouts_check3 CHECK (((status = 'pending'::text) <= (step = 'held'::text))),
  constraint payouts_check4 CHECK (((method = 'ach'::text) = (source_currency IS NOT NULL))),
  constraint payouts_check5 CHECK (((source_currency IS NULL) = (source_amount IS NULL))),
  constraint payouts_check6 CHECK (((given_back IS NULL) OR ((method = 'ach'::text) AND (status = 'failed'::text)))),
  constraint payouts_check7 CHECK ((((kept)::numeric > (0)::numeric) AND ((kept)::numeric <= (amount)::numeric))),
  constraint payouts_fee_max_check CHECK (((fee_max)::numeric >= (0)::numeric)),
  constraint payouts_given_back_check CHECK (((given_back)::numeric >= (0)::numeric)),
  constraint payouts_held_reason_check CHECK ((held_reason = ANY (ARRAY['approval'::text, 'cool_down'::text, 'breaker'::text, 'receivable'::text, 'not_final'::text, 'unknown_outcome'::text]))),
  constraint payouts_lightning_check CHECK ((((payment_request IS NULL) = (payment_hash IS NULL)) AND ((payment_request IS NULL) = (invoice_expires_at IS NULL)) AND ((method <> 'lightning'::text) OR (payment_hash IS NOT NULL)))),
  constraint payouts_method_check CHECK ((method = ANY (ARRAY['lightning'::text, 'bitcoin'::text, 'ach'::text, 'usdt'::text, 'reimbursement'::text]))),
  constraint payouts_part_check CHECK ((part = ANY (ARRAY['whole'::text, 'excess'::text]))),
  constraint payouts_payment_hash_check CHECK ((payment_hash ~ '^[0-9a-f]{64}$'::text)),
  constraint payouts_reimbursement_check CHECK ((((method = 'reimbursement'::text) = (reimburses IS NOT NULL)) AND ((reimburses IS NULL) = (part IS NULL)))),
  constraint payouts_source_amount_check CHECK (((source_amount)::numeric > (0)::numeric)),
  constraint payouts_status_check CHECK ((status = ANY (ARRAY['pending'::text, 'processing'::text, 'completed'::text, 'failed'::text]))),
  constraint payouts_step_check CHECK ((step = ANY (ARRAY['held'::text, 'queued'::text, 'batched'::text, 'ended'::text])))
);

create table public.raised_event_numbers (
  after_event bigint not null,
  added integer not null,
  constraint raised_event_numbers_pkey PRIMARY KEY (after_event, added),
  constraint raised_event_numbers_added_check CHECK ((added > 0))
);

create table public.rate_history (
  currency text not null,
  at timestamp with time zone not null,
  usd numeric not null,
  constraint rate_history_pkey PRIMARY KEY (currency, at),
  constraint rate_history_usd_check CHECK (((usd > (0)::numeric) AND (usd < 'Infinity'::numeric)))
);

create table public.rate_sources (
  source text not null,
  state text not null,
  reason text,
  since timestamp with time zone not null,
  checked_at timestamp with time zone not null,
  constraint rate_sources_pkey PRIMARY KEY (source),
  constraint rate_sources_reason_check CHECK (((reason IS NULL) OR (length(reason) <= 300))),
  constraint rate_sources_state_check CHECK ((state = ANY (ARRAY['answers'::text, 'silent'::text, 'unreachable'::text])))
);

create table public.rates (
  currency text not null,
  usd numeric not null,
  at timestamp with time zone not null,
  sources jsonb not null,
  left_out jsonb not null,
  checked_at timestamp with time zone not null,
  seal bytea,
  constraint rates_pkey PRIMARY KEY (currency),
  constraint rates_seal_check CHECK ((octet_length(seal) = 32)),
  constraint rates_usd_check CHECK (((usd > (0)::numeric) AND (usd < 'Infinity'::numeric)))
);

create table public.reimbursement_shares (
  payout_id text collate "C" not null,
  payment_id bigint not null,
  from_available units not null,
  from_suspense units not null,
  constraint reimbursement_shares_pkey PRIMARY KEY (payout_id, payment_id),
  constraint reimbursement_shares_payout_id_fkey FOREIGN KEY (payout_id) REFERENCES payouts(id),
  constraint reimbursement_shares_check CHECK ((((from_available)::numeric + (from_suspense)::numeric) > (0)::numeric)),
  constraint reimbursement_shares_from_available_check CHECK (((from_available)::numeric >= (0)::numeric)),
  constraint reimbursement_shares_from_suspense_check CHECK (((from_suspense)::numeric >= (0)::numeric))
);

create table public.schedules (
  name text not null,
  every_ms bigint not null,
  taken_at timestamp with time zone not null,
  finished_at timestamp with time zone,
  constraint schedules_pkey PRIMARY KEY (name),
  constraint schedules_every_ms_check CHECK ((every_ms > 0))
);

create table public.seal_versions (
  subject text collate "C" not null,
  version bigint not null,
  constraint seal_versions_pkey PRIMARY KEY (subject, version),
  constraint seal_versions_version_check CHECK ((version > 0))
);

create table public.set_aside (
  transaction_id text collate "C" not null,
  failures integer not null,
  reason text not null,
  since timestamp with time zone not null,
  failed_at timestamp with time zone not null,
  rests_until timestamp with time zone not null,
  constraint set_aside_pkey PRIMARY KEY (transaction_id),
  constraint set_aside_failures_check CHECK ((failures > 0))
);

create table public.sign_ins (
  id text collate "C" not null,
  user_id bigint not null,
  created_at timestamp with time zone not null,
  expires_at timestamp with time zone not null,
  revoked_at timestamp with time zone,
  revoked_because text,
  refresh_hash bytea not null,
  access_hash bytea not null,
  presented boolean default false not null,
  previous_hash bytea,
  consumed_at timestamp with time zone,
  sealed_pair bytea,
  handed_out_again boolean default false not null,
  graces_in_a_row smallint default 0 not null,
  seal bytea,
  constraint sign_ins_pkey PRIMARY KEY (id),
  constraint sign_ins_user_id_fkey FOREIGN KEY (user_id) REFERENCES users(id),
  constraint sign_ins_check CHECK (((revoked_at IS NULL) = (revoked_because IS NULL))),
  constraint sign_ins_check1 CHECK ((((previous_hash IS NULL) = (consumed_at IS NULL)) AND ((previous_hash IS NULL) = (sealed_pair IS NULL)))),
  constraint sign_ins_graces_in_a_row_check CHECK (((graces_in_a_row >= 0) AND (graces_in_a_row <= 2))),
  constraint sign_ins_revoked_because_check CHECK ((revoked_because = ANY (ARRAY['signed_out'::text, 'refresh_token_reused'::text, 'credentials_changed'::text])))
) with (fillfactor=70);

create table public.signer_journal (
  one boolean default true not null,
  lineage text not null,
  counter bigint not null,
  written_at timestamp with time zone default now() not null,
  constraint signer_journal_pkey PRIMARY KEY (one),
  constraint signer_journal_one_check CHECK (one)
);

create table public.signing_keys (
  kid text collate "C" not null,
  public_key text not null,
  created_at timestamp with time zone not null,
  useless_after timestamp with time zone not null,
  seal bytea,
  constraint signing_keys_pkey PRIMARY KEY (kid),
  constraint signing_keys_kid_check CHECK ((kid ~ '^[A-Za-z0-9_-]{16}$'::text))
);

create table public.skipped_addresses (
  id bigint generated always as identity not null,
  account_xpub_id bigint not null,
  first_index bigint not null,
  end_index bigint not null,
  cause text not null,
  noticed_at timestamp with time zone default now() not null,
  constraint skipped_addresses_pkey PRIMARY KEY (id),
  constraint skipped_addresses_account_xpub_id_fkey FOREIGN KEY (account_xpub_id) REFERENCES account_xpubs(id),
  constraint skipped_addresses_cause_check CHECK ((cause = ANY (ARRAY['database_behind'::text, 'journal_lost'::text, 'journal_behind'::text]))),
  constraint skipped_addresses_check CHECK ((end_index > first_index))
);

create table public.transactions (
  id text collate "C" not null,
  merchant_id bigint not null,
  currency text not null,
  status text not null,
  usd_minor bigint not null,
  amount_due units not null,
  rate numeric not null,
  rate_at timestamp with time zone not null,
  rate_sources jsonb not null,
  tolerance_bps integer not null,
  late_payments text not null,
  label text,
  email text,
  address text not null,
  script bytea,
  address_index bigint,
  created_at timestamp with time zone not null,
  window_ends_at timestamp with time zone not null,
  confirmed_at timestamp with time zone,
  succeeded_at timestamp with time zone,
  crypto_received units default 0 not null,
  confirmed_from_height integer,
  confirmed_from_currency text,
  merchant_decision text default 'none'::text not null,
  review_cause text,
  accepted_only_by_hand boolean default false not null,
  looked_up_at timestamp with time zone,
  lookup_wanted boolean default false not null,
  sequence integer default 1 not null,
  due_at timestamp with time zone,
  made_in xid8 default pg_current_xact_id() not null,
  made_order bigint default nextval('fact_order'::regclass) not null,
  constraint transactions_script_key UNIQUE (script),
  constraint transactions_pkey PRIMARY KEY (id),
  constraint transactions_amount_due_check CHECK (((amount_due)::numeric > (0)::numeric)),
  constraint transactions_crypto_received_check CHECK (((crypto_received)::numeric >= (0)::numeric)),
  constraint transactions_late_payments_check CHECK ((late_payments = ANY (ARRAY['accept'::text, 'review'::text]))),
  constraint transactions_merchant_decision_check CHECK ((merchant_decision = ANY (ARRAY['none'::text, 'cancelled'::text, 'refused'::text, 'accepted'::text]))),
  constraint transactions_rate_check CHECK ((rate > (0)::numeric)),
  constraint transactions_review_cause_check CHECK ((review_cause = ANY (ARRAY['late'::text, 'loss'::text, 'other'::text]))),
  constraint transactions_status_check CHECK ((status = ANY (ARRAY['started'::text, 'pending'::text, 'confirmed'::text, 'succeeded'::text, 'timedout'::text, 'cancelled'::text, 'declined'::text, 'review'::text, 'reimbursed'::text, 'settled'::text, 'timedout_checked'::text]))),
  constraint transactions_tolerance_bps_check CHECK (((tolerance_bps >= 0) AND (tolerance_bps <= 500))),
  constraint transactions_usd_minor_check CHECK ((usd_minor > 0))
);

create table public.unconfirmed_blocks (
  currency text not null,
  height integer not null,
  hash text not null,
  denied boolean not null,
  reason text not null,
  scripts bytea[] not null,
  since timestamp with time zone not null,
  words text[] default '{}'::text[] not null,
  constraint unconfirmed_blocks_pkey PRIMARY KEY (currency, height, denied)
);

create table public.unknown_movements (
  id bigint generated always as identity not null,
  currency text not null,
  txid text collate "C",
  block_hash text,
  finding text not null,
  seen_at timestamp with time zone not null,
  resolved_at timestamp with time zone,
  resolved_by text,
  resolution text,
  spends text[],
  constraint unknown_movements_pkey PRIMARY KEY (id)
);

create table public.unprotected_payments (
  currency text not null,
  txid text collate "C" not null,
  vout integer not null,
  transaction_id text collate "C" not null,
  amount units not null,
  height integer,
  seen_at timestamp with time zone not null,
  told_at timestamp with time zone,
  constraint unprotected_payments_pkey PRIMARY KEY (currency, txid, vout),
  constraint unprotected_payments_transaction_id_fkey FOREIGN KEY (transaction_id) REFERENCES transactions(id)
);

create table public.users (
  id bigint generated always as identity not null,
  merchant_id bigint not null,
  username text not null,
  username_key text not null,
  password_hash text not null,
  scopes text[] not null,
  created_at timestamp with time zone not null,
  seal bytea,
  seal_version bigint default 0 not null,
  constraint users_username_key_key UNIQUE (username_key),
  constraint users_pkey PRIMARY KEY (id),
  constraint users_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id),
  constraint users_scopes_check CHECK ((scopes <@ ARRAY['read'::text, 'payments'::text, 'payouts'::text]))
);

create table public.waiting_signatures (
  currency text not null,
  txid text collate "C" not null,
  sequence bigint not null,
  constraint waiting_signatures_pkey PRIMARY KEY (currency, txid)
);

create table public.webhooks (
  number bigint generated always as identity not null,
  id text collate "C" not null,
  merchant_id bigint not null,
  url text not null,
  events text[],
  secret text not null,
  former_secrets jsonb default '[]'::jsonb not null,
  enabled boolean default true not null,
  created_at timestamp with time zone not null,
  constraint webhooks_id_key UNIQUE (id),
  constraint webhooks_pkey PRIMARY KEY (number),
  constraint webhooks_merchant_id_fkey FOREIGN KEY (merchant_id) REFERENCES merchants(id)
);

create table public.written_off (
  id bigint generated always as identity not null,
  currency text not null,
  script bytea not null,
  amount numeric not null,
  height integer not null,
  block_hash text not null,
  batch_id text,
  said_by text not null,
  evidence text not null,
  at timestamp with time zone not null,
  left_by text,
  constraint written_off_pkey PRIMARY KEY (id),
  constraint written_off_amount_check CHECK (((amount <> (0)::numeric) AND (amount = trunc(amount))))
);

-- Indexes that no constraint brings

CREATE INDEX account_merchant ON ledger.account USING btree (merchant_id, kind) WHERE (merchant_id IS NOT NULL);

CREATE INDEX entry_transaction ON ledger.entry USING btree (transaction_id) WHERE (transaction_id IS NOT NULL);

CREATE INDEX part_entry ON ledger.part USING btree (entry_id);

CREATE UNIQUE INDEX account_xpubs_in_use ON public.account_xpubs USING btree (currency) WHERE (retired_at IS NULL);

CREATE INDEX ach_entries_file ON public.ach_entries USING btree (file);

CREATE INDEX ach_files_open ON public.ach_files USING btree (created_at) WHERE (state = ANY (ARRAY['built'::text, 'uploading'::text, 'unknown'::text, 'acked'::text]));

CREATE INDEX address_balances_denied ON public.address_balances USING btree (currency, script) WHERE (said_less IS NOT NULL);

CREATE INDEX address_requests_open ON public.address_requests USING btree (asked_at) WHERE (first_index IS NULL);

CREATE UNIQUE INDEX breakers_open ON public.breakers USING btree (name) WHERE (cleared_at IS NULL);

CREATE INDEX chain_receipts_height ON public.chain_receipts USING btree (currency, height);

CREATE INDEX conflicting_transactions_height ON public.conflicting_transactions USING btree (currency, height) WHERE (height IS NOT NULL);

CREATE INDEX conflicting_transactions_unmined ON public.conflicting_transactions USING btree (currency) WHERE (height IS NULL);

CREATE INDEX deliveries_due ON public.deliveries USING btree (webhook, due_at, event_id);

CREATE INDEX delivery_attempts_event ON public.delivery_attempts USING btree (event_id);

CREATE INDEX delivery_attempts_webhook ON public.delivery_attempts USING btree (webhook, at, id);

CREATE INDEX due_marks_transaction ON public.due_marks USING btree (transaction_id);

CREATE INDEX early_payments_open ON public.early_payments USING btree (currency) WHERE (acknowledged_at IS NULL);

CREATE INDEX events_kind ON public.events USING btree (merchant_id, type, at, id);

CREATE INDEX events_merchant ON public.events USING btree (merchant_id, id);

CREATE INDEX failed_sign_ins_ends ON public.failed_sign_ins USING btree (ends_at);

CREATE INDEX idempotency_keys_expiry ON public.idempotency_keys USING btree (expires_at) WHERE (expires_at IS NOT NULL);

CREATE INDEX lightning_invoices_cancelling ON public.lightning_invoices USING btree (window_ends_at) WHERE (cancel_asked_at IS NOT NULL);

CREATE UNIQUE INDEX lightning_invoices_key ON public.lightning_invoices USING btree (merchant_id, key) WHERE ((key IS NOT NULL) AND (state = 'reserved'::text));

CREATE INDEX lightning_invoices_waiting ON public.lightning_invoices USING btree (window_ends_at) WHERE (state = ANY (ARRAY['reserved'::text, 'open'::text]));

CREATE INDEX lightning_payments_asked ON public.lightning_payments USING btree (asked_at) WHERE (asked_at IS NOT NULL);

CREATE INDEX lightning_payments_hash ON public.lightning_payments USING btree (payment_hash);

CREATE INDEX lightning_payments_open ON public.lightning_payments USING btree (due_at) WHERE (state = ANY (ARRAY['waiting'::text, 'sent'::text]));

CREATE INDEX lightning_sent_hash ON public.lightning_sent USING btree (payment_hash);

CREATE INDEX lightning_unknown_invoices_open ON public.lightning_unknown_invoices USING btree (payment_hash) WHERE (paid_msat IS NULL);

CREATE INDEX lost_outputs_script ON public.lost_outputs USING btree (currency, script);

CREATE INDEX lost_questions_place ON public.lost_questions USING btree (currency, txid, place);

CREATE INDEX outgoing_attempts_height ON public.outgoing_attempts USING btree (currency, height) WHERE (height IS NOT NULL);

CREATE INDEX outgoing_attempts_sequence ON public.outgoing_attempts USING btree (sequence);

CREATE INDEX outgoing_attempts_signed ON public.outgoing_attempts USING btree (signed_at) WHERE (sequence > 0);

CREATE INDEX outgoing_batches_due ON public.outgoing_batches USING btree (due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX outgoing_batches_target ON public.outgoing_batches USING btree (target) WHERE (target IS NOT NULL);

CREATE INDEX outgoing_inputs_batch ON public.outgoing_inputs USING btree (batch_id);

CREATE UNIQUE INDEX outgoing_inputs_bound ON public.outgoing_inputs USING btree (currency, txid, vout) WHERE (NOT freed);

CREATE INDEX outgoing_inputs_made ON public.outgoing_inputs USING btree (made_in);

CREATE INDEX outgoing_inputs_spent ON public.outgoing_inputs USING btree (currency, spent_height) WHERE (spent_height IS NOT NULL);

CREATE INDEX outgoing_shares_payout ON public.outgoing_shares USING btree (payout_id);

CREATE INDEX own_addresses_made ON public.own_addresses USING btree (made_in);

CREATE INDEX own_outputs_gone ON public.own_outputs USING btree (currency) WHERE (booked AND (height IS NULL));

CREATE INDEX own_outputs_height ON public.own_outputs USING btree (currency, height) WHERE (height IS NOT NULL);

CREATE INDEX own_outputs_largest ON public.own_outputs USING btree (currency, amount DESC) WHERE (booked AND (NOT spent) AND (height IS NOT NULL));

CREATE INDEX own_outputs_script ON public.own_outputs USING btree (script);

CREATE INDEX own_outputs_unbooked ON public.own_outputs USING btree (currency) WHERE (NOT booked);

CREATE INDEX own_outputs_undone ON public.own_outputs USING btree (currency, gone_height) WHERE (gone_height IS NOT NULL);

CREATE INDEX payment_inputs_made_in ON public.payment_inputs USING btree (made_in);

CREATE INDEX payment_inputs_txid ON public.payment_inputs USING btree (currency, txid);

CREATE INDEX payments_conflict ON public.payments USING btree (currency, conflict_txid) WHERE (conflict_txid IS NOT NULL);

CREATE INDEX payments_due ON public.payments USING btree (currency, due_height, transaction_id) WHERE (due_height IS NOT NULL);

CREATE INDEX payments_due_at ON public.payments USING btree (currency, due_at, transaction_id) WHERE (due_at IS NOT NULL);

CREATE INDEX payments_height ON public.payments USING btree (currency, height) WHERE (height IS NOT NULL);

CREATE INDEX payments_largest ON public.payments USING btree (currency, amount DESC) WHERE ((part_key IS NOT NULL) AND (NOT spent) AND (height IS NOT NULL));

CREATE INDEX payments_spendable ON public.payments USING btree (currency, height) WHERE ((part_key IS NOT NULL) AND (NOT spent) AND (height IS NOT NULL));

CREATE INDEX payments_transaction ON public.payments USING btree (transaction_id);

CREATE INDEX payments_twin ON public.payments USING btree (twin_key);

CREATE INDEX payments_unfinalized ON public.payments USING btree (currency, height) WHERE ((lock IS NULL) AND (state = 'mined'::text) AND (currency = ANY (ARRAY['ETH'::text, 'USDT'::text])));

CREATE INDEX payments_unmined ON public.payments USING btree (currency) WHERE (state = ANY (ARRAY['mempool'::text, 'gone'::text]));

CREATE INDEX payout_settings_on ON public.payout_settings USING btree (usable_at) WHERE (enabled AND (paused_at IS NULL));

CREATE INDEX payouts_ach_reference ON public.payouts USING btree (upper("right"(id, 15))) WHERE (method = 'ach'::text);

CREATE INDEX payouts_automatic ON public.payouts USING btree (merchant_id, created_at) WHERE automatic;

CREATE UNIQUE INDEX payouts_automatic_open ON public.payouts USING btree (merchant_id, method) WHERE (automatic AND (step <> 'ended'::text));

CREATE INDEX payouts_batch ON public.payouts USING btree (batch_id) WHERE (batch_id IS NOT NULL);

CREATE INDEX payouts_held ON public.payouts USING btree (merchant_id) WHERE (step = 'held'::text);

CREATE INDEX payouts_kind ON public.payouts USING btree (merchant_id, status, method, created_at, id) WHERE (reimburses IS NULL);

CREATE INDEX payouts_merchant ON public.payouts USING btree (merchant_id, created_at, id) WHERE (reimburses IS NULL);

CREATE UNIQUE INDEX payouts_payment_hash ON public.payouts USING btree (payment_hash) WHERE ((payment_hash IS NOT NULL) AND (status <> 'failed'::text));

CREATE INDEX payouts_reimbursing ON public.payouts USING btree (reimburses, created_at, id) WHERE (reimburses IS NOT NULL);

CREATE UNIQUE INDEX payouts_reimbursing_open ON public.payouts USING btree (reimburses) WHERE ((reimburses IS NOT NULL) AND (step <> 'ended'::text));

CREATE INDEX payouts_under_way ON public.payouts USING btree (merchant_id, step) WHERE ((payment_hash IS NOT NULL) AND (step = ANY (ARRAY['queued'::text, 'batched'::text])));

CREATE INDEX payouts_unnoted ON public.payouts USING btree (reimburses) WHERE ((reimburses IS NOT NULL) AND (NOT noted));

CREATE INDEX payouts_waiting ON public.payouts USING btree (created_at) WHERE (step = ANY (ARRAY['held'::text, 'queued'::text]));

CREATE INDEX sign_ins_user ON public.sign_ins USING btree (user_id);

CREATE INDEX signing_keys_useless ON public.signing_keys USING btree (useless_after);

CREATE INDEX transactions_due ON public.transactions USING btree (currency, due_at) WHERE (due_at IS NOT NULL);

CREATE INDEX transactions_evm ON public.transactions USING btree (id) WHERE ((script IS NOT NULL) AND (currency = ANY (ARRAY['ETH'::text, 'USDT'::text])));

CREATE INDEX transactions_kind ON public.transactions USING btree (merchant_id, status, currency, created_at, id);

CREATE INDEX transactions_label ON public.transactions USING btree (label, merchant_id, created_at, id) WHERE (label IS NOT NULL);

CREATE INDEX transactions_lookup ON public.transactions USING btree (currency) WHERE lookup_wanted;

CREATE INDEX transactions_made_in ON public.transactions USING btree (made_in);

CREATE INDEX transactions_merchant ON public.transactions USING btree (merchant_id, created_at, id);

CREATE UNIQUE INDEX unknown_movements_open ON public.unknown_movements USING btree (currency, COALESCE(txid, finding)) WHERE (resolved_at IS NULL);

CREATE INDEX unprotected_payments_seen ON public.unprotected_payments USING btree (seen_at);

CREATE INDEX unprotected_payments_transaction ON public.unprotected_payments USING btree (transaction_id, currency);

CREATE INDEX unprotected_payments_untold ON public.unprotected_payments USING btree (currency) WHERE (told_at IS NULL);

CREATE INDEX users_merchant ON public.users USING btree (merchant_id);

CREATE INDEX webhooks_merchant ON public.webhooks USING btree (merchant_id, created_at, id);

CREATE INDEX written_off_batch ON public.written_off USING btree (batch_id) WHERE (batch_id IS NOT NULL);

CREATE INDEX written_off_script ON public.written_off USING btree (currency, script);

-- Views

create view ledger.account_balance as
 SELECT a.id AS account_id,
    a.code,
    a.kind,
    a.currency,
    a.merchant_id,
    b.amount
   FROM (ledger.account a
     JOIN ledger.balance b ON ((b.account_id = a.id)))
UNION ALL
 SELECT a.id AS account_id,
    a.code,
    a.kind,
    a.currency,
    a.merchant_id,
    ((h.amount)::numeric + (COALESCE(( SELECT sum((p.amount)::numeric) AS sum
           FROM (ledger.unrolled u
             JOIN ledger.posting p USING (entry_id))
          WHERE (p.account_id = a.id)), (0)::numeric) * (a.normal_side)::numeric)) AS amount
   FROM (ledger.account a
     JOIN ledger.rolled_up_balance h ON ((h.account_id = a.id)));

create view public.decided_payments as
 SELECT p.id,
    p.transaction_id,
    p.currency,
    p.txid,
    p.vout,
    p.amount,
    p.coinbase,
    p.twin_key,
    p.state,
    p.lock,
    p.height,
    p.block_hash,
    p.block_time,
    p.seen_at,
    p.caught_up_at,
    p.found_mined,
    p.gone_since,
    p.last_height,
    p.conflict_txid,
        CASE
            WHEN d.classified THEN COALESCE(p.noticed_at, d.decided_at)
            WHEN (d.payment_id IS NULL) THEN p.noticed_at
            ELSE NULL::timestamp with time zone
        END AS noticed_at,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.present
            ELSE d.present
        END AS present,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.on_time_minor)::numeric
            ELSE d.on_time_minor
        END AS on_time_minor,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.value_rate
            ELSE d.value_rate
        END AS value_rate,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.judged_block_hash
            ELSE d.judged_block_hash
        END AS judged_block_hash,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.generation
            ELSE d.generation
        END AS generation,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.credited)::numeric
            ELSE d.credited
        END AS credited,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.suspended)::numeric
            ELSE d.suspended
        END AS suspended,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.fee)::numeric
            ELSE d.fee
        END AS fee,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.in_available)::numeric
            ELSE d.in_available
        END AS in_available,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.in_suspense)::numeric
            ELSE d.in_suspense
        END AS in_suspense,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.in_refund)::numeric
            ELSE d.in_refund
        END AS in_refund,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.sent_back)::numeric
            ELSE d.sent_back
        END AS sent_back,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.owed)::numeric
            ELSE d.owed
        END AS owed,
        CASE
            WHEN (d.payment_id IS NULL) THEN (p.owed_fee)::numeric
            ELSE d.owed_fee
        END AS owed_fee,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.was_lost
            ELSE d.was_lost
        END AS was_lost,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.part_key
            ELSE d.part_key
        END AS part_key,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.due_height
            ELSE d.due_height
        END AS due_height,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.counted
            ELSE d.counted
        END AS counted,
        CASE
            WHEN (d.payment_id IS NULL) THEN p.due_at
            ELSE d.due_at
        END AS due_at,
    p.spent,
    p.paid_by
   FROM (payments p
     LEFT JOIN payment_decisions d ON (((d.transaction_id = p.transaction_id) AND (d.payment_id = p.id))));

-- Functions

CREATE OR REPLACE FUNCTION ledger.account_id(p_code text)
 RETURNS bigint
 LANGUAGE plpgsql
 SET search_path TO 'ledger', 'public', 'pg_temp'
AS $function$
declare a bigint; k account_kind;
begin
  select id into a from account where code = p_code;
  if a is not null then return a; end if;
  select * into k from account_kind where p_code ~ pattern;
  if k.kind is null then raise exception 'no kind of account fits %', p_code using errcode = '23503'; end if;
  insert into account (code, kind, currency, normal_side, locked, merchant_id)
    values (p_code, k.kind, substring(p_code from '([A-Z]+)(?::outbound)?$'), k.normal_side, k.locked,
            substring(p_code from 'merchant:(\d+):')::bigint)
    on conflict (code) do nothing returning id into a;
  if a is null then select id into a from account where code = p_code; return a; end if;
  if k.locked then insert into balance (account_id) values (a); else insert into rolled_up_balance (account_id) values (a); end if;
  return a;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.add_link(p_number bigint, p_last_entry bigint, p_hash bytea, p_seal bytea, p_at timestamp with time zone)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'pg_temp'
AS $function$
  with made as (insert into link (number, last_entry, hash, made_at) values (p_number, p_last_entry, p_hash, p_at) on conflict do nothing returning number)
  insert into link_seal (number, seal) select number, p_seal from made
$function$
;

CREATE OR REPLACE FUNCTION ledger.add_link_seal(p_number bigint, p_seal bytea)
 RETURNS void
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'pg_temp'
AS $function$ insert into link_seal (number, seal) values (p_number, p_seal) on conflict do nothing $function$
;

CREATE OR REPLACE FUNCTION ledger.check_entry()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
AS $function$
declare bad text; n bigint; parts numeric; moved numeric;
begin
  select coalesce(sum(q.n), 0), string_agg(q.currency || '=' || q.s, ',') filter (where q.s <> 0) into n, bad
    from (select currency, count(*) as n, sum(amount) as s from posting where entry_id = new.id group by 1) q;
  if n < 2 then raise exception 'entry % has % postings', new.id, n using errcode = '23514'; end if;
  if bad is not null then raise exception 'entry % is not balanced: %', new.id, bad using errcode = '23514'; end if;
  select sum(amount) into parts from part where entry_id = new.id;
  if parts is not null then
    select sum(p.amount) into moved from posting p join account a on a.id = p.account_id
      where p.entry_id = new.id and a.kind in ('asset_chain', 'asset_lightning');
    if moved is distinct from parts then
      raise exception 'the parts of entry % are %, its lines move %', new.id, parts, coalesce(moved, 0) using errcode = '23514';
    end if;
  end if;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.check_open()
 RETURNS trigger
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
AS $function$
declare e bigint;
begin
  select a.entry_id into e from added a join entry on entry.id = a.entry_id where entry.xid <> pg_current_xact_id() limit 1;
  if e is not null then raise exception 'entry % is closed', e using errcode = '23514'; end if;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.link_hash(before bytea, after_entry bigint, up_to bigint)
 RETURNS bytea
 LANGUAGE sql
 STABLE
AS $function$
  select sha256(before || convert_to(coalesce(string_agg(line, E'\n' order by id), ''), 'UTF8'))
    from (select n.id, concat_ws('|', n.id, n.kind, n.key, encode(n.body_hash, 'hex'), coalesce(n.reverses_id::text, '-'),
                                 coalesce(n.transaction_id, '-'), coalesce(n.payout_id, '-'),
                                 to_char(n.created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'),
                                 (select string_agg(concat_ws(':', p.line, p.account_id, p.currency, p.amount, coalesce(p.balance_after::text, '-')), ',' order by p.line)
                                    from ledger.posting p where p.entry_id = n.id),
                                 (select string_agg(concat_ws(':', t.key, t.amount, coalesce(t.reverses, '-')), ',' order by t.key)
                                    from ledger.part t where t.entry_id = n.id)) as line
            from ledger.entry n where n.id > after_entry and n.id <= up_to) covered
$function$
;

CREATE OR REPLACE FUNCTION ledger.lock_balances(p_codes text[])
 RETURNS TABLE(code text, amount units)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
begin
  perform ledger.account_id(t.wanted) from unnest(p_codes) as t(wanted)
    where not exists (select 1 from account a where a.code = t.wanted) order by t.wanted;
  return query
    with locked as materialized (
      select b.account_id, b.amount from balance b where b.account_id in (select a.id from account a where a.code = any (p_codes))
       order by b.account_id for update)
    select a.code, l.amount from locked l join account a on a.id = l.account_id;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.lock_free_balances(p_codes text[])
 RETURNS TABLE(code text, amount units)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
begin
  perform ledger.account_id(t.wanted) from unnest(p_codes) as t(wanted)
    where not exists (select 1 from account a where a.code = t.wanted) order by t.wanted;
  return query
    with free as materialized (
      select b.account_id, b.amount from balance b where b.account_id in (select a.id from account a where a.code = any (p_codes))
       order by b.account_id for update skip locked)
    select a.code, f.amount from free f join account a on a.id = f.account_id;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.post(p_key text, p_kind text, p_lines jsonb, p_at timestamp with time zone, p_transaction_id text DEFAULT NULL::text, p_payout_id text DEFAULT NULL::text, p_reverses_id bigint DEFAULT NULL::bigint)
 RETURNS TABLE(entry_id bigint, replayed boolean)
 LANGUAGE sql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
AS $function$
  select * from ledger.post_all(array[p_key], array[p_kind], array[p_lines], array[p_at], array[p_transaction_id], array[p_payout_id], array[p_reverses_id]);
$function$
;

CREATE OR REPLACE FUNCTION ledger.post_all(p_keys text[], p_kinds text[], p_lines jsonb[], p_at timestamp with time zone[], p_transaction_ids text[], p_payout_ids text[], p_reverses_ids bigint[])
 RETURNS TABLE(entry_id bigint, replayed boolean)
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare codes text[]; made bigint[]; made_keys text[]; wrong text; lowest numeric;
begin
  -- accounts are found or made in one global order, and so are the balance rows locked: no two callers wait for each other
  select array_agg(distinct x->>'a') into codes from unnest(p_lines) as l(lines), jsonb_array_elements(l.lines) x;
  perform ledger.account_id(c.code) from (select code from unnest(codes) as t(code)
    where not exists (select 1 from account a where a.code = t.code) order by 1) c;
  perform 1 from balance b where b.account_id in (select a.id from account a where a.code = any (codes) and a.locked) order by b.account_id for update;
  -- only now: whoever posts to one of these accounts afterwards gets higher ids
  with new as (
    insert into entry (kind, key, body_hash, reverses_id, transaction_id, payout_id, created_at)
      select t.kind, t.key, sha256(convert_to(t.kind || '|' || t.lines::text || '|' || coalesce(t.reverses_id::text, ''), 'UTF8')),
             t.reverses_id, t.transaction_id, t.payout_id, t.at
        from unnest(p_keys, p_kinds, p_lines, p_at, p_transaction_ids, p_payout_ids, p_reverses_ids) with ordinality
          as t(key, kind, lines, at, transaction_id, payout_id, reverses_id, n) order by t.n
      on conflict (key) do nothing returning id, key)
  select coalesce(array_agg(id), '{}'), coalesce(array_agg(key), '{}') into made, made_keys from new;
  if cardinality(made) < cardinality(p_keys) then
    select t.key into wrong from unnest(p_keys, p_kinds, p_lines, p_reverses_ids) as t(key, kind, lines, reverses_id) join entry e on e.key = t.key
      where e.body_hash <> sha256(convert_to(t.kind || '|' || t.lines::text || '|' || coalesce(t.reverses_id::text, ''), 'UTF8')) limit 1;
    if wrong is not null then raise exception 'ledger key % was used with another body', wrong using errcode = '23505'; end if;
  end if;
  with lines as materialized (
    select e.id as entry_id, j.ord::smallint as line, a.id as account_id, a.currency, (j.x->>'v')::public.units as amount, a.normal_side, a.locked
      from unnest(made, made_keys) as e(id, key)
      join (select distinct on (t.key) t.key, t.lines from unnest(p_keys, p_lines) as t(key, lines)) t on t.key = e.key,
           jsonb_array_elements(t.lines) with ordinality j(x, ord) join account a on a.code = j.x->>'a'),
  running as (
    select l.*, b.amount + sum(l.amount * l.normal_side) over (partition by l.account_id order by l.entry_id) as balance_after
      from lines l left join balance b on l.locked and b.account_id = l.account_id),
  changed as (
    update balance b set amount = b.amount + l.moved
      from (select account_id, sum(amount * normal_side) as moved from lines where locked group by account_id) l where b.account_id = l.account_id),
  queued as (insert into unrolled select distinct l.entry_id from lines l where not l.locked),
  posted as (
    insert into posting (entry_id, line, account_id, currency, amount, balance_after)
      select r.entry_id, r.line, r.account_id, r.currency, r.amount, r.balance_after from running r order by r.entry_id, r.line
      returning balance_after)
  select min(p.balance_after) into lowest from posted p;
  if lowest < 0 then
    raise exception 'an entry of the batch overdraws an account' using errcode = '23514', constraint = 'no_overdraft';
  end if;
  if cardinality(made) = cardinality(p_keys) then return query select m.id, false from unnest(made) as m(id); return; end if;
  return query select e.id, not e.id = any (made) from unnest(p_keys) with ordinality as t(key, n) join entry e on e.key = t.key order by t.n;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.post_parts(p_entries text[], p_keys text[], p_amounts numeric[], p_reverses text[])
 RETURNS void
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
 SET plan_cache_mode TO 'force_generic_plan'
AS $function$
declare n bigint; wrong text;
begin
  insert into part (key, entry_id, amount, reverses)
    select t.key, e.id, t.amount, t.reverses
      from unnest(p_entries, p_keys, p_amounts, p_reverses) as t(entry, key, amount, reverses) left join entry e on e.key = t.entry
    on conflict (key) do nothing;
  get diagnostics n = row_count;
  if n = cardinality(p_keys) then return; end if;
  select t.key into wrong from unnest(p_entries, p_keys, p_amounts, p_reverses) as t(entry, key, amount, reverses)
    join part d on d.key = t.key join entry e on e.id = d.entry_id
   where e.key <> t.entry or d.amount <> t.amount or d.reverses is distinct from t.reverses limit 1;
  if wrong is not null then raise exception 'ledger key % was used with another body', wrong using errcode = '23505'; end if;
end $function$
;

CREATE OR REPLACE FUNCTION ledger.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin raise exception 'ledger is append-only (% on %)', tg_op, tg_table_name using errcode = '42501'; end $function$
;

CREATE OR REPLACE FUNCTION ledger.roll_up(p_limit integer)
 RETURNS integer
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'public', 'pg_temp'
AS $function$
declare ids bigint[];
begin
  with taken as (
    delete from unrolled where entry_id in (select u.entry_id from unrolled u order by u.entry_id limit p_limit for update skip locked)
    returning entry_id)
  select array_agg(entry_id) into ids from taken;
  if ids is null then return 0; end if;
  perform 1 from rolled_up_balance b where b.account_id in (select p.account_id from posting p where p.entry_id = any (ids))
    order by b.account_id for update;
  update rolled_up_balance b set amount = b.amount + m.delta
    from (select p.account_id, sum(p.amount) * a.normal_side as delta
            from posting p join account a on a.id = p.account_id and not a.locked
           where p.entry_id = any (ids) group by p.account_id, a.normal_side) m
   where b.account_id = m.account_id;
  return cardinality(ids);
end $function$
;

CREATE OR REPLACE FUNCTION ledger.settled_entry()
 RETURNS bigint
 LANGUAGE plpgsql
 SECURITY DEFINER
 SET search_path TO 'ledger', 'pg_temp'
AS $function$
begin
  lock table ledger.entry in share mode;
  return (select coalesce(max(id), 0) from ledger.entry);
end
$function$
;

CREATE OR REPLACE FUNCTION public.announce_merchant()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin perform pg_notify('sign_in_changed', 'm:' || new.id); return null; end $function$
;

CREATE OR REPLACE FUNCTION public.announce_sign_in()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$ begin perform pg_notify('sign_in_changed', 's:' || new.id); return null; end $function$
;

CREATE OR REPLACE FUNCTION public.deliver_events()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  polled constant bigint := hashtextextended('deliveries polled', 0);
  is_told boolean;
  woken text;
begin
  insert into deliveries (webhook, event_id, due_at)
    select w.number, e.id, '-infinity'
      from added e cross join lateral (
        select number from webhooks where merchant_id = e.merchant_id and enabled and (events is null or e.type = any (events)) offset 0) w;
  is_told := case when found then case when pg_try_advisory_lock_shared(polled) then pg_advisory_unlock_shared(polled) end end;
  woken := concat_ws(',', case when is_told then 'deliveries' end,
                          case when exists (select from added e join event_streams s using (merchant_id)) then 'streams' end);
  if woken <> '' then perform pg_notify('hurry', woken); end if;
  return null;
end $function$
;

CREATE OR REPLACE FUNCTION public.hold_event_numbers()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform pg_advisory_xact_lock_shared(hashtextextended('event writers', 0)),
          pg_advisory_xact_lock_shared(hashtext('event writers since'), (extract(epoch from now())::bigint - 1577836800)::integer),
          set_config('idle_in_transaction_session_timeout', '20s', true);
  if current_setting('transaction_timeout', true) is not null then perform set_config('transaction_timeout', '2min', true); end if;
  return null;
end $function$
;

-- Triggers

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON ledger.entry FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only_all BEFORE TRUNCATE ON ledger.entry FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE CONSTRAINT TRIGGER balanced AFTER INSERT ON ledger.entry DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION ledger.check_entry();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON ledger.link FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only_all BEFORE TRUNCATE ON ledger.link FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON ledger.link_seal FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only_all BEFORE TRUNCATE ON ledger.link_seal FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON ledger.part FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only_all BEFORE TRUNCATE ON ledger.part FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER open AFTER INSERT ON ledger.part REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ledger.check_open();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON ledger.posting FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only_all BEFORE TRUNCATE ON ledger.posting FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER open AFTER INSERT ON ledger.posting REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION ledger.check_open();

CREATE TRIGGER append_only BEFORE DELETE OR UPDATE ON public.events FOR EACH ROW EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER append_only_all BEFORE TRUNCATE ON public.events FOR EACH STATEMENT EXECUTE FUNCTION ledger.refuse_change();

CREATE TRIGGER deliver AFTER INSERT ON public.events REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION deliver_events();

CREATE TRIGGER hold_numbers BEFORE INSERT ON public.events FOR EACH STATEMENT EXECUTE FUNCTION hold_event_numbers();

CREATE TRIGGER announce AFTER UPDATE OF suspended_at ON public.merchants FOR EACH ROW WHEN ((old.suspended_at IS DISTINCT FROM new.suspended_at)) EXECUTE FUNCTION announce_merchant();

CREATE TRIGGER announce AFTER UPDATE OF revoked_at ON public.sign_ins FOR EACH ROW WHEN ((old.revoked_at IS DISTINCT FROM new.revoked_at)) EXECUTE FUNCTION announce_sign_in();

-- Rights of the service

grant select on ledger.account to bursar_app;

grant select on ledger.account_balance to bursar_app;

grant select on ledger.account_kind to bursar_app;

grant select on ledger.balance to bursar_app;

grant select on ledger.entry to bursar_app;

grant select on ledger.link to bursar_app;

grant select on ledger.link_seal to bursar_app;

grant select on ledger.part to bursar_app;

grant select on ledger.posting to bursar_app;

grant select on ledger.rolled_up_balance to bursar_app;

grant select on ledger.unrolled to bursar_app;

grant delete, insert, select, update on public.account_xpubs to bursar_app;

grant insert, select on public.ach_entries to bursar_app;

grant insert, select on public.ach_files to bursar_app;

grant delete, insert, select, update on public.address_balances to bursar_app;

grant delete, insert, select, update on public.address_requests to bursar_app;

grant delete, insert, select on public.authorized_nonces to bursar_app;

grant delete, insert, select, update on public.bank_reads to bursar_app;

grant delete, insert, select, update on public.blocks to bursar_app;

grant delete, insert, select, update on public.breakers to bursar_app;

grant delete, insert, select, update on public.call_counts to bursar_app;

grant delete, insert, select, update on public.chain_cursors to bursar_app;

grant delete, insert, select, update on public.chain_receipts to bursar_app;

grant delete, insert, select, update on public.chain_reconciled to bursar_app;

grant delete, insert, select, update on public.chain_reconciled_blocks to bursar_app;

grant delete, insert, select, update on public.clock_settings to bursar_app;

grant delete, insert, select, update on public.comparisons to bursar_app;

grant delete, insert, select, update on public.conflicting_transactions to bursar_app;

grant insert, select, update on public.database_home to bursar_app;

grant delete, insert, select, update on public.database_replacements to bursar_app;

grant delete, insert, select, update on public.decided_payments to bursar_app;

grant delete, insert, select, update on public.deliveries to bursar_app;

grant delete, insert, select, update on public.delivery_attempts to bursar_app;

grant delete, insert, select, update on public.due_marks to bursar_app;

grant delete, insert, select, update on public.early_payments to bursar_app;

grant delete, insert, select, update on public.event_streams to bursar_app;

grant insert, select on public.events to bursar_app;

grant delete, insert, select, update on public.failed_sign_ins to bursar_app;

grant delete, insert, select, update on public.fee_rates to bursar_app;

grant delete, insert, select, update on public.forgotten_moves to bursar_app;

grant delete, insert, select, update on public.idempotency_keys to bursar_app;

grant delete, insert, select, update on public.lightning_channels to bursar_app;

grant delete, insert, select, update on public.lightning_invoices to bursar_app;

grant delete, insert, select, update on public.lightning_nodes to bursar_app;

grant delete, insert, select, update on public.lightning_payments to bursar_app;

grant delete, insert, select, update on public.lightning_sent to bursar_app;

grant delete, insert, select, update on public.lightning_unknown_invoices to bursar_app;

grant insert, select on public.lost_ach_entries to bursar_app;

grant insert, select on public.lost_outputs to bursar_app;

grant delete, insert, select on public.lost_questions to bursar_app;

grant delete, insert, select, update on public.merchant_settings to bursar_app;

grant delete, insert, select, update on public.merchants to bursar_app;

grant select on public.network to bursar_app;

grant delete, insert, select, update on public.node_conditions to bursar_app;

grant insert, select on public.outgoing_attempts to bursar_app;

grant delete, insert, select, update on public.outgoing_batches to bursar_app;

grant delete, insert, select on public.outgoing_inputs to bursar_app;

grant insert, select on public.outgoing_shares to bursar_app;

grant delete, insert, select, update on public.own_addresses to bursar_app;

grant delete, insert, select on public.own_outputs to bursar_app;

grant delete, insert, select, update on public.payment_decisions to bursar_app;

grant delete, insert, select, update on public.payment_inputs to bursar_app;

grant delete, insert, select, update on public.payments to bursar_app;

grant delete, insert, select, update on public.payout_settings to bursar_app;

grant insert, select on public.payout_settings_versions to bursar_app;

grant insert, select on public.payouts to bursar_app;

grant insert, select on public.raised_event_numbers to bursar_app;

grant delete, insert, select, update on public.rate_history to bursar_app;

grant delete, insert, select, update on public.rate_sources to bursar_app;

grant delete, insert, select, update on public.rates to bursar_app;

grant insert, select on public.reimbursement_shares to bursar_app;

grant delete, insert, select, update on public.schedules to bursar_app;

grant insert, select on public.seal_versions to bursar_app;

grant delete, insert, select, update on public.set_aside to bursar_app;

grant delete, insert, select, update on public.sign_ins to bursar_app;

grant delete, insert, select, update on public.signer_journal to bursar_app;

grant delete, insert, select, update on public.signing_keys to bursar_app;

grant delete, insert, select, update on public.skipped_addresses to bursar_app;

grant delete, insert, select, update on public.transactions to bursar_app;

grant delete, insert, select, update on public.unconfirmed_blocks to bursar_app;

grant delete, insert, select, update on public.unknown_movements to bursar_app;

grant delete, insert, select, update on public.unprotected_payments to bursar_app;

grant delete, insert, select, update on public.users to bursar_app;

grant delete, insert, select on public.waiting_signatures to bursar_app;

grant delete, insert, select, update on public.webhooks to bursar_app;

grant insert, select on public.written_off to bursar_app;
