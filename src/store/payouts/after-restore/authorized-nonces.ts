// Nonces of our addresses on Ethereum's chain that were used by authorizations (EIP-7702), as an operator has had them booked.
import type { BlockRef } from '../../../core/block-ref.ts';
import type { EvmCode } from '../../../core/currency.ts';
import type { Outpoint } from '../../../core/ports.ts';
import type { Sql } from '../../postgres/connect.ts';

/** What has used a nonce, as a transaction's hash. */
type Carried = { readonly currency: EvmCode; readonly txid: string; readonly sender: Outpoint };

/** Books one. */
export async function insertAuthorized(
  sql: Sql,
  { currency, txid, sender, block, by, atMs }: Carried & { readonly block: BlockRef; readonly by: string; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'insert_authorized_nonce',
    text: `insert into authorized_nonces (currency, sender, nonce, txid, height, block_hash, said_by, at) values ($1, $2, $3, $4, $5, $6, $7, $8)`,
    values: [currency, sender.txid, sender.vout, txid, block.height, block.hash, by, new Date(atMs)],
  });
}

/** Whether it is known what has used the nonce of an authorization: that is booked, or another transaction has used it. */
export async function isUseKnown(sql: Sql, { currency, txid, sender }: Carried): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_nonce_use_known',
    text: `select from authorized_nonces where currency = $1 and sender = $2 and nonce = $3
           union all select from outgoing_inputs where currency = $1 and txid = $2 and vout = $3 and spent_by <> $4`,
    values: [currency, sender.txid, sender.vout, txid],
  });
  return rows.length > 0;
}

/** Whether all that a transaction has used of nonces is booked, as its own or as those of authorizations. @param of.senders each with its nonce */
export async function areUsesBooked(
  sql: Sql,
  { currency, txid, senders }: { readonly currency: EvmCode; readonly txid: string; readonly senders: readonly Outpoint[] },
): Promise<boolean> {
  for (const sender of senders) {
    const { rows } = await sql.query({
      name: 'is_nonce_use_booked',
      text: `select from authorized_nonces where currency = $1 and sender = $2 and nonce = $3
             union all select from outgoing_inputs i join outgoing_attempts a on a.batch_id = i.batch_id
                        where i.currency = $1 and i.txid = $2 and i.vout = $3 and a.txid = $4`,
      values: [currency, sender.txid, sender.vout, txid],
    });
    if (rows.length === 0) return false;
  }
  return true;
}

/** Whether a look has found that it has used the nonce in this block, as two nodes showed it then: they may have forgotten the counts of that time. */
export async function wasFound(sql: Sql, { currency, txid, sender }: Carried, blockHash: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'was_authorization_found',
    text: 'select from unknown_movements where currency = $1 and txid = $2 and block_hash = $3 and $4 = any (spends)',
    values: [currency, txid, blockHash, `${sender.txid}:${sender.vout}`],
  });
  return rows.length > 0;
}

/** Whether the key of an address is known to have authorized code. @param sender as an input's txid */
export async function hasAuthorized(sql: Sql, currency: EvmCode, sender: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'has_authorized',
    text: 'select from authorized_nonces where currency = $1 and sender = $2 limit 1',
    values: [currency, sender],
  });
  return rows.length > 0;
}
