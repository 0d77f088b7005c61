// The invariants of batches as SQL queries, see audit.ts: what their rows say of each other, as somebody in the database could have changed it.
import { CURRENCY_CODES, isUtxo } from '../../core/currency.ts';
import type { Question } from './audit.ts';

/** SQL: the currencies of Ethereum's chain, where a sender and a nonce stand in the place of an output. */
const EVM = CURRENCY_CODES.filter((code) => !isUtxo(code))
  .map((code) => `'${code}'`)
  .join();
/** SQL: the chain has shown something of a batch that the driver has not booked yet. */
const UNSETTLED = `b.due_at is not distinct from '-infinity'`;

/** SQL: the reimbursement failed, its transaction is in the chain after all, and the service bears it; what was borne is undone by the next entry of it. */
export const isBorne = (payout: string): string =>
  `(select count(*) % 2 = 1 from ledger.entry e
     where e.key >= 'po:' || ${payout}.id || ':' and e.key < 'po:' || ${payout}.id || ';' and e.kind = 'payout_borne')`;

export const OF_BATCHES: readonly Question[] = [
  {
    id: 'OUT-4',
    says: 'every batch is in the state that its payouts, its transactions and its outputs are in',
    text: `select p.id || ' is ' || p.status || ', ' || p.step || ' in ' || coalesce('batch ' || b.id || ', which is ' || b.state, 'no batch') as what
             from payouts p left join outgoing_batches b on b.id = p.batch_id
            where p.script is not null and p.internal_to is null
              and case when b.id is null then p.step = 'batched' or p.status = 'completed'
                       -- one that was refused keeps the batch in which it was alone
                       when p.step in ('held', 'queued') then b.state <> 'dead' or exists (select 1 from outgoing_attempts a where a.batch_id = b.id)
                       when b.state = 'reserved' then p.step <> 'batched'
                       when b.state = 'signed' then p.status not in ('processing', 'completed')
                       when b.state in ('mined', 'final') then p.status <> 'completed' and not ${UNSETTLED} and not ${isBorne('p')}
                       else p.status <> 'failed' and not ${UNSETTLED} end
              -- a person has found it paid; what says so in the history is older, and reimbursements have none
              and not p.resolved and not exists (select 1 from events e where e.object_id = p.id and e.reason like 'an operator found it paid%')
           union all
           select 'batch ' || b.id || ' is ' || b.state || ' with ' || (select count(*) from outgoing_attempts where batch_id = b.id) || ' signed transactions'
             from outgoing_batches b
            where case when b.state = 'reserved' then exists (select 1 from outgoing_attempts a where a.batch_id = b.id)
                       when b.state = 'dead' then false else not exists (select 1 from outgoing_attempts a where a.batch_id = b.id) end
           union all
           select 'batch ' || b.id || ' is ' || b.state || ', and ' || coalesce(a.txid, 'nothing') || ' that was mined is in no block'
             from outgoing_batches b left join outgoing_attempts a on a.id = b.mined_attempt
            where b.state in ('mined', 'final') and a.height is null and not ${UNSETTLED}
           union all
           select i.txid || ':' || i.vout || ' of batch ' || b.id || ' is spent by ' || coalesce(i.spent_by, 'nothing') || ' and not by ' || a.txid
             from outgoing_batches b join outgoing_attempts a on a.id = b.mined_attempt join outgoing_inputs i on i.batch_id = b.id
            where b.state in ('mined', 'final') and not i.freed and i.spent_by is distinct from a.txid and not ${UNSETTLED}`,
  },
  {
    id: 'OUT-5',
    says: 'what was signed is what is paid: outputs, change and amounts as they were asked for',
    text: `select 'output ' || s.vout || ' of ' || a.txid || ' pays ' || p.id || ', which is number ' || coalesce(p.batch_position::text, 'none') || ' of its batch' as what
             from outgoing_shares s join outgoing_attempts a on a.id = s.attempt_id join payouts p on p.id = s.payout_id
            where p.batch_id is distinct from a.batch_id or p.batch_position is distinct from s.vout
           union all
           select 'the change of ' || a.txid || ' is ' || a.change_amount || ', in its block it is ' || c.amount
             from outgoing_attempts a join own_outputs c on c.currency = a.currency and c.txid = a.txid and c.vout = a.change_vout
            where a.height is not null and c.amount <> a.change_amount
           union all
           select p.id || ' asks for ' || p.amount_text || ' and pays ' || p.amount from payouts p
            where p.method = 'bitcoin' and (p.amount_text !~ '^[0-9]{1,9}([.][0-9]{1,8})?$'
                  or case when p.amount_text ~ '^[0-9]{1,9}([.][0-9]{1,8})?$' then p.amount_text::numeric * 100000000 <> p.amount else false end)`,
  },
  {
    id: 'OUT-6',
    says: 'an output is spent exactly when a batch spends it',
    text: `select 'output ' || q.txid || ':' || q.vout || case when q.spent then ' is marked as spent, and no batch spends it' else ' is spent by a batch, and not marked' end as what
             from (select currency, txid, vout, spent from payments where spent and paid_by is null
                   union all select currency, txid, vout, spent from own_outputs where spent
                   union all select p.currency, p.txid, p.vout, p.spent from outgoing_inputs i
                               join payments p on p.currency = i.currency and p.txid = i.txid and p.vout = i.vout where not i.freed and not p.spent
                   union all select c.currency, c.txid, c.vout, c.spent from outgoing_inputs i
                               join own_outputs c on c.currency = i.currency and c.txid = i.txid and c.vout = i.vout where not i.freed and not c.spent) q
            where q.spent <> exists (select 1 from outgoing_inputs i where i.currency = q.currency and i.txid = q.txid and i.vout = q.vout and not i.freed)
              and q.currency not in (${EVM})
           union all
           select 'payment ' || p.txid || ':' || p.vout || ' is marked as moved, and nothing was moved from its address, or written off there' from payments p
             join transactions t on t.id = p.transaction_id
            where p.currency in (${EVM}) and p.spent and p.paid_by is null
              and (p.currency, t.script) not in (select i.currency, i.script from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
                                                  where b.purpose = 'sweep' and b.state <> 'dead'
                                                 union select w.currency, w.script from written_off w)`,
  },
  {
    id: 'OUT-7',
    says: 'every payout to a transaction of another merchant here is exactly one payment of it once it is completed, and no other is',
    text: `select coalesce(p.id, m.paid_by) || ' of ' || coalesce(p.amount::text, 'nothing') || ' to ' || coalesce(p.internal_to, 'nobody here') || ' is '
                  || coalesce(m.amount::text, 'no payment') || coalesce(' of ' || m.transaction_id, '') as what
             from (select id, amount, internal_to from payouts where internal_to is not null and status = 'completed') p
             full join (select paid_by, amount, transaction_id from payments where paid_by is not null) m on m.paid_by = p.id
            where p.amount is distinct from m.amount or p.internal_to is distinct from m.transaction_id`,
  },
];
