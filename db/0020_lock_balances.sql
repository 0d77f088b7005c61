-- As before (0003), planned once for a session and not for each call, and without a call for each account that is there already.
set role bursar_ledger;
create or replace function ledger.lock_balances(p_codes text[]) returns table (code text, amount public.units)
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
reset role;
