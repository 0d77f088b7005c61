-- What each payment has in an entry. One verdict may book thousands of payments: it is one entry, and each payment is a part of it, under the
-- key that only this payment can have. So none is booked or taken back twice, one of many can be taken back alone, and every unit of the
-- coins is told by its outpoint.
set role bursar_ledger;

create table ledger.part (
  -- dep:<currency>:<txid>:<vout>, #2, #3 … when it was lost and is back; reorg:<currency>:<txid>:<vout>:<n> when it is taken back
  key      text collate "C" primary key check (length(key) between 3 and 255),
  -- no foreign key: it is taken from ledger.entry where it is written, and nothing is ever removed there
  entry_id bigint not null,
  -- + coins that came, - coins that went
  amount   public.units not null check (amount <> 0),
  reverses text collate "C" unique references ledger.part
);
create index part_entry on ledger.part (entry_id);
create trigger append_only before update or delete on ledger.part for each row execute function ledger.refuse_change();
create trigger append_only_all before truncate on ledger.part for each statement execute function ledger.refuse_change();

insert into ledger.part (key, entry_id, amount, reverses)
  select e.key, e.id, p.amount, r.key
    from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id and a.kind = 'asset_chain'
    left join ledger.entry r on r.id = e.reverses_id
   where e.kind in ('deposit', 'deposit_lost') order by e.id;

-- No line and no part is added to an entry after its own transaction; until then its entry's check is still to come.
create trigger open after insert on ledger.part referencing new table as added for each statement execute function ledger.check_open();

-- At commit: at least two lines, balanced per currency; where an entry has parts, they are the coins that it moves.
create or replace function ledger.check_entry() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare bad text; n bigint; parts numeric; coins numeric;
begin
  select coalesce(sum(q.n), 0), string_agg(q.currency || '=' || q.s, ',') filter (where q.s <> 0) into n, bad
    from (select currency, count(*) as n, sum(amount) as s from posting where entry_id = new.id group by 1) q;
  if n < 2 then raise exception 'entry % has % postings', new.id, n using errcode = '23514'; end if;
  if bad is not null then raise exception 'entry % is not balanced: %', new.id, bad using errcode = '23514'; end if;
  select sum(amount) into parts from part where entry_id = new.id;
  if parts is not null then
    select sum(p.amount) into coins from posting p join account a on a.id = p.account_id where p.entry_id = new.id and a.kind = 'asset_chain';
    if coins is distinct from parts then
      raise exception 'the parts of entry % are %, its coins %', new.id, parts, coalesce(coins, 0) using errcode = '23514';
    end if;
  end if;
  return null;
end $$;

-- What each payment has in entries that were just posted: p_entries names the entry of each part by its key. As with entries a key that was
-- written before is a replay when all of it is the same, and an error when it is not.
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
revoke all on function ledger.post_parts(text[], text[], numeric[], text[]) from public;
revoke all on ledger.part from public;
grant select on ledger.part to bursar_app;
grant execute on function ledger.post_parts(text[], text[], numeric[], text[]) to bursar_app;
reset role;
