-- The entries of one account follow each other in the order of their ids, from its first one on: each `balance_after` is that of the entry
-- before it plus its own amount. So an entry takes its id after its balance rows are locked, and the lock covers accounts that are new.
set role bursar_ledger;

-- The only write path. p_lines: [{"a": account code, "v": "-100"}, ...], each account at most once, + debit, - credit.
-- The same key with the same body is a replay and changes nothing; with another body it is an error.
create or replace function ledger.post(p_key text, p_kind text, p_lines jsonb, p_at timestamptz, p_transaction_id text default null,
                            p_payout_id text default null, p_reverses_id bigint default null)
returns table (entry_id bigint, replayed boolean) language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare
  h bytea := sha256(convert_to(p_kind || '|' || p_lines::text || '|' || coalesce(p_reverses_id::text, ''), 'UTF8'));
  eid bigint; old bytea; ids bigint[]; house boolean;
begin
  -- accounts are found or made in one global order, and so are the balance rows locked: no two entries wait for each other
  select array_agg(ledger.account_id(c.code)) into ids from (select x->>'a' as code from jsonb_array_elements(p_lines) x order by 1) c;
  select bool_or(not a.locked) into house from account a where a.id = any (ids);
  perform 1 from balance b where b.account_id = any (ids) order by b.account_id for update;
  -- only now: whoever posts to one of these accounts afterwards gets a higher id
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

-- Locks the balance rows of these accounts in the global order and returns them; accounts that were never posted to are made, so that their
-- first entries wait for each other too.
create or replace function ledger.lock_balances(p_codes text[]) returns table (code text, amount public.units)
language plpgsql security definer set search_path = ledger, public, pg_temp as $$
begin
  perform ledger.account_id(c.wanted) from (select t.wanted from unnest(p_codes) as t(wanted) order by 1) c;
  perform 1 from balance b where b.account_id in (select a.id from account a where a.code = any (p_codes)) order by b.account_id for update;
  return query select a.code, b.amount from account a join balance b on b.account_id = a.id where a.code = any (p_codes);
end $$;
reset role;
