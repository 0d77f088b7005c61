-- The double-entry ledger. Append-only; every entry balances per currency (checked at commit); every balance change has a natural unique
-- key; merchants' and suspense accounts have a locked balance row that may not go below zero; the house's own accounts, which every
-- payment touches, are summed by a roll-up instead, so that no hot row limits the service. Only ledger.post writes.
create schema ledger authorization bursar_ledger;
grant usage on schema ledger to bursar_app;
set role bursar_ledger;

-- What kinds of account there are: their normal side (+1 debit, -1 credit) and whether they have a locked balance row.
create table ledger.account_kind (
  kind           text primary key,
  pattern        text not null unique,
  normal_side    smallint not null check (normal_side in (1, -1)),
  locked         boolean not null,
  allow_negative boolean not null default false
);
insert into ledger.account_kind values
  ('asset_chain',     '^asset:chain:[A-Z]+$',                  1, false, false),
  ('asset_outbound',  '^asset:chain:[A-Z]+:outbound$',         1, false, false),
  ('receivable',      '^asset:receivable:merchant:\d+:[A-Z]+$', 1, true,  false),
  ('available',       '^merchant:\d+:available:[A-Z]+$',      -1, true,  false),
  ('held',            '^merchant:\d+:held:[A-Z]+$',           -1, true,  false),
  ('suspense',        '^suspense:[A-Za-z0-9_]+:[A-Z]+$',      -1, true,  false),
  ('refund_payable',  '^refund_payable:[A-Za-z0-9_]+:[A-Z]+$', -1, true,  false),
  ('income',          '^income:[a-z_]+:[A-Z]+$',              -1, false, true),
  ('expense',         '^expense:[a-z_]+:[A-Z]+$',              1, false, false),
  ('fx',              '^fx:[A-Z]+$',                          -1, false, true),
  ('equity',          '^equity:house:[A-Z]+$',                -1, false, false);

create table ledger.account (
  id          bigint generated always as identity primary key,
  code        text collate "C" not null unique,
  kind        text not null references ledger.account_kind,
  currency    text not null,
  normal_side smallint not null check (normal_side in (1, -1)),
  locked      boolean not null,
  merchant_id bigint,
  created_at  timestamptz not null default clock_timestamp(),
  unique (id, currency)
);
create index account_merchant on ledger.account (merchant_id, kind) where merchant_id is not null;

-- Balance rows of the locked accounts, in the account's normal direction; rebuilt and compared by the audit.
create table ledger.balance (
  account_id bigint primary key references ledger.account,
  amount     public.units not null default 0,
  constraint no_overdraft check (amount >= 0)
) with (fillfactor = 80);

create table ledger.entry (
  id          bigint generated always as identity primary key,
  kind        text not null check (kind ~ '^[a-z_]{3,40}$'),
  key         text collate "C" not null unique check (length(key) between 3 and 255),
  body_hash   bytea not null,
  reverses_id bigint unique references ledger.entry,
  -- what the entry belongs to, for /list_balance_entries and the audit
  transaction_id text,
  payout_id   text,
  created_at  timestamptz not null,
  xid         xid8 not null default pg_current_xact_id()
);
create index entry_transaction on ledger.entry (transaction_id) where transaction_id is not null;

create table ledger.posting (
  entry_id      bigint not null references ledger.entry,
  line          smallint not null,
  account_id    bigint not null,
  currency      text not null,
  -- + debit, - credit
  amount        public.units not null check (amount <> 0),
  -- of a locked account, in its normal direction
  balance_after public.units,
  primary key (entry_id, line),
  unique (account_id, entry_id),
  foreign key (account_id, currency) references ledger.account (id, currency)
);

-- Entries whose house postings are not in house_balance yet. The roll-up moves them over in one transaction: a sum is always
-- house_balance + what is still queued here.
create table ledger.unrolled (entry_id bigint primary key references ledger.entry);
create table ledger.house_balance (
  account_id bigint primary key references ledger.account,
  amount     public.units not null default 0
);

create function ledger.refuse_change() returns trigger language plpgsql as
$$ begin raise exception 'ledger is append-only (% on %)', tg_op, tg_table_name using errcode = '42501'; end $$;
create trigger append_only before update or delete on ledger.posting for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.posting for each statement execute function ledger.refuse_change();
create trigger append_only before update or delete on ledger.entry for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.entry for each statement execute function ledger.refuse_change();

-- At commit: at least two lines, balanced per currency, and no line was added to an entry after its own transaction.
create function ledger.check_entry() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare e bigint; bad text; n integer; x xid8;
begin
  e := coalesce(to_jsonb(new)->>'entry_id', to_jsonb(new)->>'id')::bigint;
  select xid into x from entry where id = e;
  if x <> pg_current_xact_id() then raise exception 'entry % is closed', e using errcode = '23514'; end if;
  select count(*) into n from posting where entry_id = e;
  if n < 2 then raise exception 'entry % has % postings', e, n using errcode = '23514'; end if;
  select string_agg(currency || '=' || s, ',') into bad
    from (select currency, sum(amount) s from posting where entry_id = e group by 1 having sum(amount) <> 0) q;
  if bad is not null then raise exception 'entry % is not balanced: %', e, bad using errcode = '23514'; end if;
  return null;
end $$;
create constraint trigger balanced after insert on ledger.entry deferrable initially deferred for each row execute function ledger.check_entry();
create constraint trigger balanced after insert on ledger.posting deferrable initially deferred for each row execute function ledger.check_entry();

-- Finds or makes the account of a code; the kind decides side and row.
create function ledger.account_id(p_code text) returns bigint language plpgsql set search_path = ledger, public, pg_temp as $$
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
  if k.locked then insert into balance (account_id) values (a); else insert into house_balance (account_id) values (a); end if;
  return a;
end $$;

-- The only write path. p_lines: [{"a": account code, "v": "-100"}, ...], each account at most once, + debit, - credit.
-- The same key with the same body is a replay and changes nothing; with another body it is an error.
create function ledger.post(p_key text, p_kind text, p_lines jsonb, p_at timestamptz, p_transaction_id text default null,
                            p_payout_id text default null, p_reverses_id bigint default null)
returns table (entry_id bigint, replayed boolean) language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare
  h bytea := sha256(convert_to(p_kind || '|' || p_lines::text || '|' || coalesce(p_reverses_id::text, ''), 'UTF8'));
  eid bigint; old bytea; ids bigint[]; house boolean;
begin
  insert into entry (kind, key, body_hash, reverses_id, transaction_id, payout_id, created_at)
    values (p_kind, p_key, h, p_reverses_id, p_transaction_id, p_payout_id, p_at)
    on conflict (key) do nothing returning id into eid;
  if eid is null then
    select e.id, e.body_hash into eid, old from entry e where e.key = p_key;
    if old is distinct from h then
      raise exception 'ledger key % was used with another body', p_key using errcode = '23505';
    end if;
    return query select eid, true; return;
  end if;
  -- accounts are found or made in one global order, and so are the balance rows locked: no two entries wait for each other
  select array_agg(ledger.account_id(c.code)) into ids from (select x->>'a' as code from jsonb_array_elements(p_lines) x order by 1) c;
  select bool_or(not a.locked) into house from account a where a.id = any (ids);
  perform 1 from balance b where b.account_id = any (ids) order by b.account_id for update;
  with l as (
    select j.ord::smallint as line, a.id, a.currency, (j.x->>'v')::public.units as amount, a.normal_side, a.locked
      from jsonb_array_elements(p_lines) with ordinality j(x, ord) join account a on a.code = j.x->>'a'),
  changed as (
    update balance b set amount = b.amount + l.amount * l.normal_side from l where b.account_id = l.id
    returning b.account_id, b.amount)
  insert into posting (entry_id, line, account_id, currency, amount, balance_after)
    select eid, l.line, l.id, l.currency, l.amount, c.amount from l left join changed c on c.account_id = l.id;
  if house then insert into unrolled values (eid); end if;
  return query select eid, false;
end $$;

-- Moves at most p_limit queued entries into the house balances; returns how many. Any number of callers may run.
create function ledger.roll_up(p_limit integer) returns integer language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare n integer;
begin
  with taken as (
    delete from unrolled where entry_id in (select u.entry_id from unrolled u order by u.entry_id limit p_limit for update skip locked)
    returning entry_id),
  moved as (
    select p.account_id, sum(p.amount) * a.normal_side as delta
      from taken t join posting p using (entry_id) join account a on a.id = p.account_id and not a.locked
      group by p.account_id, a.normal_side order by p.account_id),
  changed as (update house_balance b set amount = b.amount + m.delta from moved m where b.account_id = m.account_id returning 1)
  select count(*) into n from taken;
  return n;
end $$;

-- What each account holds now, in its normal direction.
create view ledger.account_balance as
  select a.id as account_id, a.code, a.kind, a.currency, a.merchant_id, b.amount
    from ledger.account a join ledger.balance b on b.account_id = a.id
  union all
  select a.id, a.code, a.kind, a.currency, a.merchant_id,
         h.amount + coalesce((select sum(p.amount) from ledger.unrolled u join ledger.posting p using (entry_id)
                               where p.account_id = a.id), 0) * a.normal_side
    from ledger.account a join ledger.house_balance h on h.account_id = a.id;

grant select on all tables in schema ledger to bursar_app;
-- callers lock a merchant's balance rows before they decide (receivable first)
grant update (amount) on ledger.balance to bursar_ledger;
revoke all on all functions in schema ledger from public;
grant execute on function ledger.post(text, text, jsonb, timestamptz, text, text, bigint) to bursar_app;
grant execute on function ledger.roll_up(integer) to bursar_app;

-- Locks the balance rows of these accounts (those that exist) in the global order and returns them.
create function ledger.lock_balances(p_codes text[]) returns table (code text, amount public.units)
language plpgsql security definer set search_path = ledger, public, pg_temp as $$
begin
  perform 1 from balance b where b.account_id in (select a.id from account a where a.code = any (p_codes)) order by b.account_id for update;
  return query select a.code, b.amount from account a join balance b on b.account_id = a.id where a.code = any (p_codes);
end $$;
revoke all on function ledger.lock_balances(text[]) from public;
grant execute on function ledger.lock_balances(text[]) to bursar_app;
reset role;
