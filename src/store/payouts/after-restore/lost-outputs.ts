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

/** Those to these scripts (hex), with the payouts about which a person was asked because of each. */
export async function lostOutputsTo(
  sql: Sql,
  currency: CurrencyCode,
  scripts: readonly string[],
): Promise<readonly (LostOutput & { readonly asked: readonly AskedAbout[] })[]> {
  const { rows } = await sql.query<Omit<LostOutput, 'amount'> & { readonly amount: string }>({
    name: 'lost_outputs_to',
    text: `select txid, vout, encode(script, 'hex') as script, amount from lost_outputs
            where currency = $1 and script = any ($2) order by txid, vout`,
    values: [currency, scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  if (rows.length === 0) return [];
  const askedBecauseOf = await askedAbout(
    sql,
    currency,
    rows.map(({ txid }) => txid),
  );
  return rows.map(({ amount, ...row }) => ({
    ...row,
    amount: BigInt(amount),
    asked: askedBecauseOf({ txid: row.txid, place: String(row.vout) }),
  }));
}
