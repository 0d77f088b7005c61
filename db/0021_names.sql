-- The field's words. Tables and columns are renamed, and the rows stay. An account keeps its entries: only its code changes, and with it the
-- pattern of its kind. What an entry was posted with (its hash) keeps the old code, so one that came again would be refused, never booked twice.
alter table own_coins rename to own_outputs;
alter table own_outputs rename constraint own_coins_pkey to own_outputs_pkey;
alter table own_outputs rename constraint own_coins_script_fkey to own_outputs_script_fkey;
alter table own_outputs rename constraint own_coins_amount_check to own_outputs_amount_check;
alter index own_coins_height rename to own_outputs_height;
alter index own_coins_unbooked rename to own_outputs_unbooked;

alter table early_coins rename to early_payments;
alter table early_payments rename constraint early_coins_pkey to early_payments_pkey;
alter table early_payments rename constraint early_coins_transaction_id_fkey to early_payments_transaction_id_fkey;
alter table early_payments rename constraint early_coins_accepted to early_payments_accepted;
alter table early_payments rename constraint early_coins_amount_check to early_payments_amount_check;
alter index early_coins_open rename to early_payments_open;

alter table unprotected_coins rename to unprotected_payments;
alter table unprotected_payments rename constraint unprotected_coins_pkey to unprotected_payments_pkey;
alter table unprotected_payments rename constraint unprotected_coins_transaction_id_fkey to unprotected_payments_transaction_id_fkey;
alter index unprotected_coins_seen rename to unprotected_payments_seen;
alter index unprotected_coins_transaction rename to unprotected_payments_transaction;
alter index unprotected_coins_untold rename to unprotected_payments_untold;

alter table reimbursed_coins rename to reimbursement_shares;
alter table reimbursement_shares rename constraint reimbursed_coins_pkey to reimbursement_shares_pkey;
alter table reimbursement_shares rename constraint reimbursed_coins_payout_id_fkey to reimbursement_shares_payout_id_fkey;
alter table reimbursement_shares rename constraint reimbursed_coins_check to reimbursement_shares_check;
alter table reimbursement_shares rename constraint reimbursed_coins_from_available_check to reimbursement_shares_from_available_check;
alter table reimbursement_shares rename constraint reimbursed_coins_from_suspense_check to reimbursement_shares_from_suspense_check;

-- up to where the chain (USD: the bank's files) was compared with what we believe
alter table coin_checks rename to comparisons;
alter table comparisons rename constraint coin_checks_pkey to comparisons_pkey;

-- transactions that spend the same outputs as a payment that we have seen
alter table rivals rename to conflicting_transactions;
alter table conflicting_transactions rename constraint rivals_pkey to conflicting_transactions_pkey;
alter index rivals_height rename to conflicting_transactions_height;
alter index rivals_unmined rename to conflicting_transactions_unmined;

alter table ach_looks rename to bank_reads;
alter table bank_reads rename column looked_at to begun_at;
alter table bank_reads rename constraint ach_looks_pkey to bank_reads_pkey;
alter table bank_reads rename constraint ach_looks_one_row_check to bank_reads_one_row_check;

-- the key of the part (ledger.part) by which a payment is booked now
alter table payments rename column deposit_key to part_key;
alter table payments rename constraint payments_deposit_key_key to payments_part_key_key;
alter table payment_decisions rename column deposit_key to part_key;
alter view decided_payments rename column deposit_key to part_key;

-- which shows the column of 0018 too
create or replace view decided_payments as
  select p.id, p.transaction_id, p.currency, p.txid, p.vout, p.amount, p.coinbase, p.twin_key, p.state, p.lock, p.height, p.block_hash, p.block_time,
         p.seen_at, p.caught_up_at, p.found_mined, p.gone_since, p.last_height, p.conflict_txid,
         case when d.classified then coalesce(p.noticed_at, d.decided_at) when d.payment_id is null then p.noticed_at end as noticed_at,
         case when d.payment_id is null then p.present else d.present end as present,
         case when d.payment_id is null then p.on_time_minor else d.on_time_minor end as on_time_minor,
         case when d.payment_id is null then p.value_rate else d.value_rate end as value_rate,
         case when d.payment_id is null then p.judged_block_hash else d.judged_block_hash end as judged_block_hash,
         case when d.payment_id is null then p.generation else d.generation end as generation,
         case when d.payment_id is null then p.credited else d.credited end as credited,
         case when d.payment_id is null then p.suspended else d.suspended end as suspended,
         case when d.payment_id is null then p.fee else d.fee end as fee,
         case when d.payment_id is null then p.in_available else d.in_available end as in_available,
         case when d.payment_id is null then p.in_suspense else d.in_suspense end as in_suspense,
         case when d.payment_id is null then p.in_refund else d.in_refund end as in_refund,
         case when d.payment_id is null then p.sent_back else d.sent_back end as sent_back,
         case when d.payment_id is null then p.owed else d.owed end as owed,
         case when d.payment_id is null then p.owed_fee else d.owed_fee end as owed_fee,
         case when d.payment_id is null then p.was_lost else d.was_lost end as was_lost,
         case when d.payment_id is null then p.part_key else d.part_key end as part_key,
         case when d.payment_id is null then p.due_height else d.due_height end as due_height,
         case when d.payment_id is null then p.counted else d.counted end as counted,
         case when d.payment_id is null then p.due_at else d.due_at end as due_at,
         p.spent, p.paid_by
    from payments p left join payment_decisions d on d.transaction_id = p.transaction_id and d.payment_id = p.id;

update payouts set error = 'payments_lost' where error = 'coins_lost';

set role bursar_ledger;
alter table ledger.house_balance rename to rolled_up_balance;
alter table ledger.rolled_up_balance rename constraint house_balance_pkey to rolled_up_balance_pkey;
alter table ledger.rolled_up_balance rename constraint house_balance_account_id_fkey to rolled_up_balance_account_id_fkey;
update ledger.account_kind set pattern = '^equity:operator:[A-Z]+$' where kind = 'equity';
update ledger.account set code = 'equity:operator:' || currency where kind = 'equity';

create or replace function ledger.check_entry() returns trigger language plpgsql security definer set search_path = ledger, public, pg_temp as $$
declare bad text; n bigint; parts numeric; moved numeric;
begin
  select coalesce(sum(q.n), 0), string_agg(q.currency || '=' || q.s, ',') filter (where q.s <> 0) into n, bad
    from (select currency, count(*) as n, sum(amount) as s from posting where entry_id = new.id group by 1) q;
  if n < 2 then raise exception 'entry % has % postings', new.id, n using errcode = '23514'; end if;
  if bad is not null then raise exception 'entry % is not balanced: %', new.id, bad using errcode = '23514'; end if;
  select sum(amount) into parts from part where entry_id = new.id;
  if parts is not null then
    select sum(p.amount) into moved from posting p join account a on a.id = p.account_id where p.entry_id = new.id and a.kind = 'asset_chain';
    if moved is distinct from parts then
      raise exception 'the parts of entry % are %, its lines move %', new.id, parts, coalesce(moved, 0) using errcode = '23514';
    end if;
  end if;
  return null;
end $$;

create or replace function ledger.account_id(p_code text) returns bigint language plpgsql set search_path = ledger, public, pg_temp as $$
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

create or replace function ledger.roll_up(p_limit integer) returns integer language plpgsql security definer set search_path = ledger, public, pg_temp as $$
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
reset role;
