// Outputs of a batch of which an operator has said that what made them can be in no block any more.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Outpoint } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';

/** The batch that a payout is in; null = there is no such payout, and in it null = it is in none. */
export async function batchOfPayout(sql: Sql, payoutId: string): Promise<{ readonly batchId: string | null } | null> {
  const { rows } = await sql.query<{ batch_id: string | null }>({
    name: 'batch_of_payout',
    text: 'select batch_id from payouts where id = $1',
    values: [payoutId],
  });
  const [row] = rows;
  return row === undefined ? null : { batchId: row.batch_id };
}

/**
 * Writes an operator's word down, and has the driver look at the batch.
 * @param word.height what is read of the chain: final from here on, it decides
 * @param word.text who says so, and why
 */
export async function setGivenUp(
  sql: Sql,
  batchId: string,
  outputs: readonly Outpoint[],
  word: { readonly height: number; readonly text: string },
): Promise<void> {
  await sql.query({
    name: 'set_outputs_given_up',
    text: `update outgoing_inputs i set undone_height = $4 from unnest($2::text[], $3::int[]) as t(txid, vout)
            where i.batch_id = $1 and i.txid = t.txid and i.vout = t.vout`,
    values: [batchId, outputs.map(({ txid }) => txid), outputs.map(({ vout }) => vout), word.height],
  });
  await sql.query({
    name: 'set_batch_given_up',
    text: `update outgoing_batches set given_up = $2, due_at = '-infinity' where id = $1`,
    values: [batchId, word.text],
  });
}

/** A block has these after all: no operator's word that it never will counts any more. */
export async function forgetGivenUp(sql: Sql, currency: CurrencyCode, txids: readonly string[]): Promise<void> {
  await sql.query({
    name: 'forget_given_up',
    text: 'update outgoing_inputs set undone_height = null where currency = $1 and txid = any ($2) and undone_height is not null',
    values: [currency, txids],
  });
}
