-- Coins that arrived at a script of ours which our key does not control on their chain: a witness program where there is no segwit. They are
-- noted so that an operator is told once, and are nothing else: no payment, no entry, no change of the transaction.
create table unprotected_coins (
  currency       text not null,
  txid           text collate "C" not null,
  vout           integer not null,
  transaction_id text collate "C" not null references transactions,
  amount         units not null,
  -- null while it was seen in the mempool only
  height         integer,
  seen_at        timestamptz not null,
  -- when the worker's log said so
  told_at        timestamptz,
  primary key (currency, txid, vout)
);
create index unprotected_coins_transaction on unprotected_coins (transaction_id, currency);
create index unprotected_coins_untold on unprotected_coins (currency) where told_at is null;
create index unprotected_coins_seen on unprotected_coins (seen_at);

-- What an earlier version recorded as payments of this kind. One that was booked is lost from now on: the judge takes its entry back as
-- rule 17 does, and until then the audit names it. One that was never booked is no payment any more.
do $$
declare
  worthless bigint[];
begin
  insert into unprotected_coins (currency, txid, vout, transaction_id, amount, height, seen_at)
    select p.currency, p.txid, p.vout, p.transaction_id, p.amount, p.height, p.seen_at
      from payments p join transactions t on t.id = p.transaction_id
     where p.currency in ('BCH', 'DASH', 'DOGE') and length(t.script) = 22 and substring(t.script from 1 for 2) = '\x0014';
  delete from chain_receipts r using unprotected_coins u where (r.currency, r.txid, r.vout) = (u.currency, u.txid, u.vout);
  update transactions set due_at = '-infinity' where id in (select transaction_id from unprotected_coins);
  select array_agg(p.id) into worthless
    from payments p join unprotected_coins u using (currency, txid, vout)
   where p.deposit_key is null and p.owed = 0 and p.owed_fee = 0 and p.sent_back = 0 and p.in_available = 0 and p.in_suspense = 0 and p.in_refund = 0;
  delete from payments where id = any (worthless);
  update payments p set state = 'conflicted', lock = null, height = null, block_hash = null, block_time = null, gone_since = null, conflict_txid = null
    from unprotected_coins u where (p.currency, p.txid, p.vout) = (u.currency, u.txid, u.vout);
end
$$;
