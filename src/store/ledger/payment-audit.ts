// The invariants of payments and of where their units are in the ledger, as SQL queries: see audit.ts.
import { KEYS_OF_ONE } from '../../core/judge/postings.ts';
import { balanceSql } from '../transactions/case-facts.ts';
import type { Question } from './audit.ts';

export const OF_PAYMENTS: readonly Question[] = [
  {
    id: 'INV-8',
    says: 'every booked payment has its deposit entry of the same transaction, and every deposit entry that was not reversed its payment',
    text: `select 'payment ' || p.txid || ':' || p.vout || ' names an entry that is not there or was taken back' as what
             from decided_payments p left join ledger.part d on d.key = p.part_key
            where p.part_key is not null and (d.key is null or exists (select 1 from ledger.part r where r.reverses = d.key))
           union all
           select 'payment ' || p.txid || ':' || p.vout || ' of ' || p.amount || ' to ' || p.transaction_id || ' names a ' || e.kind || ' of ' || d.amount
                  || ' to ' || coalesce(e.transaction_id, 'nothing')
             from decided_payments p join ledger.part d on d.key = p.part_key join ledger.entry e on e.id = d.entry_id
            where e.kind <> 'deposit' or e.transaction_id is distinct from p.transaction_id or d.amount <> p.amount
           union all
           select 'deposit ' || d.key || ' has no payment' from ledger.part d join ledger.entry e on e.id = d.entry_id
            where e.kind = 'deposit' and not exists (select 1 from ledger.part r where r.reverses = d.key)
              and not exists (select 1 from payments p where p.part_key = d.key)
              and not exists (select 1 from payment_decisions p where p.part_key = d.key)`,
  },
  {
    id: 'INV-9',
    says: 'no payment is credited twice, and what is reversed is what was booked',
    text: `select min(d.key) || ' is booked ' || count(*) || ' times' as what from ledger.part d
            where d.key like 'dep:%' and not exists (select 1 from ledger.part r where r.reverses = d.key)
            group by split_part(d.key, '#', 1), (coalesce(nullif(split_part(d.key, '#', 2), '')::int, 1) - 1) / ${KEYS_OF_ONE} having count(*) > 1
           union all
           select r.key || ' takes ' || -r.amount || ' of ' || d.amount || ' back' from ledger.part r join ledger.part d on d.key = r.reverses
            where r.amount <> -d.amount`,
  },
  {
    id: 'BOOK-1',
    says: 'every unit of a payment is in exactly one place',
    text: `select 'payment ' || txid || ':' || vout || ' of ' || amount || ' is booked as ' || (in_available + in_suspense + in_refund + sent_back) as what
             from decided_payments where part_key is not null and in_available + in_suspense + in_refund + sent_back <> amount`,
  },
  {
    id: 'BOOK-13',
    says: 'what is payable to a customer is what the payments of the transaction say',
    // one whose end the judge has not noted yet is left out
    text: `select coalesce(l.code, p.code) || ' holds ' || coalesce(l.amount, 0) || ', its payments say ' || coalesce(p.amount, 0) as what
             from (select code, split_part(code, ':', 2) as transaction_id, amount from ledger.account_balance where kind = 'refund_payable' and amount <> 0) l
             full join (select 'refund_payable:' || transaction_id || ':' || ${balanceSql('currency')} as code, transaction_id, sum(in_refund) as amount from decided_payments
                         group by 1, 2 having sum(in_refund) <> 0) p on p.code = l.code
            where coalesce(l.amount, 0) <> coalesce(p.amount, 0)
              and not exists (select 1 from payouts r where r.reimburses = coalesce(l.transaction_id, p.transaction_id) and r.step = 'ended' and not r.noted)`,
  },
  {
    id: 'BOOK-11',
    says: 'every payment belongs to a transaction',
    text: `select p.txid || ':' || p.vout || ' of ' || p.amount || ' ' || p.currency || ' belongs to ' || p.transaction_id || ', which is not there' as what
             from payments p where not exists (select 1 from transactions t where t.id = p.transaction_id)`,
  },
  {
    id: 'BOOK-12',
    says: 'the amount of every deposit, and of every loss, is that of its payments',
    text: `select e.kind || ' ' || e.key || ' moves ' || coalesce(c.moved, 0) || ', its payments are ' || coalesce(d.parts, 0) as what
             from ledger.entry e
             left join (select p.entry_id, sum(p.amount) as moved from ledger.posting p join ledger.account a on a.id = p.account_id
                         where a.kind in ('asset_chain', 'asset_lightning') group by 1) c on c.entry_id = e.id
             left join (select entry_id, sum(amount) as parts from ledger.part group by 1) d on d.entry_id = e.id
            where (e.kind in ('deposit', 'deposit_lost') or d.parts is not null) and c.moved is distinct from d.parts`,
  },
];
