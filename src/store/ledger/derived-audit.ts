// The invariants of what the judge has derived of payments and transactions, each recomputed from other rows than the one that says it: entries,
// events, blocks' and payments' facts. See audit.ts. What nothing else in the database shows is named in docs/behaviour.md.
import { MAX_TOLERANCE_USD_MINOR } from '../../core/judge/payments.ts';
import { GRACE_MS, OUTAGE_GRACE_MS, WINDOW_MS } from '../../core/judge/times.ts';
import { transition } from '../../core/transaction-states.ts';
import { balanceSql, inQuotedCurrency } from '../transactions/case-facts.ts';
import { type Question, UNITS } from './audit.ts';

const ms = (length: number): string => `interval '${length} ms'`;
/** SQL: the clock was set since a transaction `t` was made, so what waited in it has another date (chain/clock-settings.ts). */
const CLOCK_WAS_SET = `exists (select from clock_settings s where s.at_order > t.made_order and s.currency in (t.currency, '*'))`;
/** SQL: the judge has nothing left to do about a transaction `t`. */
const JUDGED = `not exists (select from due_marks m where m.transaction_id = t.id) and not exists (select from set_aside a where a.transaction_id = t.id)
              and not exists (select from payment_decisions d where d.transaction_id = t.id)`;
const PAYMENT = `'payment ' || p.txid || ':' || p.vout || ' of ' || p.transaction_id`;
/** SQL: a payment `p` is the only one of its transaction in its currency. */
const ALONE =
  'not exists (select from payments o where o.transaction_id = p.transaction_id and o.currency = p.currency and o.id <> p.id)';
/** What the history says of rule 4, and of rule 6. */
const ENOUGH = transition('pending', 'enough_confirmed')?.reason;
const SHORT = transition('pending', 'short')?.reason;
/** SQL: amount due less the tolerance, of a transaction `t` whose currency has units `u` (core/judge/payments). */
const SUFFICIENT = `(t.amount_due - least(floor(t.amount_due * t.tolerance_bps / 10000), floor(${MAX_TOLERANCE_USD_MINOR} * u.whole / (100 * t.rate))))`;

export const OF_DERIVED: readonly Question[] = [
  {
    id: 'BOOK-15',
    says: 'what payments were credited, what was kept of them in suspense, and their fee, is what the entries of their transaction say',
    text: `with said as (
             select p.transaction_id, ${balanceSql('p.currency')} as currency, sum(p.credited) as credited, sum(p.suspended) as suspended, sum(p.fee) as fee
               from decided_payments p group by 1, 2),
           booked as (
             select e.transaction_id, l.currency, bool_or(e.kind = 'deposit_lost') as lost, coalesce(-sum(l.amount) filter (where a.kind = 'income'), 0) as fee,
                    coalesce(-sum(l.amount) filter (where e.kind in ('deposit', 'accepted') and a.kind in ('available', 'receivable', 'income')), 0) as credited,
                    coalesce(-sum(l.amount) filter (where e.kind = 'deposit' and a.kind = 'suspense'), 0) as suspended
               from ledger.entry e join ledger.posting l on l.entry_id = e.id join ledger.account a on a.id = l.account_id
              where e.transaction_id is not null group by 1, 2)
           select coalesce(s.transaction_id, b.transaction_id) || ' ' || coalesce(s.currency, b.currency) || ': its payments say ' || coalesce(s.credited, 0) || ' credited, '
                  || coalesce(s.suspended, 0) || ' in suspense and a fee of ' || coalesce(s.fee, 0) || ', its entries ' || coalesce(b.credited, 0) || ', '
                  || coalesce(b.suspended, 0) || ' and ' || coalesce(b.fee, 0) as what
             from said s full join booked b on b.transaction_id = s.transaction_id and b.currency = s.currency
            where coalesce(s.fee, 0) <> coalesce(b.fee, 0)
               or (b.lost is not true and (coalesce(s.credited, 0) <> coalesce(b.credited, 0) or coalesce(s.suspended, 0) <> coalesce(b.suspended, 0)))
           union all
           select ${PAYMENT} || ' was credited ' || p.credited || ' and kept ' || p.suspended || ' in suspense, with a fee of ' || p.fee || ', of ' || p.amount
             from decided_payments p
            where case when p.part_key is null then p.credited <> 0 or p.suspended <> 0 or p.fee <> 0
                       else p.credited > p.amount or p.suspended > p.amount or p.credited + p.suspended < p.amount or p.fee > p.credited end
           union all
           select ${PAYMENT} || ' was credited ' || p.credited || ' and holds ' || p.in_available from decided_payments p
            where p.part_key is not null and p.credited <> p.in_available and not exists (select from payouts r where r.reimburses = p.transaction_id)
              and not exists (select from decided_payments l where l.transaction_id = p.transaction_id and l.generation > 0)`,
  },
  {
    id: 'BOOK-16',
    says: 'a payment is on time by when it was seen, and by nothing else but what it replaces',
    text: `select ${PAYMENT} || ' is on time with ' || p.on_time_minor || ' of ' || p.amount || ', seen ' || p.seen_at || ', and the window ends ' || t.window_ends_at as what
             from payments p join transactions t on t.id = p.transaction_id
             cross join lateral (
               select case when p.seen_at <= t.window_ends_at + ${ms(GRACE_MS)} then true
                           when p.caught_up_at >= t.window_ends_at + ${ms(GRACE_MS)} then false
                           when p.found_mined then null
                           else p.seen_at <= t.window_ends_at + ${ms(OUTAGE_GRACE_MS)} end as on_time) f
            where p.noticed_at is not null and p.state in ('mempool', 'mined') and not ${CLOCK_WAS_SET} and ${JUDGED}
              and case when f.on_time
                       then p.on_time_minor <> p.amount and not exists (select from events e where e.object_id = t.id and e.status = 'cancelled')
                       -- of several one may have replaced another, which shows only as long as a reorganisation has not parted them
                       else f.on_time = false and p.on_time_minor > 0 and ${ALONE} end`,
  },
  {
    id: 'BOOK-17',
    says: 'a payment is shown as counted when it is credited and there, or is to pay the price',
    text: `select ${PAYMENT} || ' is ' || p.state || ', credited ' || p.credited || ', on time with ' || p.on_time_minor || case when p.counted then ' and counts' else ' and does not count' end as what
             from payments p join transactions t on t.id = p.transaction_id
            where ${JUDGED}
              and case when p.counted then not ${inQuotedCurrency('p', 't')} or p.state not in ('mempool', 'mined') or (t.status <> 'pending' and p.credited = 0)
                       else not p.coinbase and p.present and ${inQuotedCurrency('p', 't')} and p.state in ('mempool', 'mined')
                            and case when t.status = 'pending' then p.on_time_minor > 0 else p.credited > 0 end end`,
  },
  {
    id: 'BOOK-18',
    says: 'when a transaction was made, confirmed and paid is what its history says, and its window is as long as all',
    text: `with history as (
             select object_id, min(at) filter (where sequence = 1) as made, (array_agg(at order by sequence desc) filter (where status = 'confirmed' and previous is not null))[1] as confirmed,
                    (array_agg(at order by sequence desc) filter (where status = 'succeeded' and previous is not null))[1] as succeeded
               from events where object_id like 'txn\\_%' and (sequence = 1 or status in ('confirmed', 'succeeded')) group by 1)
           select t.id || ' was made ' || t.created_at || ', its history says ' || coalesce(h.made::text, 'never') as what
             from transactions t left join history h on h.object_id = t.id where t.created_at is distinct from h.made
           union all
           select t.id || ' was confirmed ' || t.confirmed_at || ', its history says ' || coalesce(h.confirmed::text, 'never')
             from transactions t left join history h on h.object_id = t.id where t.confirmed_at is not null and t.confirmed_at is distinct from h.confirmed
           union all
           select t.id || ' was paid ' || coalesce(t.succeeded_at::text, 'never') || ', its history says ' || coalesce(h.succeeded::text, 'never')
             from transactions t left join history h on h.object_id = t.id where t.succeeded_at is distinct from h.succeeded and not ${CLOCK_WAS_SET}
           union all
           select t.id || ' was made ' || t.created_at || ', and its window ends ' || t.window_ends_at from transactions t
            where t.window_ends_at <> t.created_at + ${ms(WINDOW_MS)} and not ${CLOCK_WAS_SET}`,
  },
  {
    id: 'BOOK-19',
    says: 'what was paid by enough on time was enough, and what was declined as too little was too little',
    text: `with units (currency, whole, unit) as (values ${UNITS}),
           why as (
             select distinct on (object_id) object_id, reason from events
              where object_id like 'txn\\_%' and status in ('confirmed', 'declined') and previous is not null order by object_id, sequence desc)
           select t.id || ' was paid with ' || coalesce(p.credited, 0) || ' of ' || t.amount_due || ' at a tolerance of ' || t.tolerance_bps || ' basis points' as what
             from transactions t join why w on w.object_id = t.id and w.reason = '${ENOUGH}' join units u on u.currency = t.currency
             cross join lateral (select sum(d.credited) as credited, bool_or(d.generation > 0) as lost from decided_payments d where d.transaction_id = t.id and ${inQuotedCurrency('d', 't')}) p
            where t.status in ('succeeded', 'settled') and p.lost is not true and coalesce(p.credited, 0) < ${SUFFICIENT}
           union all
           select t.id || ' was declined with ' || p.on_time || ' of ' || t.amount_due || ' at a tolerance of ' || t.tolerance_bps || ' basis points'
             from transactions t join why w on w.object_id = t.id and w.reason = '${SHORT}' join units u on u.currency = t.currency
             cross join lateral (select sum(d.on_time_minor) as on_time from decided_payments d
                                  where d.transaction_id = t.id and ${inQuotedCurrency('d', 't')} and d.present and d.state in ('mempool', 'mined')) p
            where t.status = 'declined' and ${JUDGED} and p.on_time >= ${SUFFICIENT}`,
  },
  {
    id: 'BOOK-20',
    says: 'an entry that no link covers yet has the key and the hash of what it books',
    text: `with unlinked as (select * from ledger.entry e where e.id > coalesce((select max(last_entry) from ledger.link), 0))
           select 'entry ' || e.key || ' has another hash than its lines' as what from unlinked e
             cross join lateral (select jsonb_agg(jsonb_build_object('a', a.code, 'v', l.amount::text) order by l.line)::text as lines
                                   from ledger.posting l join ledger.account a on a.id = l.account_id where l.entry_id = e.id) b
            where e.body_hash is distinct from sha256(convert_to(e.kind || '|' || coalesce(b.lines, '') || '|' || coalesce(e.reverses_id::text, ''), 'UTF8'))
           union all
           select 'entry ' || e.id || ' is a ' || e.kind || ' of ' || coalesce(e.transaction_id, e.payout_id, 'nothing') || ' and is called ' || e.key from unlinked e
            where case when e.kind in ('deposit', 'deposit_lost') and e.transaction_id is not null then not exists (select from ledger.part d where d.entry_id = e.id and d.key = e.key)
                       when e.kind = 'accepted' then not starts_with(e.key, 'rev:' || e.transaction_id || ':accept:')
                       when e.key like 'po:%' then e.payout_id is distinct from split_part(e.key, ':', 2) end`,
  },
  {
    id: 'BOOK-21',
    says: 'the only payment of a transaction is said to be lost when its loss took what was the merchant’s, and it is not back',
    // of several one may have inherited the loss of another, which a reorganisation then parted from it again (core/judge/replacements)
    text: `with losses as (
             select d.key, bool_or(a.kind in ('available', 'receivable')) as merchants, bool_or(a.kind = 'suspense') as suspense
               from ledger.part d join ledger.entry e on e.id = d.entry_id and e.kind = 'deposit_lost'
               join ledger.posting l on l.entry_id = e.id join ledger.account a on a.id = l.account_id group by 1)
           select ${PAYMENT} || ' is said to be lost, and was never booked' as what from decided_payments p
            where p.was_lost and p.generation = 0 and ${ALONE}
           union all
           select ${PAYMENT} || case when p.was_lost then ' is said to be lost, and nothing of it was the merchant’s' else ' was the merchant’s, and is not said to be lost' end
             from decided_payments p join losses l on l.key = 'reorg:' || lower(p.currency) || ':' || p.txid || ':' || p.vout || ':' || p.generation
            where p.part_key is null and p.generation > 0 and not exists (select from payouts r where r.reimburses = p.transaction_id)
              and ${ALONE}
              and case when p.was_lost then not l.merchants else l.merchants and not l.suspense end`,
  },
];
