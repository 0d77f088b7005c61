// The invariants of payouts, of what is on its way out, and of our own outputs, as SQL queries: see audit.ts.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { CURRENCIES, ETHER } from '../../core/currency.ts';
import { PAYOUT_TRANSITIONS } from '../../core/payouts/states.ts';
import { OPERATORS_BALANCE } from '../lightning/operators-part.ts';
import { OVER_LIGHTNING } from '../lightning/outgoing.ts';
import { isCapital } from '../payouts/own-outputs.ts';
import type { Question } from './audit.ts';
import { isBorne } from './batch-audit.ts';

/**
 * Batches of which the chain has shown something that the driver has not booked yet, whether or not a worker has just leased them: their outputs
 * and entries differ for that moment.
 */
const UNSETTLED = `select b.currency from outgoing_batches b
  where b.due_at = '-infinity'
     -- on Ethereum's chain it is booked twelve blocks later, and counted as it is until then
     or (b.state = 'signed' and b.tip is null and exists (select from outgoing_attempts a where a.batch_id = b.id and a.height is not null))
     -- a reorganisation has taken it back, and it is sent again
     or (b.state = 'signed' and b.mined_attempt is not null)
     or (b.state = 'mined' and not exists (select from outgoing_attempts a where a.id = b.mined_attempt and a.height is not null))`;

/** Every step from one status to another that the table of transitions allows, as an SQL list. */
const LAWFUL = [
  ...new Set(PAYOUT_TRANSITIONS.flatMap(({ from, to }) => (from === null || from[0] === to[0] ? [] : [`'${from[0]} ${to[0]}'`]))),
].join();
const FIRST = [...new Set(PAYOUT_TRANSITIONS.flatMap(({ from, to }) => (from === null ? [`'${to[0]}'`] : [])))].join();

/** Minor units of a whole unit of each currency, as SQL. */
const WHOLE_UNITS = Object.values(CURRENCIES)
  .map(({ code, decimals }) => `('${code}', ${10n ** BigInt(decimals)}::numeric)`)
  .join();

/** SQL: our outputs on each chain, as the rows of payments, change and batches say; what a mined replacement costs besides is added later. */
const OUTPUTS = `with unbooked as materialized (
             select a.currency, a.txid, a.batch_id from outgoing_attempts a join outgoing_batches b on b.id = a.batch_id
              where b.state = 'signed' and a.height is not null),
           outputs as (
             select currency, amount from decided_payments where part_key is not null and currency <> '${LIGHTNING.code}'
             union all select currency, amount from own_outputs
                        where booked and (height is not null or ${isCapital('own_outputs')})
                          and (currency, txid) not in (select currency, txid from unbooked)
             union all select currency, -amount from outgoing_inputs where spent_by is not null and batch_id not in (select batch_id from unbooked)
                          -- what moves between our own addresses costs its gas only
                          and batch_id not in (select id from outgoing_batches where (state = 'dead' and tip is not null) or purpose <> 'payout')
             -- on Ethereum's chain: gas beyond what was charged in ether, booked when its block is final
             union all select '${ETHER}', case when b.state = 'final' and a.currency = '${ETHER}' and b.purpose = 'payout' then a.fee else 0 end - a.gas_paid
                         from outgoing_batches b join outgoing_attempts a on a.id = b.mined_attempt
                        where b.state in ('final', 'dead') and b.tip is not null
             union all select currency, -amount from written_off
             -- an entry of a payout made it, and no output
             union all select currency, -amount from payments where paid_by is not null and currency <> '${LIGHTNING.code}'),
           late_fee as (
             select a.currency, s.fee - p.fee as amount from outgoing_batches b join outgoing_attempts a on a.id = b.mined_attempt
               join outgoing_shares s on s.attempt_id = a.id join payouts p on p.id = s.payout_id
              where b.state = 'mined' and b.tip is null and p.fee is not null and p.reimburses is null)`;

/** Takes cents as its parameter; null = no limit. The newest price counts, however old it is: a position is there without one too. */
export const OF_EXPOSURE: readonly Question[] = [
  {
    id: 'INV-17',
    says: 'what the service has of each currency by converting is worth no more than BURSAR_EXPOSURE_USD',
    text: `select a.currency || ': ' || a.amount || ' of it are worth ' || round(abs(a.amount) * r.usd / u.whole, 2) || ' USD, the limit is '
                  || round($1::numeric / 100, 2) as what
             from ledger.account_balance a join rates r on r.currency = a.currency join (values ${WHOLE_UNITS}) u(currency, whole) on u.currency = a.currency
            where a.kind = 'fx' and abs(a.amount) * r.usd * 100 > $1::numeric * u.whole`,
  },
];

/** What an operator should know of payouts, and what stops nothing. */
export const TOLD_OF_PAYOUTS: readonly Question[] = [
  {
    id: 'FX-1',
    says: 'bank payouts that came back gave no more of a currency than bank payouts have taken of it',
    text: `select currency || ': ' || -amount || ' more was given back than was taken; the price has fallen, and the service has to add it' as what
             from ledger.account_balance where kind = 'fx' and currency <> 'USD' and amount < 0`,
  },
];

export const OF_PAYOUTS: readonly Question[] = [
  {
    id: 'PAY-1',
    says: 'every history of a payout is a path of its table of transitions and ends in the status that is shown',
    text: `with told as (
             select object_id, sequence, status, previous, lag(status) over (partition by object_id order by sequence) as before,
                    row_number() over (partition by object_id order by sequence desc) as last
               from events where object_id like 'payout\\_%')
           select object_id || ' event ' || sequence || ': ' || coalesce(previous, 'nothing') || ' to ' || status || ' is no transition' as what
             from told where (previous is not null and previous || ' ' || status not in (${LAWFUL})) or (before is null and status not in (${FIRST}))
           union all
           select object_id || ' event ' || sequence || ' says it was ' || coalesce(previous, status) || ', before that it was ' || before
             from told where before is not null and coalesce(previous, status) <> before
           union all
           select p.id || ' is ' || p.status || ' with ' || p.sequence || ' events, its history ends in ' || coalesce(e.status, 'nothing') || ' with '
                  || coalesce(e.sequence, 0)
             from payouts p left join told e on e.object_id = p.id and e.last = 1
            where p.reimburses is null and (e.status is distinct from p.status or e.sequence is distinct from p.sequence)
           union all
           select e.object_id || ' has a history and is not there' from told e where e.last = 1 and not exists (select 1 from payouts p where p.id = e.object_id)`,
  },
  {
    id: 'INV-5',
    says: 'what is held of a merchant, and what is payable to a customer, is what open payouts and reimbursements need',
    text: `select 'merchant ' || coalesce(h.merchant_id, p.merchant_id) || ' ' || coalesce(h.currency, p.currency) || ': held ' || coalesce(h.amount, 0)
                  || ', its open payouts need ' || coalesce(p.amount, 0) as what
             from (select merchant_id, currency, sum(amount) as amount from ledger.account_balance where kind = 'held' group by 1, 2) h
             full join (select merchant_id, currency, sum(amount + fee_max) as amount from payouts where step <> 'ended' and reimburses is null group by 1, 2) p
               on p.merchant_id = h.merchant_id and p.currency = h.currency
            where coalesce(h.amount, 0) <> coalesce(p.amount, 0)
           union all
           select coalesce(l.code, r.code) || ' holds ' || coalesce(l.amount, 0) || ', open reimbursements need ' || coalesce(r.amount, 0)
             from (select code, amount from ledger.account_balance where kind = 'refund_payable' and amount <> 0) l
             full join (select 'refund_payable:' || reimburses || ':' || currency as code, sum(amount) as amount from payouts
                         where reimburses is not null and (step <> 'ended' or (status = 'failed' and not noted))
                           -- one whose outputs are not booked yet holds nothing
                           and exists (select from ledger.entry e where e.key = 'po:' || payouts.id || ':hold') group by 1) r on r.code = l.code
            where coalesce(l.amount, 0) <> coalesce(r.amount, 0)`,
  },
  {
    id: 'INV-6',
    says: 'in each currency our outputs, and what our channels brought and kept, cover what merchants and customers are owed, but for what merchants owe, what was booked as lost and what FX-1 names',
    text: `${OUTPUTS},
           here as (
             select currency, sum(amount) as amount from (
               select * from outputs union all select * from late_fee
               union all select '${LIGHTNING.balance}', amount from decided_payments where part_key is not null and currency = '${LIGHTNING.code}'
               union all select '${LIGHTNING.balance}', -amount from (${OVER_LIGHTNING}) l where not is_open
               union all select '${LIGHTNING.balance}', -ceil((amount_msat + fee_msat) / 1000) from lightning_sent where acknowledged_at is not null and not is_operators
               -- what more than the operator's has left, he has taken of what came for others
               union all select '${LIGHTNING.balance}', least(amount, 0) from (${OPERATORS_BALANCE}) o where open) q
              group by currency),
           owed as (
             select currency, sum(case when kind in ('available', 'held', 'suspense', 'refund_payable') then amount
                                       -- what the service gave of a currency above what it had bought is named by itself
                                       when kind = 'fx' then least(amount, 0) else -amount end) as amount
               from ledger.account_balance where kind in ('available', 'held', 'suspense', 'refund_payable', 'receivable', 'expense', 'fx') group by currency)
           select o.currency || ': owed ' || o.amount || ', here ' || coalesce(h.amount, 0) as what from owed o left join here h on h.currency = o.currency
            where o.amount > coalesce(h.amount, 0) and o.currency in (select case currency when '${LIGHTNING.code}' then '${LIGHTNING.balance}' else currency end from chain_cursors) and o.currency not in (${UNSETTLED})`,
  },
  {
    id: 'INV-7',
    says: 'what the ledger holds on a chain, or has on its way out, is what our outputs there are',
    // a transaction in a block that two nodes must hold first (flow/payouts/progress) is not booked yet
    text: `${OUTPUTS}
           select coalesce(l.currency, c.currency) || ': ledger ' || coalesce(l.amount, 0) || ', outputs ' || coalesce(c.amount, 0) as what
             from (select currency, sum(amount) as amount from ledger.account_balance where kind in ('asset_chain', 'asset_outbound') group by currency) l
             full join (select currency, sum(amount) as amount from (select * from outputs union all select * from late_fee) q group by currency) c
               on c.currency = l.currency
            where coalesce(l.amount, 0) <> coalesce(c.amount, 0) and coalesce(l.currency, c.currency) not in (${UNSETTLED})`,
  },
  {
    id: 'INV-10',
    says: 'no payout is paid by two transactions, and none that failed by any',
    text: `select s.payout_id || ' is paid by ' || count(*) || ' transactions in blocks' as what
             from outgoing_shares s join outgoing_attempts a on a.id = s.attempt_id where a.height is not null group by s.payout_id having count(*) > 1
           union all
           select p.id || ' has failed and is paid by ' || a.txid || ' (bursar payout recover)' from payouts p join outgoing_shares s on s.payout_id = p.id
             join outgoing_attempts a on a.id = s.attempt_id
            -- one that failed in its block has paid nobody
            where p.status = 'failed' and a.height is not null and a.result is distinct from 'failed'
              and not ${isBorne('p')} and a.currency not in (${UNSETTLED})`,
  },
  {
    id: 'INV-11',
    says: 'all transactions that were signed for a payout are of one batch, and so spend the same outputs',
    text: `select s.payout_id || ' is in ' || count(distinct a.batch_id) || ' batches' as what
             from outgoing_shares s join outgoing_attempts a on a.id = s.attempt_id group by s.payout_id having count(distinct a.batch_id) > 1
           union all
           select 'batch ' || a.batch_id || ' has signed transactions and no inputs' from outgoing_attempts a
            where not exists (select 1 from outgoing_inputs i where i.batch_id = a.batch_id)`,
  },
  {
    id: 'INV-12',
    says: 'every payout has its hold, and is ended exactly when its entries say so',
    text: `with entries as (
             select payout_id, count(*) filter (where key like '%:hold') as holds, count(*) filter (where key like '%:final') as finals,
                    count(*) filter (where key like '%:release' or key like '%:return') - count(*) filter (where key like '%:hold\\_again') as released,
                    count(*) filter (where key like '%:return') as returned
               from ledger.entry where payout_id is not null group by 1)
           select p.id || ' is ' || p.status || ' and has ' || coalesce(e.holds, 0) || ' hold, ' || coalesce(e.finals, 0) || ' final, '
                  || coalesce(e.released, 0) || ' release' as what
             from payouts p left join entries e on e.payout_id = p.id
            where (coalesce(e.holds, 0) <> 1
                   and not (p.reimburses is not null and coalesce(e.holds, 0) = 0 and (p.step = 'held' or (p.status = 'failed' and p.batch_id is null))))
               or (p.status = 'completed' and (e.finals <> 1 or e.released <> 0))
               or (p.status = 'failed' and p.reimburses is null and e.released <> 1)
               -- of lost outputs nothing is left to release
               or (p.status = 'failed' and p.reimburses is not null and (e.released - e.returned > 1 or e.finals <> e.returned)) or (p.status in ('pending', 'processing') and (e.finals <> 0 or e.released <> 0))
           union all
           select 'entries of ' || e.payout_id || ' have no payout' from entries e where not exists (select 1 from payouts p where p.id = e.payout_id)`,
  },
  {
    id: 'PAY-2',
    says: 'what each payout has taken of its merchant is what its row says, and what was converted is what payouts have converted',
    text: `with moved as (
             select e.payout_id, -sum(p.amount) filter (where a.kind = 'held' and e.key like '%:hold') as held,
                    sum(p.amount) filter (where a.kind = 'available' and e.key like '%:hold') as taken,
                    sum(p.amount) filter (where a.kind <> 'held') as cost, min(a.merchant_id) as merchant_id, max(a.merchant_id) as last_merchant_id
               from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
              where e.payout_id is not null and a.kind in ('available', 'held', 'receivable') group by 1)
           select p.id || ' of merchant ' || p.merchant_id || ' is ' || p.status || ' for ' || p.amount || ', fee ' || coalesce(p.fee, p.fee_max)
                  || coalesce(', out of ' || p.source_amount || ' ' || p.source_currency, '') || coalesce(', given back ' || p.given_back, '') || ': its hold took '
                  || coalesce(m.taken, 0) || ', all its entries together ' || coalesce(m.cost, 0) || ' of merchant ' || coalesce(m.merchant_id, 0) as what
             from payouts p left join moved m on m.payout_id = p.id
            where p.reimburses is null
              and (m.held is distinct from p.amount + p.fee_max or m.taken is distinct from coalesce(p.source_amount, p.amount + p.fee_max)
                   or m.merchant_id is distinct from p.merchant_id or m.last_merchant_id is distinct from p.merchant_id
                   or m.cost is distinct from case p.status when 'completed' then coalesce(p.source_amount, p.amount + p.fee)
                                                            when 'failed' then coalesce(p.source_amount - p.given_back, 0)
                                                            else coalesce(p.source_amount, p.amount + p.fee_max) end)
           union all
           select 'fx:' || coalesce(l.currency, c.currency) || ' is ' || coalesce(l.amount, 0) || ', payouts have converted ' || coalesce(c.amount, 0)
             from (select currency, sum(amount) as amount from ledger.account_balance where kind = 'fx' group by 1) l
             full join (select source_currency as currency, sum(source_amount - coalesce(given_back, 0)) as amount from payouts
                         where source_currency is not null group by 1
                        union all select 'USD', -sum(amount + fee_max) from payouts where source_currency is not null and given_back is null) c on c.currency = l.currency
            where coalesce(l.amount, 0) <> coalesce(c.amount, 0)`,
  },
  {
    id: 'OUT-1',
    says: 'what is on its way out is what was signed for payouts that are not confirmed',
    text: `with out as (
             select p.currency, sum(case when f.is_gas and p.currency <> '${ETHER}' then p.amount - case when p.reimburses is null then 0 else f.fee end
                                         when p.reimburses is null then p.amount + f.fee else p.amount end) as amount
               from payouts p cross join lateral (
                 select max(s.fee) as fee, bool_or(a.max_fee is not null) as is_gas
                   from outgoing_shares s join outgoing_attempts a on a.id = s.attempt_id where s.payout_id = p.id) f
              where p.status = 'processing' and f.fee is not null group by p.currency)
           select coalesce(l.currency, o.currency) || ': ledger ' || coalesce(l.amount, 0) || ', payouts ' || coalesce(o.amount, 0) as what
             from (select currency, sum(amount) as amount from ledger.account_balance where kind = 'asset_outbound' group by currency) l
             full join out o on o.currency = l.currency
            where coalesce(l.amount, 0) <> coalesce(o.amount, 0)`,
  },
  {
    id: 'OUT-2',
    says: 'every signed transaction spends its inputs for exactly its payouts, its change and its fee',
    text: `select 'transaction ' || a.txid || ' spends ' || i.amount || ' for ' || (coalesce(o.amount, 0) + coalesce(a.change_amount, 0) + a.fee + a.lost) as what
             from outgoing_attempts a
             cross join lateral (select sum(amount) as amount from outgoing_inputs where batch_id = a.batch_id) i
             cross join lateral (select sum(case when p.reimburses is null then p.amount else p.amount - s.fee end) as amount from outgoing_shares s join payouts p on p.id = s.payout_id where s.attempt_id = a.id) o
            where a.max_fee is null and i.amount is distinct from coalesce(o.amount, 0) + coalesce(a.change_amount, 0) + a.fee + a.lost
           union all
           select 'the fee of ' || a.txid || ' is ' || a.fee || ', its payouts pay ' || sum(s.fee)
             from outgoing_attempts a join outgoing_shares s on s.attempt_id = a.id group by a.id, a.txid, a.fee having sum(s.fee) <> a.fee`,
  },
  {
    id: 'OUT-3',
    says: 'every output of ours that was spent was spent by a transaction that was signed here',
    text: `select currency || ': ' || finding || ' (bursar payout recover)' as what from unknown_movements where resolved_at is null order by id`,
  },
];
