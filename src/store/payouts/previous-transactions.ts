// Where the outputs that a batch spends were made: for chains whose signatures do not cover the amounts of inputs, the signer must see the
// transactions that made them.
import type { UtxoCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type MadeIn = {
  readonly txid: string;
  /** Our own transaction. */
  readonly raw: Buffer | null;
  /** The block of the best chain that has it; null while it is in none. */
  readonly blockHash: string | null;
};

/** The transactions that made the inputs of a batch, each once: its bytes where they are ours, otherwise its block. */
export async function madeIn(sql: Sql, batchId: string, currency: UtxoCode): Promise<readonly MadeIn[]> {
  const { rows } = await sql.query<{ txid: string; raw: Buffer | null; block_hash: string | null }>({
    name: 'inputs_made_in',
    text: `select i.txid, (select a.raw from outgoing_attempts a where a.currency = $2 and a.txid = i.txid) as raw,
                  coalesce((select p.block_hash from payments p where p.currency = $2 and p.txid = i.txid and p.block_hash is not null limit 1),
                           (select c.block_hash from own_outputs c where c.currency = $2 and c.txid = i.txid and c.block_hash is not null limit 1)) as block_hash
             from (select distinct txid from outgoing_inputs where batch_id = $1) i order by i.txid`,
    values: [batchId, currency],
  });
  return rows.map(({ txid, raw, block_hash: blockHash }) => ({ txid, raw, blockHash }));
}
