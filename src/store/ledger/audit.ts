// The invariants of the books as SQL queries: each returns the rows that break it. INV-n, BOOK-n, CHAIN-n, OUT-n, PAY-n
// and RECON-n are their ids in the audit's report.
import { CURRENCIES } from '../../core/currency.ts';
import { MAX_TOLERANCE_USD_MINOR } from '../../core/judge/payments.ts';
import { transition } from '../../core/transaction-states.ts';
import type { Database, Sql } from '../postgres/connect.ts';
import { balanceSql, inQuotedCurrency } from '../transactions/case-facts.ts';

export type Finding = { readonly what: string };
/** An invariant: the rows that break it, as `what`; `$1` where it takes a parameter. */
export type Question = { readonly id: string; readonly says: string; readonly text: string };

/** For each currency its whole unit, and the last decimal of its quote, in minor units. */
export const UNITS = Object.values(CURRENCIES)
  .map(
    ({ code, decimals, quoteDecimals }) =>
      `('${code}', ${10n ** BigInt(decimals)}::numeric, ${10n ** BigInt(decimals - quoteDecimals)}::numeric)`,
  )
  .join(', ');

/** What the history says when the policy accepts a late payment (rule 11). */
const LATE_ACCEPTED = transition('review', 'late_accepted')?.reason;

const QUESTIONS: readonly Question[] = [
  {
    id: 'INV-1',
    says: 'every entry sums to zero in each currency and has at least two lines',
    text: `select 'entry ' || entry_id || ' is off by ' || sum(amount) || ' ' || currency as what from ledger.posting group by entry_id, currency having sum(amount) <> 0
           union all
           select 'entry ' || e.id || ' has fewer than two lines' from ledger.entry e
            where (select count(*) from ledger.posting p where p.entry_id = e.id) < 2`,
  },
  {
    id: 'INV-2',
    says: 'no account is overdrawn',
    text: `select code || ' holds ' || amount as what from ledger.account_balance b join ledger.account_kind k using (kind) where b.amount < 0 and not k.allow_negative`,
  },
  {
    id: 'INV-3',
    says: 'every balance is the sum of its postings',
    text: `select b.code || ' shows ' || b.amount || ', its postings say ' || coalesce(s.total, 0) as what
             from ledger.account_balance b
             left join (select p.account_id, sum(p.amount) * a.normal_side as total from ledger.posting p join ledger.account a on a.id = p.account_id
                         group by p.account_id, a.normal_side) s using (account_id)
            where b.amount <> coalesce(s.total, 0)`,
  },
  {
    id: 'INV-4',
    says: 'all accounts of a currency together sum to zero',
    text: `select b.currency || ' is off by ' || sum(b.amount * a.normal_side) as what
             from ledger.account_balance b join ledger.account a on a.id = b.account_id
            group by b.currency having sum(b.amount * a.normal_side) <> 0`,
  },
  {
    id: 'BOOK-2',
    says: 'suspense holds what the payments of the transaction say',
    text: `select coalesce(s.code, p.code) || ' holds ' || coalesce(s.amount, 0) || ', its payments say ' || coalesce(p.amount, 0) as what
             from (select code, amount from ledger.account_balance where kind = 'suspense' and amount <> 0) s
             full join (select 'suspense:' || transaction_id || ':' || ${balanceSql('currency')} as code, sum(in_suspense) as amount from decided_payments
                         group by 1 having sum(in_suspense) <> 0) p on p.code = s.code
            where coalesce(s.amount, 0) <> coalesce(p.amount, 0)`,
  },
  {
    id: 'BOOK-3',
    says: 'what a merchant has, less what is owed, is what the payments say',
    text: `select 'merchant ' || coalesce(b.merchant_id, p.merchant_id) || ' ' || coalesce(b.currency, p.currency) || ': ledger ' || coalesce(b.amount, 0)
                  || ', payments ' || coalesce(p.amount, 0) as what
             from (select merchant_id, currency, sum(case kind when 'receivable' then -amount else amount end) as amount from ledger.account_balance
                    where kind in ('available', 'held', 'receivable') group by 1, 2) b
             full join (select merchant_id, currency, sum(amount) as amount
                          from (select t.merchant_id, ${balanceSql('p.currency')} as currency, p.in_available - p.fee - case when p.part_key is null then p.sent_back + p.in_refund else 0 end as amount
                                  from decided_payments p join transactions t on t.id = p.transaction_id
                                union all
                                select merchant_id, currency, -(amount + fee) from payouts where status = 'completed' and source_currency is null and reimburses is null
                                union all
                                select merchant_id, source_currency, coalesce(given_back, 0) - source_amount from payouts where source_currency is not null
                                union all
                                select merchant_id, 'USD', amount + fee_max from payouts where source_currency is not null and step <> 'ended') q group by 1, 2) p
               on p.merchant_id = b.merchant_id and p.currency = b.currency
            where coalesce(b.amount, 0) <> coalesce(p.amount, 0)`,
  },
  {
    id: 'INV-13',
    says: 'a paid transaction has money behind it, what is booked of each is what its payments say, and every payment that is deep enough is booked',
    text: `with booked as (
             select e.transaction_id, p.currency, -coalesce(sum(p.amount) filter (where a.kind = 'suspense'), 0) as suspense,
                    -coalesce(sum(p.amount) filter (where a.kind in ('available', 'held', 'receivable', 'income')), 0) as credit
               from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
              where e.transaction_id is not null group by 1, 2),
           paid as (
             select transaction_id, ${balanceSql('currency')} as currency, sum(in_suspense) as suspense,
                    sum(in_available - case when part_key is null then sent_back + in_refund else 0 end) as credit
               from decided_payments group by 1, 2)
           select coalesce(b.transaction_id, p.transaction_id) || ' ' || coalesce(b.currency, p.currency) || ': credited ' || coalesce(b.credit, 0) || ' and '
                  || coalesce(b.suspense, 0) || ' in suspense, its payments say ' || coalesce(p.credit, 0) || ' and ' || coalesce(p.suspense, 0) as what
             from booked b full join paid p on p.transaction_id = b.transaction_id and p.currency = b.currency
            where coalesce(b.credit, 0) <> coalesce(p.credit, 0) or coalesce(b.suspense, 0) <> coalesce(p.suspense, 0)
           union all
           select t.id || ' is ' || t.status || ' without a credited payment' as what from transactions t
            where t.status in ('succeeded', 'settled') and not exists (select 1 from decided_payments p where p.transaction_id = t.id and p.credited > 0)
           union all
           select t.id || ' is ' || t.status || ' and its payment ' || p.txid || ':' || p.vout || ' is final and not booked'
             from decided_payments p join transactions t on t.id = p.transaction_id join chain_cursors c on c.currency = p.currency
            where p.state = 'mined' and p.part_key is null and c.height - p.height + 1 >= 400 and t.status not in ('started', 'pending', 'confirmed')`,
  },
  {
    id: 'INV-14',
    says: 'every history is a path of the table of transitions and ends in the status that is shown',
    text: `with history as (
             select object_id, sequence, status, previous, lag(status) over (partition by object_id order by sequence) as before,
                    row_number() over (partition by object_id order by sequence desc) as last
               from events where object_id like 'txn\\_%')
           select object_id || ' event ' || sequence || ': ' || coalesce(previous, 'nothing') || ' to ' || status || ' is no transition' as what
             from history where (previous is not null and previous || ' ' || status <> all ($1)) or (before is null and status <> 'started')
           union all
           select object_id || ' event ' || sequence || ' says it was ' || previous || ', before that it was ' || before
             from history where previous is not null and before is not null and previous <> before
           union all
           select t.id || ' is ' || t.status || ', its history ends in ' || coalesce(e.status, 'nothing')
             from transactions t left join history e on e.object_id = t.id and e.last = 1 where e.status is distinct from t.status
           union all
           select e.object_id || ' has a history and is not there' from history e where e.last = 1 and not exists (select 1 from transactions t where t.id = e.object_id)`,
  },
  {
    id: 'BOOK-4',
    says: 'what a transaction shows as received is what its payments say',
    // transactions that are still due for the judge are left out: their payments have just changed
    text: `select t.id || ' shows ' || t.crypto_received || ', its payments say ' || coalesce(p.amount, 0) as what
             from transactions t
             left join (select p.transaction_id, sum(p.amount) as amount from payments p join transactions t on t.id = p.transaction_id
                         where p.state in ('mempool', 'mined') and ${inQuotedCurrency('p', 't')} group by 1) p on p.transaction_id = t.id
            where t.crypto_received <> coalesce(p.amount, 0) and not exists (select 1 from due_marks m where m.transaction_id = t.id)`,
  },
  {
    id: 'INV-16',
    says: 'no address index of an account key was used twice',
    text: `select address || ' belongs to ' || count(*) || ' transactions' as what from transactions group by currency, address having count(*) > 1`,
  },
  {
    id: 'BOOK-5',
    says: 'every posting is in the currency of its account',
    text: `select 'entry ' || p.entry_id || ' posts ' || p.currency || ' to ' || a.code as what
             from ledger.posting p left join ledger.account a on a.id = p.account_id where p.currency is distinct from a.currency`,
  },
  {
    id: 'BOOK-6',
    says: 'every posting shows the balance of its account after it',
    // the entries of an account follow each other in the order of their ids
    text: `with steps as (
             select p.account_id, p.entry_id, p.balance_after as shown, p.amount * a.normal_side as step,
                    coalesce(lag(p.balance_after) over (partition by p.account_id order by p.entry_id), 0) as before
               from ledger.posting p join ledger.account a on a.id = p.account_id where a.locked)
           select a.code || ' shows from entry ' || min(s.entry_id) || ' on balances that are not those of its postings' as what
             from steps s join ledger.account a on a.id = s.account_id where s.shown is distinct from s.before + s.step group by a.code`,
  },
  {
    id: 'BOOK-7',
    says: 'what is asked for is worth the price at its rate, and one unit of the quote less is not',
    text: `with units (currency, whole, unit) as (values ${UNITS})
           select t.id || ' asks for ' || t.amount_due || ', which is not ' || t.usd_minor || ' cents at ' || t.rate as what
             from transactions t left join units u on u.currency = t.currency
            where u.currency is null or t.amount_due * t.rate * 100 < t.usd_minor * u.whole or (t.amount_due - u.unit) * t.rate * 100 >= t.usd_minor * u.whole
               or t.amount_due % u.unit <> 0`,
  },
  {
    id: 'BOOK-8',
    says: 'a paid transaction says when it was confirmed, one that is not yet paid does not',
    text: `select id || ' is ' || status || ' and was confirmed ' || coalesce(confirmed_at::text, 'never') as what from transactions
            where (status in ('confirmed', 'succeeded', 'settled') and confirmed_at is null)
               or (status in ('started', 'pending', 'timedout', 'timedout_checked', 'cancelled') and confirmed_at is not null)`,
  },
  {
    id: 'BOOK-9',
    says: 'an unpaid transaction holds nothing of the merchant in its own currency, and a payment that is booked owes nothing and is not lost',
    text: `select t.id || ' is ' || t.status || ' and its payment ' || p.txid || ':' || p.vout || ' is credited' as what
             from decided_payments p join transactions t on t.id = p.transaction_id
            where p.in_available > 0 and ${inQuotedCurrency('p', 't')} and t.status in ('started', 'pending', 'timedout', 'timedout_checked', 'cancelled')
           union all
           select 'payment ' || txid || ':' || vout || ' is booked and owes ' || owed || ' and a fee of ' || owed_fee from decided_payments
            where part_key is not null and (owed <> 0 or owed_fee <> 0)
           union all
           select 'payment ' || p.txid || ':' || p.vout || ' of ' || p.transaction_id || ' is said to be lost and '
                  || case when p.part_key is null then 'none of its transaction was ever booked and lost' else 'is booked' end
             from decided_payments p
            where p.was_lost and (p.part_key is not null or not exists (
                    select 1 from decided_payments l where l.transaction_id = p.transaction_id and l.currency = p.currency and l.generation > 0))
           union all
           select 'payment ' || txid || ':' || vout || ' holds ' || in_available || ' of a credit of ' || credited from decided_payments where in_available > credited`,
  },
  {
    id: 'BOOK-10',
    says: 'every event is of a transaction or payout that is there and of its merchant, numbered without a gap and named after what happened',
    text: `select e.object_id || ' event ' || e.sequence || ' is of merchant ' || e.merchant_id || ', the transaction of ' || t.merchant_id as what
             from events e join transactions t on t.id = e.object_id where e.merchant_id <> t.merchant_id
           union all
           select object_id || ' has ' || count(*) || ' events, numbered ' || min(sequence) || ' to ' || max(sequence) from events
            group by object_id having count(*) <> max(sequence) or min(sequence) <> 1
           union all
           select distinct e.object_id || ' has events, and is gone' from events e
            where not exists (select from transactions t where t.id = e.object_id) and not exists (select from payouts p where p.id = e.object_id)
           union all
           select object_id || ' event ' || sequence || ' is called ' || type || ' and leads to ' || status from events
            where object_id like 'txn\\_%' and type <> 'transaction.' || status
              and type not in ('transaction.extra_payment', 'transaction.other_asset', 'transaction.reorged')`,
  },
  {
    id: 'BOOK-14',
    says: 'what a late transaction was credited by policy was worth its price, less the tolerance',
    text: `with units (currency, whole, unit) as (values ${UNITS}),
           confirmed as (
             select distinct on (object_id) object_id, reason from events where status = 'confirmed' and previous is not null
              order by object_id, sequence desc)
           select t.id || ' was accepted by policy for ' || coalesce(p.cents, 0) || ' of ' || t.usd_minor || ' cents' as what
             from transactions t join confirmed c on c.object_id = t.id and c.reason = '${LATE_ACCEPTED}' join units u on u.currency = t.currency
             cross join lateral (select sum(d.credited * d.value_rate) * 100 / u.whole as cents from decided_payments d
                                  where d.transaction_id = t.id and ${inQuotedCurrency('d', 't')}) p
            where t.status in ('succeeded', 'settled')
              and coalesce(p.cents, 0) < t.usd_minor - least(t.usd_minor * t.tolerance_bps / 10000.0, ${MAX_TOLERANCE_USD_MINOR})`,
  },
  {
    id: 'CHAIN-1',
    says: 'the blocks that were read form a chain that ends at the cursor',
    text: `select b.currency || ' block ' || b.height || ' does not follow its predecessor' as what
             from blocks b join blocks a on a.currency = b.currency and a.height = b.height - 1 where b.previous <> a.hash
           union all
           select currency || ' misses ' || (max(height) - min(height) + 1 - count(*)) || ' blocks between ' || min(height) || ' and ' || max(height)
             from blocks group by currency having count(*) <> max(height) - min(height) + 1
           union all
           select coalesce(c.currency, b.currency) || ': the cursor at ' || coalesce(c.height::text, 'nothing') || ' is not the last block that was read, '
                  || coalesce(b.height::text, 'nothing')
             from chain_cursors c
             full join (select distinct on (currency) currency, height, hash from blocks order by currency, height desc) b on b.currency = c.currency
            where b.hash is distinct from c.hash or b.height is distinct from c.height`,
  },
  {
    id: 'CHAIN-2',
    says: 'every mined payment is in a block of the best chain as it was read',
    // payments that a rescan found below the watchers' first block are compared with the second reading only
    text: `select p.currency || ' ' || p.txid || ':' || p.vout || ' is said to be in block ' || p.height
                  || case when b.hash is null then ', which was not read' else ', which is another one' end as what
             from payments p left join (select currency, min(height) as height from blocks group by currency) f on f.currency = p.currency
             left join blocks b on b.currency = p.currency and b.height = p.height
            where p.height is not null and p.block_hash is distinct from b.hash and (b.hash is not null or p.height >= coalesce(f.height, 0))`,
  },
];

export type Answer = { readonly id: string; readonly says: string; readonly findings: readonly string[]; readonly more: boolean };
const SHOWN = 20;
const LONGEST_READING_MS = 600_000;

/**
 * Runs every query on one snapshot.
 * @param paths the allowed steps as `from to`
 */
export async function askAll(sql: Sql, paths: readonly string[]): Promise<Answer[]> {
  return ask(sql, QUESTIONS, paths);
}

/**
 * Runs these queries.
 * @param parameter the value for those that take one
 */
export async function ask(sql: Sql, questions: readonly Question[], parameter: unknown): Promise<Answer[]> {
  const answers: Answer[] = [];
  for (const question of questions) {
    const { rows } = await sql.query<Finding>({
      name: `audit_${question.id.toLowerCase().replace('-', '_')}`,
      text: `select what from (${question.text}) q limit ${SHOWN + 1}`,
      values: question.text.includes('$1') ? [parameter] : [],
    });
    answers.push({
      id: question.id,
      says: question.says,
      findings: rows.slice(0, SHOWN).map((row) => row.what),
      more: rows.length > SHOWN,
    });
  }
  return answers;
}

/** Reads in a repeatable-read snapshot, for up to ten minutes a statement. */
export function readSnapshot<T>(db: Database, read: (sql: Sql) => Promise<T>): Promise<T> {
  const reading = async (sql: Sql): Promise<T> => {
    await sql.query({ text: 'set transaction isolation level repeatable read read only' });
    return read(sql);
  };
  return db.transaction(reading, { statementMs: LONGEST_READING_MS });
}
