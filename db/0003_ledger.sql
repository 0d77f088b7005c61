-- The double-entry ledger. It is append-only. Every entry balances per currency, which is checked at commit, and every change of a balance
-- has a natural unique key. Merchants' and suspense accounts have a locked balance row that cannot go below zero. Every payment touches the
-- service's own accounts, so a roll-up sums them later and no single row limits how many payments are booked. Only ledger.post_all (and
-- ledger.post, which is one entry of it) and ledger.post_parts write.
create schema ledger authorization bursar_ledger;
grant usage on schema ledger to bursar_app;
set role bursar_ledger;

-- The kinds of accounts: their normal side (+1 debit, -1 credit) and whether they have a locked balance row.
create table ledger.account_kind (
  kind           text primary key,
  pattern        text not null unique,
  normal_side    smallint not null check (normal_side in (1, -1)),
  locked         boolean not null,
  allow_negative boolean not null default false
);
insert into ledger.account_kind values
  ('asset_chain',              '^asset:chain:[A-Z]+$',                  1, false, false),
  ('asset_outbound',           '^asset:chain:[A-Z]+:outbound$',         1, false, false),
  -- What our channels hold of the operator's own is no entry: payouts over Lightning may take more than payments brought there.
  ('asset_lightning',          '^asset:ln:[A-Z]+$',                     1, false, true),
  -- what our node has set out to pay, with the highest fee
  ('asset_lightning_outbound', '^asset:ln:[A-Z]+:outbound$',            1, false, false),
  -- what our bank holds may be less than nothing here: outside the sandbox nobody books what is paid in
  ('asset_bank',               '^asset:bank:USD$',                      1, false, true),
  ('asset_bank_outbound',      '^asset:bank:USD:outbound$',             1, false, false),
  ('receivable',               '^asset:receivable:merchant:\d+:[A-Z]+$', 1, true,  false),
  ('available',                '^merchant:\d+:available:[A-Z]+$',      -1, true,  false),
  ('held',                     '^merchant:\d+:held:[A-Z]+$',           -1, true,  false),
  ('suspense',                 '^suspense:[A-Za-z0-9_]+:[A-Z]+$',      -1, true,  false),
  ('refund_payable',           '^refund_payable:[A-Za-z0-9_]+:[A-Z]+$', -1, true,  false),
  ('income',                   '^income:[a-z_]+:[A-Z]+$',              -1, false, true),
  ('expense',                  '^expense:[a-z_]+:[A-Z]+$',              1, false, false),
  ('fx',                       '^fx:[A-Z]+$',                          -1, false, true),
  ('equity',                   '^equity:operator:[A-Z]+$',             -1, false, false);

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

-- Balances of the locked accounts, in the account's normal direction. The audit computes them again from the postings.
create table ledger.balance (
  account_id bigint primary key references ledger.account,
  amount     public.units not null default 0,
  constraint no_overdraft check (amount >= 0)
) with (fillfactor = 80);

-- The entries of one account follow each other in the order of their ids: an entry takes its id after its balance rows are locked.
create table ledger.entry (
  id             bigint generated always as identity primary key,
  kind           text not null check (kind ~ '^[a-z_]{3,40}$'),
  key            text collate "C" not null unique check (length(key) between 3 and 255),
  body_hash      bytea not null,
  reverses_id    bigint unique references ledger.entry,
  -- what the entry belongs to, for /list_balance_entries and the audit
  transaction_id text,
  payout_id      text,
  created_at     timestamptz not null,
  xid            xid8 not null default pg_current_xact_id()
);
create index entry_transaction on ledger.entry (transaction_id) where transaction_id is not null;

create table ledger.posting (
  entry_id      bigint not null references ledger.entry,
  line          smallint not null,
  account_id    bigint not null,
  currency      text not null,
  -- + debit, - credit
  amount        public.units not null check (amount <> 0),
  -- of a locked account, in its normal direction: the balance after the account's entry before this one, plus this amount
  balance_after public.units,
  primary key (entry_id, line),
  unique (account_id, entry_id),
  foreign key (account_id, currency) references ledger.account (id, currency)
);

-- What each payment has in an entry. One verdict may book thousands of payments: it is one entry, and each payment is a part of it, under a
-- key that only this payment can have. So none is booked or reversed twice, and one of many can be reversed alone.
create table ledger.part (
  -- dep:<currency>:<txid>:<vout>, with #2, #3 … when it was lost and is back; reorg:<currency>:<txid>:<vout>:<n> when it is reversed
  key      text collate "C" primary key check (length(key) between 3 and 255),
  -- no foreign key: ledger.post_parts reads it from ledger.entry, and no entry is ever removed
  entry_id bigint not null,
  -- + booked, - reversed
  amount   public.units not null check (amount <> 0),
  reverses text collate "C" unique references ledger.part
);
create index part_entry on ledger.part (entry_id);

-- Entries whose postings to the service's own accounts are not in rolled_up_balance yet. The roll-up moves them over in one database transaction:
-- a balance is always rolled_up_balance plus what is still queued here.
create table ledger.unrolled (entry_id bigint primary key references ledger.entry);
create table ledger.rolled_up_balance (
  account_id bigint primary key references ledger.account,
  amount     public.units not null default 0
);

-- What each account holds now, in its normal direction.
create view ledger.account_balance as
  select a.id as account_id, a.code, a.kind, a.currency, a.merchant_id, b.amount
    from ledger.account a join ledger.balance b on b.account_id = a.id
  union all
  select a.id, a.code, a.kind, a.currency, a.merchant_id,
         h.amount + coalesce((select sum(p.amount) from ledger.unrolled u join ledger.posting p using (entry_id)
                               where p.account_id = a.id), 0) * a.normal_side
    from ledger.account a join ledger.rolled_up_balance h on h.account_id = a.id;

create function ledger.refuse_change() returns trigger language plpgsql as
$$ begin raise exception 'ledger is append-only (% on %)', tg_op, tg_table_name using errcode = '42501'; end $$;
create trigger append_only before update or delete on ledger.posting for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.posting for each statement execute function ledger.refuse_change();
create trigger append_only before update or delete on ledger.entry for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.entry for each statement execute function ledger.refuse_change();
create trigger append_only before update or delete on ledger.part for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.part for each statement execute function ledger.refuse_change();

-- At commit, once for each entry: it has at least two lines and balances per currency; where it has parts, they are what it moves on chain.
create function ledger.check_entry() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
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
create constraint trigger balanced after insert on ledger.entry deferrable initially deferred for each row execute function ledger.check_entry();

-- A line or part can only be added in the database transaction of its entry, before the check above.
create function ledger.check_open() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare e bigint;
begin
  select a.entry_id into e from added a join entry on entry.id = a.entry_id where entry.xid <> pg_current_xact_id() limit 1;
  if e is not null then raise exception 'entry % is closed', e using errcode = '23514'; end if;
  return null;
end $$;
create trigger open after insert on ledger.posting referencing new table as added for each statement execute function ledger.check_open();
create trigger open after insert on ledger.part referencing new table as added for each statement execute function ledger.check_open();

-- Finds or creates the account of a code. The kind decides its side and whether it has a locked balance row.
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
  if k.locked then insert into balance (account_id) values (a); else insert into rolled_up_balance (account_id) values (a); end if;
  return a;
end $$;

-- Posts entries in their order: each has a key, kind, lines [{"a": account code, "v": "-100"}, ...] and time. An entry names an account at
-- most once; + debit, - credit. A key that was posted before with the same body is a replay and changes nothing; with another body it is an
-- error.
create function ledger.post_all(p_keys text[], p_kinds text[], p_lines jsonb[], p_at timestamptz[], p_transaction_ids text[], p_payout_ids text[],
                                p_reverses_ids bigint[])
returns table (entry_id bigint, replayed boolean) language plpgsql security definer set search_path = ledger, public, pg_temp
-- planned once for a session, not for each call
set plan_cache_mode = force_generic_plan as $$
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
end $$;

-- One entry.
create function ledger.post(p_key text, p_kind text, p_lines jsonb, p_at timestamptz, p_transaction_id text default null,
                                       p_payout_id text default null, p_reverses_id bigint default null)
returns table (entry_id bigint, replayed boolean) language sql security definer set search_path = ledger, public, pg_temp as $$
  select * from ledger.post_all(array[p_key], array[p_kind], array[p_lines], array[p_at], array[p_transaction_id], array[p_payout_id], array[p_reverses_id]);
$$;

-- Records what each payment has in entries that were just posted: p_entries names the entry of each part by its key. A key that was written
-- before is a replay when all of it is the same, and an error otherwise.
create function ledger.post_parts(p_entries text[], p_keys text[], p_amounts numeric[], p_reverses text[]) returns void
language plpgsql security definer set search_path = ledger, public, pg_temp set plan_cache_mode = force_generic_plan as $$
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
end $$;

-- Locks the balance rows of these accounts in the global order and returns them. Accounts that were never posted to are created, so that
-- their first entries wait for each other too. Planned once for a session and not for each call.
create function ledger.lock_balances(p_codes text[]) returns table (code text, amount public.units)
language plpgsql security definer set search_path = ledger, public, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  perform ledger.account_id(t.wanted) from unnest(p_codes) as t(wanted)
    where not exists (select 1 from account a where a.code = t.wanted) order by t.wanted;
  return query
    with locked as materialized (
      select b.account_id, b.amount from balance b where b.account_id in (select a.id from account a where a.code = any (p_codes))
       order by b.account_id for update)
    select a.code, l.amount from locked l join account a on a.id = l.account_id;
end $$;

-- As lock_balances, but never waits: it leaves out the rows that another session holds.
create function ledger.lock_free_balances(p_codes text[]) returns table (code text, amount public.units)
language plpgsql security definer set search_path = ledger, public, pg_temp set plan_cache_mode = force_generic_plan as $$
begin
  perform ledger.account_id(t.wanted) from unnest(p_codes) as t(wanted)
    where not exists (select 1 from account a where a.code = t.wanted) order by t.wanted;
  return query
    with free as materialized (
      select b.account_id, b.amount from balance b where b.account_id in (select a.id from account a where a.code = any (p_codes))
       order by b.account_id for update skip locked)
    select a.code, f.amount from free f join account a on a.id = f.account_id;
end $$;

-- Moves at most p_limit queued entries into rolled_up_balance and returns how many. It locks the balance rows in the global order, so several
-- callers may run at once and never deadlock.
create function ledger.roll_up(p_limit integer) returns integer language plpgsql security definer set search_path = ledger, public, pg_temp as $$
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
end $$;

-- A chain of hashes over the entries: each link covers the entries after the link before it, with their postings and parts, and is sealed by a
-- key outside the database. Whoever changes an entry that a link covers, even as the owner of these tables, cannot make the links fit again.
-- A later file that changes what link_hash reads must make the links anew.
create table ledger.link (
  number     bigint primary key check (number > 0),
  -- the last entry that it covers
  last_entry bigint not null unique,
  hash       bytea not null,
  made_at    timestamptz not null
);
-- One by each key that has ever vouched for a link: after a restore without the old key an operator vouches anew.
create table ledger.link_seal (
  number bigint not null references ledger.link,
  seal   bytea not null,
  primary key (number, seal)
);
create trigger append_only before update or delete on ledger.link for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.link for each statement execute function ledger.refuse_change();
create trigger append_only before update or delete on ledger.link_seal for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.link_seal for each statement execute function ledger.refuse_change();

-- Of the hash before and of the entries after one, up to another. Ids and no names, which a later version may change.
create function ledger.link_hash(before bytea, after_entry bigint, up_to bigint) returns bytea language sql stable as
$$
  select sha256(before || convert_to(coalesce(string_agg(line, E'\n' order by id), ''), 'UTF8'))
    from (select n.id, concat_ws('|', n.id, n.kind, n.key, encode(n.body_hash, 'hex'), coalesce(n.reverses_id::text, '-'),
                                 coalesce(n.transaction_id, '-'), coalesce(n.payout_id, '-'),
                                 to_char(n.created_at at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US'),
                                 (select string_agg(concat_ws(':', p.line, p.account_id, p.currency, p.amount, coalesce(p.balance_after::text, '-')), ',' order by p.line)
                                    from ledger.posting p where p.entry_id = n.id),
                                 (select string_agg(concat_ws(':', t.key, t.amount, coalesce(t.reverses, '-')), ',' order by t.key)
                                    from ledger.part t where t.entry_id = n.id)) as line
            from ledger.entry n where n.id > after_entry and n.id <= up_to) covered
$$;

-- The newest entry below which nothing is still to be committed: waits until nobody is writing one, and lets nobody begin meanwhile.
create function ledger.settled_entry() returns bigint language plpgsql security definer set search_path = ledger, pg_temp as
$$
begin
  lock table ledger.entry in share mode;
  return (select coalesce(max(id), 0) from ledger.entry);
end
$$;

-- Nothing happens when another worker has written one of this number.
create function ledger.add_link(p_number bigint, p_last_entry bigint, p_hash bytea, p_seal bytea, p_at timestamptz) returns void
language sql security definer set search_path = ledger, pg_temp as
$$
  with made as (insert into link (number, last_entry, hash, made_at) values (p_number, p_last_entry, p_hash, p_at) on conflict do nothing returning number)
  insert into link_seal (number, seal) select number, p_seal from made
$$;
create function ledger.add_link_seal(p_number bigint, p_seal bytea) returns void
language sql security definer set search_path = ledger, pg_temp as
$$ insert into link_seal (number, seal) values (p_number, p_seal) on conflict do nothing $$;

revoke all on all functions in schema ledger from public;
grant select on all tables in schema ledger to bursar_app;
grant execute on function ledger.post_all(text[], text[], jsonb[], timestamptz[], text[], text[], bigint[]) to bursar_app;
grant execute on function ledger.post(text, text, jsonb, timestamptz, text, text, bigint) to bursar_app;
grant execute on function ledger.post_parts(text[], text[], numeric[], text[]) to bursar_app;
grant execute on function ledger.lock_balances(text[]) to bursar_app;
grant execute on function ledger.lock_free_balances(text[]) to bursar_app;
grant execute on function ledger.roll_up(integer) to bursar_app;
grant execute on function ledger.settled_entry(), ledger.add_link(bigint, bigint, bytea, bytea, timestamptz), ledger.add_link_seal(bigint, bytea),
  ledger.link_hash(bytea, bigint, bigint) to bursar_app;
-- before it signs, the signer compares the hold of a payout, and whether its merchant owes something
grant usage on schema ledger to bursar_signer;
grant select on ledger.entry, ledger.posting, ledger.account, ledger.balance to bursar_signer;
reset role;
