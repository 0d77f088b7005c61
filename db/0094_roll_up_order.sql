-- The roll-up locks the house's balance rows in the global order before it changes any: two of them side by side never wait for each other
-- in a circle.
set role bursar_ledger;

-- Moves at most p_limit queued entries into the house balances; returns how many. Any number of callers may run.
create or replace function ledger.roll_up(p_limit integer) returns integer language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare ids bigint[];
begin
  with taken as (
    delete from unrolled where entry_id in (select u.entry_id from unrolled u order by u.entry_id limit p_limit for update skip locked)
    returning entry_id)
  select array_agg(entry_id) into ids from taken;
  if ids is null then return 0; end if;
  perform 1 from house_balance b where b.account_id in (select p.account_id from posting p where p.entry_id = any (ids))
    order by b.account_id for update;
  update house_balance b set amount = b.amount + m.delta
    from (select p.account_id, sum(p.amount) * a.normal_side as delta
            from posting p join account a on a.id = p.account_id and not a.locked
           where p.entry_id = any (ids) group by p.account_id, a.normal_side) m
   where b.account_id = m.account_id;
  return cardinality(ids);
end $$;
reset role;
