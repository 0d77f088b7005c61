-- A chain of hashes over the ledger: each link covers the entries after the link before it, with their postings and parts, and is sealed by a
-- key outside the database. Whoever changes an entry that a link covers, even as the owner of these tables, cannot make the links fit again.
-- A later file that changes what link_hash reads must make the links anew.
set role bursar_ledger;

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

revoke all on function ledger.settled_entry(), ledger.add_link(bigint, bigint, bytea, bytea, timestamptz), ledger.add_link_seal(bigint, bytea),
  ledger.link_hash(bytea, bigint, bigint) from public;
grant execute on function ledger.settled_entry(), ledger.add_link(bigint, bigint, bytea, bytea, timestamptz), ledger.add_link_seal(bigint, bytea),
  ledger.link_hash(bytea, bigint, bigint) to bursar_app;
grant select on ledger.link, ledger.link_seal to bursar_app;
reset role;
