// Outputs of forgotten transactions that were booked as paid to nobody known, and the payout about which a person was asked because of each.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { Sql } from '../../postgres/connect.ts';

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

/** Those to these scripts (hex) because of which nobody was asked yet. */
export async function openLostOutputs(
  sql: Sql,
  currency: CurrencyCode,
  scripts: readonly string[],
): Promise<readonly LostOutput[]> {
  const { rows } = await sql.query<Omit<LostOutput, 'amount'> & { readonly amount: string }>({
    name: 'open_lost_outputs',
    text: `select txid, vout, encode(script, 'hex') as script, amount from lost_outputs
            where currency = $1 and asked is null and script = any ($2) order by txid, vout`,
    values: [currency, scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  return rows.map(({ amount, ...row }) => ({ ...row, amount: BigInt(amount) }));
}

/** Of these payouts those about which a person was asked because of one of them. */
export async function askedByOutputs(sql: Sql, payoutIds: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await sql.query<{ asked: string }>({
    name: 'asked_by_lost_outputs',
    text: 'select asked from lost_outputs where asked = any ($1)',
    values: [payoutIds],
  });
  return new Set(rows.map(({ asked }) => asked));
}

/** A person is asked about a payout because of an output. */
export async function setOutputAsked(
  sql: Sql,
  currency: CurrencyCode,
  { txid, vout }: Pick<LostOutput, 'txid' | 'vout'>,
  payoutId: string,
): Promise<void> {
  await sql.query({
    name: 'set_lost_output_asked',
    text: 'update lost_outputs set asked = $4 where currency = $1 and txid = $2 and vout = $3',
    values: [currency, txid, vout, payoutId],
  });
}
