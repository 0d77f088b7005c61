// The payments of one transaction that has very many of them, kept in memory from one verdict to the next: the database returns the version
// of each row, and only rows with another version are read, in slices. The judge gets the same payments as when all are read at once.
import type { Payment } from '../../core/judge/case.ts';
import { isLive } from '../../core/judge/payments.ts';
import { parseRate, type Rate } from '../../core/rate.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';
import {
  ARRIVED_AT,
  type ChainFacts,
  type ChainViewRow,
  chainFactsOf,
  NOTHING,
  PAYMENT_COLUMNS,
  type PaymentRow,
  paymentOf,
  rateAt,
  readSpends,
  VIEWS,
} from './case-facts.ts';
import { IS_UNWRITTEN } from './payment-decisions.ts';
import { IS_REPLACED, readReplacedBy } from './replaced-payments.ts';

type Known = {
  /**
   * The database transaction that wrote the row as we know it (xmin): every later write to the same database has another one. Of a database
   * that was replaced nothing is known.
   */
  readonly version: number;
  /** Currency and moment of its arrival, the key of its rate. */
  readonly arrival: string;
  payment: Payment;
};
/** By payment id. */
export type KnownPayments = Map<number, Known>;

/** The largest number of payments in one statement: more would occupy this process for long when they arrive. */
const READ_AT_ONCE = 1_000;
const MOST_READINGS = 5;

/** More payments have changed than may be read now. */
export class MuchChanged extends Error {}

/**
 * The payments of one transaction and how far each chain was read, at one moment, as `readChainFacts` returns them. Payments known already
 * are not read again; none are read while an earlier verdict is not written to all of them. Of those that were replaced before they were
 * booked (replaced-payments.ts) only one is read, and what decides whether a replacement is on time.
 * @param known what was read before; it is brought up to date
 * @param options.contestedLimitMinor cents: the limit above which two nodes must hold a payment's block
 * @param options.most the largest number of payments to read; absent: all that have changed
 * @throws MuchChanged when more have changed
 */
export async function readKnown(
  sql: Sql,
  transactionId: string,
  known: KnownPayments,
  options: { readonly contestedLimitMinor: bigint; readonly most?: number },
): Promise<ChainFacts> {
  for (let reading = 1; reading <= MOST_READINGS; reading++) {
    const { views, versions, unwritten, replaced, kept } = await readVersions(sql, transactionId);
    const chainFacts = chainFactsOf(views, options.contestedLimitMinor);
    if (unwritten) return { ...chainFacts, payments: new Map(), unwritten: new Set([transactionId]) };
    const changed = changedSince(known, versions);
    if (changed.size > (options.most ?? changed.size)) throw new MuchChanged(`${changed.size} payments have changed`);
    // a row that changed between the two statements is newer than the rest: everything is asked again
    if (!(await readChanged(sql, known, changed))) continue;
    let payments = await paymentsAt(sql, known);
    const fresh = replaced ? payments.filter((payment) => isLive(payment) && !payment.classified) : [];
    if (fresh.length > 0) {
      payments = [...withoutKept(payments, kept, fresh), ...(await readReplacedBy(sql, transactionId, fresh))].sort(bySight);
      // one of those may have come back in between
      const again = await readVersions(sql, transactionId);
      if (again.versions.length !== versions.length || changedSince(known, again.versions).size > 0) continue;
    }
    return { ...chainFacts, payments: new Map([[transactionId, payments]]), unwritten: new Set() };
  }
  throw new Error(`the payments of ${transactionId} changed ${MOST_READINGS} times while they were read`);
}

/** Reads what is not known yet in advance (at most `most` payments), so that little is left to read under a lock. */
export async function readAhead(
  sql: Sql,
  transactionId: string,
  known: KnownPayments,
  most = Number.POSITIVE_INFINITY,
): Promise<void> {
  const { versions } = await readVersions(sql, transactionId);
  await readChanged(sql, known, new Map([...changedSince(known, versions)].slice(0, most)));
}

/** How the versions come: of each payment the id, eight bytes, and the version, four. */
const PACKED = { version: 8, length: 12 };
const VERSION = 'int8send(p.id) || xidsend(p.xmin)';

async function readVersions(
  sql: Sql,
  transactionId: string,
): Promise<{
  readonly views: readonly ChainViewRow[];
  readonly versions: Buffer;
  readonly unwritten: boolean;
  /** Whether some were replaced and are left out, and the one of them that is not. */
  readonly replaced: boolean;
  readonly kept: bigint | null;
}> {
  const { rows } = await sql.query<{
    views: readonly ChainViewRow[] | null;
    versions: Buffer | null;
    unwritten: boolean;
    replaced: boolean;
    kept: bigint | null;
  }>({
    name: 'read_payment_versions',
    // one replaced payment stays, so that a transaction all of whose payments were replaced is not one without payments; the rows are read
    // once, because a stranger can make tens of thousands of them
    text: `with scanned as materialized (
             select bool_or(${IS_REPLACED('p')}) as replaced,
                    min(p.id) filter (where p.noticed_at is not null and p.currency = t.currency and ${IS_REPLACED('p')}) as kept,
                    string_agg(${VERSION}, '') filter (where not ${IS_REPLACED('p')}) as versions
               from payments p join transactions t on t.id = p.transaction_id where p.transaction_id = $1)
           select (${VIEWS}) as views, ${IS_UNWRITTEN('$1')} as unwritten, coalesce(s.replaced, false) as replaced, s.kept,
                  coalesce(s.versions, '') || coalesce((select ${VERSION} from payments p where p.id = s.kept), '') as versions from scanned s`,
    values: [transactionId],
  });
  const [row] = rows;
  return {
    views: row?.views ?? [],
    versions: row?.versions ?? Buffer.alloc(0),
    unwritten: row?.unwritten === true,
    replaced: row?.replaced === true,
    kept: row?.kept ?? null,
  };
}

/** What was replaced by one of these is read together with the rest of its transaction. */
function withoutKept(payments: readonly Payment[], kept: bigint | null, fresh: readonly Payment[]): readonly Payment[] {
  const by = new Set(fresh.map(({ currency, txid }) => `${currency} ${txid}`));
  return payments.filter(({ id, currency, conflictTxid }) => id !== kept || !by.has(`${currency} ${conflictTxid}`));
}

/** Removes payments that no longer exist; returns the versions, by id, of those whose known version is another one. */
function changedSince(known: KnownPayments, versions: Buffer): ReadonlyMap<number, number> {
  const changed = new Map<number, number>();
  let found = 0;
  for (let at = 0; at < versions.length; at += PACKED.length) {
    const id = idAt(versions, at);
    const version = versions.readUInt32BE(at + PACKED.version);
    const one = known.get(id);
    if (one !== undefined) found += 1;
    if (one?.version !== version) changed.set(id, version);
  }
  if (found < known.size) forgetOthers(known, versions);
  return changed;
}

function idAt(versions: Buffer, at: number): number {
  return versions.readUInt32BE(at) * 2 ** 32 + versions.readUInt32BE(at + 4);
}

function forgetOthers(known: KnownPayments, versions: Buffer): void {
  const there = new Set<number>();
  for (let at = 0; at < versions.length; at += PACKED.length) there.add(idAt(versions, at));
  for (const id of known.keys()) if (!there.has(id)) known.delete(id);
}

/** Reads these payments again; returns false when one of them has yet another version by now. */
async function readChanged(sql: Sql, known: KnownPayments, changed: ReadonlyMap<number, number>): Promise<boolean> {
  const shared = sharedTexts();
  let isSame = true;
  await inParts([...changed.keys()], READ_AT_ONCE, async (part) => {
    const { rows } = await sql.query<PaymentRow & { version: string; arrival: string }>({
      name: 'read_changed_payments',
      text: `select p.xmin::text as version, p.currency || ' ' || (${ARRIVED_AT})::text as arrival, ${PAYMENT_COLUMNS}
               from payments p where p.id = any ($1)`,
      values: [part],
    });
    for (const row of rows) {
      const id = Number(row.id);
      const version = Number(row.version);
      if (version !== changed.get(id)) isSame = false;
      row.txid = shared(row.txid);
      if (row.block_hash !== null) row.block_hash = shared(row.block_hash);
      if (typeof row.judged_block_hash === 'string') row.judged_block_hash = shared(row.judged_block_hash);
      known.set(id, { version, arrival: shared(row.arrival), payment: paymentOf(row, null) });
    }
    isSame = isSame && rows.length === part.length;
  });
  return isSame;
}

/** One string for all that are equal: thousands of payments have the same txid and block. */
function sharedTexts(): (text: string) => string {
  const texts = new Map<string, string>();
  return (text) => {
    const kept = texts.get(text);
    if (kept !== undefined) return kept;
    texts.set(text, text);
    return text;
  };
}

/** The payments in the order in which they were seen, each with the rate of its arrival and what a replaced one spends. */
async function paymentsAt(sql: Sql, known: KnownPayments): Promise<readonly Payment[]> {
  const all = [...known.values()];
  const rates = await readRates(sql, [...new Set(all.map(({ arrival }) => arrival))]);
  const spends = await readSpends(
    sql,
    all.map(({ payment }) => payment),
  );
  const payments = all.map((one) => {
    const arrivalRate = rates.get(one.arrival) ?? null;
    const spent = spends.size === 0 ? NOTHING : (spends.get(one.payment.txid) ?? NOTHING);
    if (one.payment.arrivalRate !== arrivalRate || one.payment.spends !== spent)
      one.payment = { ...one.payment, arrivalRate, spends: spent };
    return one.payment;
  });
  // they are mostly known in this order already
  const isSorted = payments.every((payment, n) => n === 0 || bySight(payments[n - 1] as Payment, payment) < 0);
  return isSorted ? payments : payments.sort(bySight);
}

async function readRates(sql: Sql, arrivals: readonly string[]): Promise<ReadonlyMap<string, Rate | null>> {
  const { rows } = await sql.query<{ arrival: string; usd: string | null }>({
    name: 'read_arrival_rates',
    text: `select a.currency || ' ' || a.at as arrival, ${rateAt('a.currency', 'a.at::timestamptz')} as usd
             from unnest($1::text[], $2::text[]) as a(currency, at)`,
    values: [
      arrivals.map((arrival) => arrival.slice(0, arrival.indexOf(' '))),
      arrivals.map((arrival) => arrival.slice(arrival.indexOf(' ') + 1)),
    ],
  });
  return new Map(rows.map(({ arrival, usd }) => [arrival, usd === null ? null : parseRate(usd)]));
}

function bySight(a: Payment, b: Payment): number {
  return a.seenAtMs - b.seenAtMs || (a.id < b.id ? -1 : 1);
}

/** For how many payments, of all transactions together, the known state is kept between verdicts. */
const KEPT = 100_000;

/** The known payments of the transactions that were decided last. */
export type KnownCases = { of(transactionId: string): KnownPayments; forget(transactionId: string): void };

/** @param most the number of payments for which it is kept */
export function createKnownCases(most = KEPT): KnownCases {
  const cases = new Map<string, KnownPayments>();
  return {
    of(transactionId) {
      const known = cases.get(transactionId) ?? new Map();
      cases.delete(transactionId);
      let kept = 0;
      for (const [id, one] of [...cases].reverse()) {
        kept += one.size;
        if (kept + known.size > most) cases.delete(id);
      }
      cases.set(transactionId, known);
      return known;
    },
    forget: (transactionId) => void cases.delete(transactionId),
  };
}
