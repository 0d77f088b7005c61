// The invariants of reimbursements as SQL queries: see audit.ts.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { Question } from './audit.ts';

/** SQL: the currency of the payments that a reimbursement `p` sends back. */
const PAID_IN = `case when p.payment_hash is null then p.currency else '${LIGHTNING.code}' end`;

export const OF_REIMBURSEMENTS: readonly Question[] = [
  {
    id: 'PAY-3',
    says: 'every reimbursement is what its payments are, and was taken from where they lay, of its transaction and merchant',
    text: `with shares as (
             select payout_id, sum(from_available) as available, sum(from_suspense) as suspense from reimbursement_shares group by 1)
           select p.id || ' is of ' || p.amount || ', its payments are ' || coalesce(c.available + c.suspense, 0) as what
             from payouts p left join shares c on c.payout_id = p.id
            where p.reimburses is not null and coalesce(c.available + c.suspense, 0) <> p.amount
           union all
           select p.id || ' is of the excess and takes ' || c.available || ' that were credited' from payouts p join shares c on c.payout_id = p.id
            where p.part = 'excess' and c.available > 0
           union all
           select p.id || ' is of merchant ' || p.merchant_id || ', its transaction of ' || t.merchant_id
             from payouts p join transactions t on t.id = p.reimburses where t.merchant_id <> p.merchant_id
           union all
           select p.id || ' takes payments of ' || d.transaction_id || ', it reimburses ' || p.reimburses
             from payouts p join reimbursement_shares c on c.payout_id = p.id join payments d on d.id = c.payment_id
            where d.transaction_id <> p.reimburses or d.currency <> ${PAID_IN}
           union all
           select p.id || ' took ' || h.available || ' from available and ' || h.suspense || ' from suspense, its payments say ' || coalesce(c.available, 0)
                  || ' and ' || coalesce(c.suspense, 0)
             from payouts p join ledger.entry e on e.key = 'po:' || p.id || ':hold' left join shares c on c.payout_id = p.id
             cross join lateral (
               select coalesce(sum(l.amount) filter (where a.kind = 'available' and a.merchant_id = p.merchant_id), 0) as available,
                      coalesce(sum(l.amount) filter (where a.code = 'suspense:' || p.reimburses || ':' || p.currency), 0) as suspense
                 from ledger.posting l join ledger.account a on a.id = l.account_id where l.entry_id = e.id) h
            where p.reimburses is not null and (h.available <> coalesce(c.available, 0) or h.suspense <> coalesce(c.suspense, 0))`,
  },
  {
    id: 'PAY-4',
    says: 'a confirmed reimbursement cost its share of the fee, its transaction knows of its end, and is reimbursed by the whole only',
    text: `select p.id || ' cost ' || coalesce(p.fee::text, 'nothing') || ', its share of the fee is ' || s.fee as what
             from payouts p join outgoing_batches b on b.id = p.batch_id and b.state = 'mined'
             join outgoing_attempts a on a.id = b.mined_attempt and a.height is not null
             join outgoing_shares s on s.attempt_id = a.id and s.payout_id = p.id
            where p.reimburses is not null and p.status = 'completed' and p.fee is distinct from s.fee
           union all
           select p.id || ' cost ' || coalesce(p.fee::text, 'nothing') || ', and what its invoice left is ' || p.fee_max from payouts p
            where p.reimburses is not null and p.payment_hash is not null and p.status = 'completed' and not p.resolved and p.fee is distinct from p.fee_max
           union all
           select p.id || ' is ' || p.status || ', and ' || p.reimburses || ' was never told' from payouts p
            where p.reimburses is not null and p.step = 'ended' and not p.noted
              and not exists (select 1 from due_marks m where m.transaction_id = p.reimburses)
              and not exists (select 1 from set_aside s where s.transaction_id = p.reimburses)
           union all
           select t.id || ' is reimbursed, and no reimbursement of the whole has ended' from transactions t
            where t.status = 'reimbursed' and not exists (select 1 from payouts p where p.reimburses = t.id and p.part = 'whole' and p.noted)
           union all
           select t.id || ' is ' || t.status || ', and ' || p.id || ' has sent the whole back' from payouts p join transactions t on t.id = p.reimburses
            where p.part = 'whole' and p.status = 'completed' and p.noted and ${PAID_IN} = t.currency
              and t.status in ('review', 'declined', 'succeeded', 'settled')`,
  },
];
