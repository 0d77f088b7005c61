-- Many entries in one call: what the judge decides together is posted together, set by set, with the same guarantees for each entry.
set role bursar_ledger;

-- The only write path: entries in their order, each {key, kind, lines [{"a": account code, "v": "-100"}, ...], time, ...}; an account at most
-- once in an entry, + debit, - credit. A key that was posted before with the same body is a replay and changes nothing; with another body it
-- is an error.
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
create or replace function ledger.post(p_key text, p_kind text, p_lines jsonb, p_at timestamptz, p_transaction_id text default null,
                                       p_payout_id text default null, p_reverses_id bigint default null)
returns table (entry_id bigint, replayed boolean) language sql security definer set search_path = ledger, public, pg_temp as $$
  select * from ledger.post_all(array[p_key], array[p_kind], array[p_lines], array[p_at], array[p_transaction_id], array[p_payout_id], array[p_reverses_id]);
$$;

-- At commit: at least two lines, balanced per currency. Once for each entry, whatever the number of its lines.
create or replace function ledger.check_entry() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare bad text; n bigint;
begin
  select coalesce(sum(q.n), 0), string_agg(q.currency || '=' || q.s, ',') filter (where q.s <> 0) into n, bad
    from (select currency, count(*) as n, sum(amount) as s from posting where entry_id = new.id group by 1) q;
  if n < 2 then raise exception 'entry % has % postings', new.id, n using errcode = '23514'; end if;
  if bad is not null then raise exception 'entry % is not balanced: %', new.id, bad using errcode = '23514'; end if;
  return null;
end $$;
drop trigger balanced on ledger.posting;

-- No line is added to an entry after its own transaction; until then its entry's check is still to come.
create function ledger.check_open() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare e bigint;
begin
  select a.entry_id into e from added a join entry on entry.id = a.entry_id where entry.xid <> pg_current_xact_id() limit 1;
  if e is not null then raise exception 'entry % is closed', e using errcode = '23514'; end if;
  return null;
end $$;
create trigger open after insert on ledger.posting referencing new table as added for each statement execute function ledger.check_open();

-- As lock_balances, but waits for nobody: rows that are locked already are left out.
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

revoke all on function ledger.post_all(text[], text[], jsonb[], timestamptz[], text[], text[], bigint[]) from public;
revoke all on function ledger.lock_free_balances(text[]) from public;
revoke all on function ledger.check_open() from public;
grant execute on function ledger.post_all(text[], text[], jsonb[], timestamptz[], text[], text[], bigint[]) to bursar_app;
grant execute on function ledger.lock_free_balances(text[]) to bursar_app;
reset role;
