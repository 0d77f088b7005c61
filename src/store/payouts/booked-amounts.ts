// What the ledger has booked for payouts. Whatever gives money back to a merchant takes its amounts from here: entries are append-only, and a
// payout's row is not.
import type { CurrencyCode, LedgerCurrency } from '../../core/currency.ts';
import { minus } from '../../core/money.ts';
import type { BookedSteps } from '../../core/payouts/booked-steps.ts';
import type { Sql } from '../postgres/connect.ts';

type Row = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly currency: LedgerCurrency;
  readonly amount: bigint;
  readonly feeMax: bigint;
  readonly fee: bigint | null;
  readonly reimburses: string | null;
  readonly source?: { readonly currency: CurrencyCode; readonly amount: bigint } | null;
};
type Booked = {
  id: string;
  merchant_id: bigint | null;
  currency: LedgerCurrency | null;
  whole: string | null;
  source_currency: CurrencyCode | null;
  taken: string | null;
  handed_over: string | null;
  spent: string | null;
};

/**
 * The payouts with the amounts that were booked for them in place of those in their rows: whose money and how much the hold took, what an ach
 * payout has handed to the bank, and the fee with which a payout was completed. Reimbursements stay as they are: the judge of their transaction
 * says where their money belongs.
 * @throws Error for one that has no hold in the ledger: nothing was ever taken for it
 */
export async function asBooked<P extends Row>(sql: Sql, payouts: readonly P[]): Promise<P[]> {
  const ids = payouts.flatMap(({ id, reimburses }) => (reimburses === null ? [id] : []));
  if (ids.length === 0) return [...payouts];
  return payouts.map(await bookedAmounts(sql, ids));
}

/**
 * As {@link asBooked}, for payouts whose rows are read together with what is booked.
 * @returns what makes of a payout's row the same with the amounts that were booked
 */
export async function bookedAmounts(sql: Sql, ids: readonly string[]): Promise<<P extends Row>(payout: P) => P> {
  const { rows } = await sql.query<Booked>({
    name: 'booked_payouts',
    text: `select t.id, h.merchant_id, h.currency, h.whole, h.source_currency, h.taken, s.handed_over, f.spent
             from unnest($1::text[]) as t(id)
             left join lateral (
               select min(a.merchant_id) filter (where a.kind = 'held') as merchant_id, min(a.currency) filter (where a.kind = 'held') as currency,
                      -sum(p.amount) filter (where a.kind = 'held') as whole, min(a.currency) filter (where a.kind = 'available') as source_currency,
                      sum(p.amount) filter (where a.kind = 'available') as taken
                 from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
                where e.key = 'po:' || t.id || ':hold') h on true
             left join lateral (
               select sum(p.amount) as handed_over from ledger.entry e join ledger.posting p on p.entry_id = e.id
                 join ledger.account a on a.id = p.account_id
                where e.key = 'po:' || t.id || ':sign:1' and a.kind = 'asset_bank_outbound') s on true
             left join lateral (
               select sum(p.amount) as spent from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
                where e.key = 'po:' || t.id || ':final' and a.kind = 'held') f on true`,
    values: [ids],
  });
  const booked = new Map(rows.map((row) => [row.id, row]));
  return (payout) => (payout.reimburses === null ? withBooked(payout, booked.get(payout.id)) : payout);
}

function withBooked<P extends Row>(payout: P, booked: Booked | undefined): P {
  if (booked == null || booked.merchant_id === null || booked.currency === null || booked.whole === null || booked.taken === null)
    throw new Error(`${payout.id} has no hold in the ledger`);
  const whole = BigInt(booked.whole);
  const amount = booked.handed_over === null ? payout.amount : BigInt(booked.handed_over);
  const isAch = payout.source != null;
  return {
    ...payout,
    merchantId: booked.merchant_id,
    currency: booked.currency,
    amount,
    feeMax: minus(whole, amount),
    fee: booked.spent === null || isAch ? payout.fee : minus(BigInt(booked.spent), amount),
    ...(isAch ? { source: { currency: booked.source_currency, amount: BigInt(booked.taken) } } : {}),
  };
}

/** The same for one. */
export async function oneAsBooked<P extends Row>(sql: Sql, payout: P): Promise<P> {
  return (await asBooked(sql, [payout]))[0] as P;
}

/**
 * What is booked of each step, by identifier; nothing is missing where an identifier has no entry.
 * @param of whose steps: the beginning of their keys; `unknown`: what bank files have paid to others
 */
export async function bookedSteps(
  sql: Sql,
  of: 'po' | 'batch' | 'sweep' | 'unknown',
  ids: readonly string[],
): Promise<(id: string) => BookedSteps> {
  const { rows } = await sql.query<{ id: string; step: string; times: number; spent: string }>({
    name: 'booked_steps',
    // every key of one identifier, by index: ';' follows ':'
    text: `select t.id, regexp_replace(substr(e.key, length($1 || t.id) + 3), '^[0-9]+:', '') as step, count(distinct e.id)::int as times,
                  coalesce(-sum(p.amount) filter (where a.kind = 'asset_chain'), 0) as spent
             from unnest($2::text[]) as t(id)
             join ledger.entry e on e.key >= $1 || ':' || t.id || ':' and e.key < $1 || ':' || t.id || ';'
             join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id group by 1, 2`,
    values: [of, ids],
  });
  const byId = Map.groupBy(rows, ({ id }) => id);
  return (id) => new Map((byId.get(id) ?? []).map(({ step, times, spent }) => [step, { times, out: BigInt(spent) }]));
}

/** The same of one identifier. */
export async function bookedStepsOf(sql: Sql, of: Parameters<typeof bookedSteps>[1], id: string): Promise<BookedSteps> {
  return (await bookedSteps(sql, of, [id]))(id);
}

/** What is booked as on its way out for a payout's fee: the highest share of its attempts; null when nothing was signed or sent for it. */
export async function bookedFee(sql: Sql, id: string): Promise<bigint | null> {
  const { rows } = await sql.query<{ fee: string | null }>({
    name: 'payout_booked_fee',
    // over Lightning the highest fee is booked until the real one is known
    text: `select coalesce((select max(fee) from outgoing_shares where payout_id = $1),
                           (select p.fee_max from payouts p join lightning_payments l on l.payout_id = p.id where p.id = $1 and l.state <> 'waiting')) as fee`,
    values: [id],
  });
  const fee = rows[0]?.fee ?? null;
  return fee === null ? null : BigInt(fee);
}

/** Whether what a payout, or a reimbursement, takes was taken from where it lies. */
export async function isHeldInLedger(sql: Sql, id: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_held_in_ledger',
    text: `select 1 from ledger.entry where key = 'po:' || $1 || ':hold'`,
    values: [id],
  });
  return rows.length > 0;
}
