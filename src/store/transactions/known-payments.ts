// The payments of one transaction that has very many of them, as they are known from one verdict to the next: of each the database tells which
// version it has, and only what has another one is read, some at a time. What the judge is given is the same as when all are read at once.
import type { Payment } from '../../core/judge/case.ts';
import { parseRate, type Rate } from '../../core/rate.ts';
import { inParts } from '../chain/script-owners.ts';
import type { Sql } from '../postgres/connect.ts';
import {
  ARRIVED_AT,
  type ChainFacts,
  COIN_COLUMNS,
  type PaymentRow,
  paymentOf,
  rateAt,
  readSpends,
  type ToldView,
  toldViews,
  VIEWS,
} from './case-facts.ts';

type Known = {
  /** The database transaction that wrote the row as it is known (xmin): whoever writes it again writes another one. */
  readonly version: number;
  /** Currency and moment of its arrival, by which its rate is found. */
  readonly arrival: string;
  payment: Payment;
};
/** By the payments' ids. */
export type KnownPayments = Map<bigint, Known>;

/** A statement reads so many payments: more would hold this process for long when they come. */
const READ_AT_ONCE = 1_000;
const MOST_READINGS = 5;

/** SQL that names the moment of an arrival to the microsecond. */
const ARRIVAL = (currency: string, at: string): string => `${currency} || ' ' || (extract(epoch from ${at}) * 1000000)::bigint`;

/**
 * The payments of one transaction and how far each chain was read, at one moment, as `readChainFacts` tells them. What is known already is
 * not read again.
 * @param known what was read before; it is brought up to date
 * @param contestedLimitMinor cents: the limit on a chain over which our nodes contradict each other
 */
export async function readKnown(
  sql: Sql,
  transactionId: string,
  known: KnownPayments,
  contestedLimitMinor: bigint,
): Promise<ChainFacts> {
  for (let reading = 1; reading <= MOST_READINGS; reading++) {
    const told = await readVersions(sql, transactionId);
    // a row that changed between the two statements is of a later moment than the rest: everything is asked again
    if (!(await readChanged(sql, known, told.versions))) continue;
    const payments = await coinsAt(sql, known, told.rates);
    return { ...toldViews(told.views, contestedLimitMinor), payments: new Map([[transactionId, payments]]) };
  }
  throw new Error(`the payments of ${transactionId} changed ${MOST_READINGS} times while they were read`);
}

/** Reads what is not known yet, so that little is left to read later, under a lock. */
export async function readAhead(sql: Sql, transactionId: string, known: KnownPayments): Promise<void> {
  const { versions } = await readVersions(sql, transactionId);
  await readChanged(sql, known, versions);
}

type Told = {
  readonly views: readonly ToldView[];
  readonly versions: ReadonlyMap<bigint, number>;
  readonly rates: ReadonlyMap<string, Rate | null>;
};

async function readVersions(sql: Sql, transactionId: string): Promise<Told> {
  const { rows } = await sql.query<{
    views: readonly ToldView[] | null;
    versions: Buffer | null;
    rates: readonly (readonly [string, string | null])[] | null;
  }>({
    name: 'read_payment_versions',
    text: `
      with mine as materialized (select p.id, p.xmin as version, p.currency, ${ARRIVED_AT} as arrived_at from payments p where p.transaction_id = $1)
      select (${VIEWS}) as views, (select string_agg(int8send(id) || xidsend(version), '') from mine) as versions,
             (select jsonb_agg(jsonb_build_array(${ARRIVAL('a.currency', 'a.arrived_at')}, ${rateAt('a.currency', 'a.arrived_at')}))
                from (select distinct currency, arrived_at from mine) a) as rates`,
    values: [transactionId],
  });
  const row = rows[0];
  const versions = new Map<bigint, number>();
  const packed = row?.versions ?? Buffer.alloc(0);
  for (let at = 0; at < packed.length; at += 12) versions.set(packed.readBigInt64BE(at), packed.readUInt32BE(at + 8));
  const rates = new Map((row?.rates ?? []).map(([arrival, usd]) => [arrival, usd === null ? null : parseRate(usd)]));
  return { views: row?.views ?? [], versions, rates };
}

/** Brings what is known to these versions; false when a payment has a later one by now. */
async function readChanged(sql: Sql, known: KnownPayments, versions: ReadonlyMap<bigint, number>): Promise<boolean> {
  for (const id of known.keys()) if (!versions.has(id)) known.delete(id);
  const wanted = [...versions].flatMap(([id, version]) => (known.get(id)?.version === version ? [] : [id]));
  const texts = new Map<string, string>();
  const shared = (text: string | null): string | null => {
    if (text === null) return null;
    const kept = texts.get(text);
    if (kept === undefined) texts.set(text, text);
    return kept ?? text;
  };
  let isSame = true;
  await inParts(wanted, READ_AT_ONCE, async (part) => {
    const { rows } = await sql.query<PaymentRow & { version: string; arrival: string }>({
      name: 'read_changed_payments',
      text: `select p.xmin::text as version, ${ARRIVAL('p.currency', ARRIVED_AT)} as arrival, ${COIN_COLUMNS} from payments p where p.id = any ($1)`,
      values: [part],
    });
    for (const row of rows) {
      const version = Number(row.version);
      if (version !== versions.get(row.id)) isSame = false;
      row.txid = shared(row.txid) as string;
      row.block_hash = shared(row.block_hash);
      row.judged_block_hash = shared(row.judged_block_hash);
      known.set(row.id, { version, arrival: shared(row.arrival) as string, payment: paymentOf(row, null) });
    }
    isSame = isSame && rows.length === part.length;
  });
  return isSame;
}

/** The payments in the order in which they were seen, each with the rate of its arrival and what a replaced one spends. */
async function coinsAt(sql: Sql, known: KnownPayments, rates: Told['rates']): Promise<readonly Payment[]> {
  const replaceable = [...known.values()].map(({ payment }) => ({
    currency: payment.currency,
    txid: payment.txid,
    conflict_txid: payment.conflictTxid,
  }));
  const spends = await readSpends(sql, replaceable);
  for (const one of known.values()) {
    const { payment } = one;
    const arrivalRate = rates.get(one.arrival) ?? null;
    const spent = spends.get(payment.txid) ?? NOTHING;
    if (payment.arrivalRate !== arrivalRate || payment.spends !== spent) one.payment = { ...payment, arrivalRate, spends: spent };
  }
  return [...known.values()].map(({ payment }) => payment).sort(bySight);
}
const NOTHING: readonly string[] = [];

function bySight(a: Payment, b: Payment): number {
  return a.seenAtMs - b.seenAtMs || (a.id < b.id ? -1 : 1);
}

/** Of how many payments what is known is kept between verdicts, of all transactions together. */
const KEPT = 100_000;

/** What is known of the transactions that were decided last. */
export type KnownCases = { of(transactionId: string): KnownPayments; forget(transactionId: string): void };

export function createKnownCases(): KnownCases {
  const cases = new Map<string, KnownPayments>();
  return {
    of(transactionId) {
      const known = cases.get(transactionId) ?? new Map();
      cases.delete(transactionId);
      let kept = 0;
      for (const [id, one] of [...cases].reverse()) {
        kept += one.size;
        if (kept + known.size > KEPT) cases.delete(id);
      }
      cases.set(transactionId, known);
      return known;
    },
    forget: (transactionId) => void cases.delete(transactionId),
  };
}
