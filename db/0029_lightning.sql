-- Payments over Lightning. What our node holds in its channels is an account of its own; the rest of the books does not differ from coins that
-- came on chain.
set role bursar_ledger;
insert into ledger.account_kind values ('asset_lightning', '^asset:ln:[A-Z]+$', 1, false, false);

-- As before, with what payments bring to our channels too.
create or replace function ledger.check_entry() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
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
end $$;
reset role;

-- Every invoice that our node was asked for. The row is committed before the node is asked, with the preimage: the same call again cannot make
-- a second invoice, and what was made for a transaction that was never written is found and cancelled.
create table lightning_invoices (
  payment_hash    text collate "C" primary key check (payment_hash ~ '^[0-9a-f]{64}$'),
  -- sealed where the installation has a key for that
  preimage        bytea not null,
  -- the transaction that it is for; it is written only once the node has the invoice
  transaction_id  text collate "C" not null unique,
  merchant_id     bigint not null,
  -- the idempotency key of the call that asked for it, and the hash of that call's body: the call repeated gets the same invoice
  key             text,
  body_hash       bytea,
  amount_msat     numeric(24) not null check (amount_msat > 0),
  usd_minor       bigint not null check (usd_minor > 0),
  -- the quote, as transactions have it
  rate            numeric not null check (rate > 0),
  rate_at         timestamptz not null,
  rate_sources    jsonb not null,
  -- reserved: no transaction is written for it yet; open: its transaction waits for payment; closed: the node cannot be paid by it any more;
  -- settled: it is paid
  state           text not null check (state in ('reserved', 'open', 'closed', 'settled')),
  created_at      timestamptz not null,
  window_ends_at  timestamptz not null,
  paid_msat       numeric(24) check (paid_msat >= amount_msat),
  settled_at      timestamptz,
  settle_index    bigint,
  check ((state = 'settled') = (paid_msat is not null)),
  check ((state = 'settled') = (settled_at is not null))
);
create unique index lightning_invoices_key on lightning_invoices (merchant_id, key) where key is not null and state = 'reserved';
create index lightning_invoices_waiting on lightning_invoices (window_ends_at) where state in ('reserved', 'open');

-- The node that invoices were made by, and how far its settlements were read. With another public key it is another node.
create table lightning_nodes (
  identity     text primary key,
  settle_index bigint not null default 0 check (settle_index >= 0),
  seen_at      timestamptz not null,
  -- up to this invoice of the node everything was compared with the books, and when
  compared_index bigint not null default 0,
  compared_at    timestamptz
);
