// Outputs at a script of ours that our key does not control on their chain (a witness program where there is no segwit): only recorded for
// the operator. Whoever mines a block can take them back, so they are no payments and never enter the ledger.
import type { CurrencyCode } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import type { Sql } from '../postgres/connect.ts';
import type { Sighting, SightingsContext } from './payment-facts.ts';

export type UnprotectedPayment = {
  readonly currency: CurrencyCode;
  /** `txid:vout` */
  readonly outpoint: string;
  readonly transactionId: string;
  readonly amount: bigint;
  /** Height of the block in which it was seen; null = only in the mempool. */
  readonly height: number | null;
  readonly seenAtMs: number;
};

/**
 * A miner can make such outputs for free in every block: this many are recorded per transaction and currency, more would tell the operator
 * nothing new.
 */
const MOST_NOTED = 20;

/** Records those seen for the first time, within the watcher's database transaction. */
export async function noteUnprotected(
  sql: Sql,
  currency: CurrencyCode,
  { block }: SightingsContext,
  sightings: readonly Sighting[],
): Promise<void> {
  const seen = sightings.flatMap(({ facts, seenAtMs }) =>
    (facts.unprotectedOutputs ?? []).map((output) => ({ ...output, txid: facts.txid, seenAtMs })),
  );
  if (seen.length === 0) return;
  await sql.query({
    name: 'note_unprotected_payments',
    text: `insert into unprotected_payments (currency, txid, vout, transaction_id, amount, height, seen_at)
             select $1, o.txid, o.vout, o.transaction_id, o.amount, $2, o.seen_at
               from (select s.txid, s.vout, s.amount, s.seen_at, t.id as transaction_id,
                            row_number() over (partition by t.id order by s.nth)
                              + (select count(*) from unprotected_payments u where u.transaction_id = t.id and u.currency = $1) as number
                       from unnest($3::text[], $4::int[], $5::text[], $6::numeric[], $7::timestamptz[]) with ordinality as s(txid, vout, script, amount, seen_at, nth)
                       join transactions t on t.script = decode(s.script, 'hex')) o
              where o.number <= ${MOST_NOTED}
                 or exists (select 1 from unprotected_payments u where u.currency = $1 and u.txid = o.txid and u.vout = o.vout)
             on conflict (currency, txid, vout) do update set height = excluded.height
              where unprotected_payments.height is null and excluded.height is not null`,
    values: [
      currency,
      block?.height ?? null,
      seen.map((one) => one.txid),
      seen.map((one) => one.vout),
      seen.map((one) => one.script),
      seen.map((one) => one.amountMinor),
      seen.map((one) => new Date(one.seenAtMs).toISOString()),
    ],
  });
}

/** One line for the log and for `bursar chain status`. */
export function describeUnprotected({ currency, outpoint, transactionId, amount, height }: UnprotectedPayment): string {
  const where = height === null ? 'in the mempool' : `in block ${height}`;
  return `${formatAmount(amount, currency)} ${currency} (${outpoint}, ${where}) arrived at the address of ${transactionId}, whose script no key of ours controls on this chain: not ours, nothing is booked`;
}

type Row = {
  currency: CurrencyCode;
  txid: string;
  vout: number;
  transaction_id: string;
  amount: string;
  height: number | null;
  seen_at: Date;
};
const COLUMNS = 'currency, txid, vout, transaction_id, amount, height, seen_at';
const payment = (row: Row): UnprotectedPayment => ({
  currency: row.currency,
  outpoint: `${row.txid}:${row.vout}`,
  transactionId: row.transaction_id,
  amount: BigInt(row.amount),
  height: row.height,
  seenAtMs: row.seen_at.getTime(),
});

/** Those of a chain that were not logged yet, and marks them as logged: among all workers only one gets each. */
export async function takeUnreported(sql: Sql, currency: CurrencyCode, nowMs: number): Promise<readonly UnprotectedPayment[]> {
  const { rows } = await sql.query<Row>({
    name: 'take_unreported_payments',
    text: `update unprotected_payments set told_at = $2 where currency = $1 and told_at is null returning ${COLUMNS}`,
    values: [currency, new Date(nowMs)],
  });
  return rows.map(payment);
}

/** The newest ones, for `bursar chain status`. */
export async function readUnprotected(sql: Sql, limit: number): Promise<readonly UnprotectedPayment[]> {
  const { rows } = await sql.query<Row>({
    name: 'read_unprotected_payments',
    text: `select ${COLUMNS} from unprotected_payments order by seen_at desc, txid, vout limit $1`,
    values: [limit],
  });
  return rows.map(payment);
}

/** Those at the address of a transaction. */
export async function readUnprotectedOf(sql: Sql, transactionId: string): Promise<readonly UnprotectedPayment[]> {
  const { rows } = await sql.query<Row>({
    name: 'read_unprotected_of_transaction',
    text: `select ${COLUMNS} from unprotected_payments where transaction_id = $1 order by seen_at, txid, vout`,
    values: [transactionId],
  });
  return rows.map(payment);
}
