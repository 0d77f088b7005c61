// Outputs of forgotten transactions that were booked as paid to nobody known.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { AskedAbout } from '../../../core/payouts/lost-questions.ts';
import type { Sql } from '../../postgres/connect.ts';
import { askedAbout } from './lost-questions.ts';

export type LostOutput = {
  readonly txid: string;
  readonly vout: number;
  /** hex */
  readonly script: string;
  readonly amount: bigint;
};

/** Notes outputs that were booked as lost; one that is noted stays as it is. */
export async function insertLostOutputs(sql: Sql, currency: CurrencyCode, outputs: readonly LostOutput[]): Promise<void> {
  await sql.query({
    name: 'insert_lost_outputs',
    text: `insert into lost_outputs (currency, txid, vout, script, amount)
             select $1, t.txid, t.vout, decode(t.script, 'hex'), t.amount
               from unnest($2::text[], $3::int[], $4::text[], $5::numeric[]) as t(txid, vout, script, amount)
             on conflict do nothing`,
    values: [
      currency,
      outputs.map(({ txid }) => txid),
      outputs.map(({ vout }) => vout),
      outputs.map(({ script }) => script),
      outputs.map(({ amount }) => amount),
    ],
  });
}

type Asked = LostOutput & { readonly asked: readonly AskedAbout[] };
type Row<More = unknown> = Omit<LostOutput, 'amount'> & { readonly amount: string } & More;

/** Those to these scripts (hex), with the payouts about which a person was asked because of each. */
export async function lostOutputsTo(sql: Sql, currency: CurrencyCode, scripts: readonly string[]): Promise<readonly Asked[]> {
  const { rows } = await sql.query<Row>({
    name: 'lost_outputs_to',
    text: `select txid, vout, encode(script, 'hex') as script, amount from lost_outputs
            where currency = $1 and script = any ($2) order by txid, vout`,
    values: [currency, scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  return withAsked(sql, currency, rows);
}

/**
 * Those that may have sent back, to another address, what one of these reimbursements is to send back: they have what its network fee may leave, at ten times
 * the fees of today at most, and were found after its transaction was made.
 */
export async function lostOutputsInPlaceOf(
  sql: Sql,
  currency: CurrencyCode,
  payoutIds: readonly string[],
): Promise<readonly (Asked & { readonly payoutId: string })[]> {
  const { rows } = await sql.query<Row<{ readonly payoutId: string }>>({
    name: 'lost_outputs_in_place_of',
    text: `select p.id as "payoutId", l.txid, l.vout, encode(l.script, 'hex') as script, l.amount
             from payouts p join transactions t on t.id = p.reimburses
                  join lost_outputs l on l.currency = $1 and l.amount between p.amount - 10 * p.fee_max and p.amount and l.script <> p.script
            where p.id = any ($2)
              and not exists (select from unknown_movements u where u.currency = $1 and u.txid = l.txid and u.seen_at < t.created_at)
            order by l.txid, l.vout`,
    values: [currency, payoutIds],
  });
  return withAsked(sql, currency, rows);
}

async function withAsked<R extends Row>(
  sql: Sql,
  currency: CurrencyCode,
  rows: readonly R[],
): Promise<readonly (Omit<R, 'amount'> & Asked)[]> {
  if (rows.length === 0) return [];
  const askedBecauseOf = await askedAbout(
    sql,
    currency,
    rows.map(({ txid }) => txid),
  );
  return rows.map((row) => ({
    ...row,
    amount: BigInt(row.amount),
    asked: askedBecauseOf({ txid: row.txid, place: String(row.vout) }),
  }));
}
