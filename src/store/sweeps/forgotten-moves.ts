// What blocks show one of our addresses on Ethereum's chain to have sent to another one of ours, and nobody here has signed.
import type { BlockRef } from '../../core/block-ref.ts';
import type { CurrencyCode, EvmCode } from '../../core/currency.ts';
import type { Outpoint, TransactionFacts } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';

/** `sender`: who has sent it, and with which nonce. */
export type ForgottenMove = { readonly txid: string; readonly sender: Outpoint; readonly block: BlockRef };

/** Notes them; what was signed here is none. The caller knows that senders and payees are ours. */
export async function noteMoves(
  sql: Sql,
  currency: CurrencyCode,
  block: BlockRef,
  moves: readonly TransactionFacts[],
): Promise<void> {
  await sql.query({
    name: 'note_forgotten_moves',
    text: `insert into forgotten_moves (currency, txid, sender, nonce, height, block_hash)
             select $1, m.txid, m.sender, m.nonce, $5, $6 from unnest($2::text[], $3::text[], $4::int[]) as m(txid, sender, nonce)
              where not exists (select from outgoing_attempts a where a.currency = $1 and a.txid = m.txid)
             on conflict (currency, txid) do update set height = excluded.height, block_hash = excluded.block_hash`,
    values: [
      currency,
      moves.map(({ txid }) => txid),
      moves.map(({ inputs }) => inputs[0]?.txid ?? ''),
      moves.map(({ inputs }) => inputs[0]?.vout ?? 0),
      block.height,
      block.hash,
    ],
  });
}

type Raw = { txid: string; sender: string; nonce: number; height: number; block_hash: string };
const COLUMNS = 'txid, sender, nonce, height, block_hash';
const moveOf = (raw: Raw): ForgottenMove => ({
  txid: raw.txid,
  sender: { txid: raw.sender, vout: raw.nonce },
  block: { height: raw.height, hash: raw.block_hash },
});

/** The oldest, in the order of each sender's nonces. */
export async function readMoves(sql: Sql, currency: EvmCode, limit: number): Promise<readonly ForgottenMove[]> {
  const { rows } = await sql.query<Raw>({
    name: 'read_forgotten_moves',
    text: `select ${COLUMNS} from forgotten_moves where currency = $1 order by height, sender, nonce limit $2`,
    values: [currency, limit],
  });
  return rows.map(moveOf);
}

/** Those of one sender from a nonce on, in their order, however many others there are. */
export async function readMovesOf(sql: Sql, currency: EvmCode, from: Outpoint, limit: number): Promise<readonly ForgottenMove[]> {
  const { rows } = await sql.query<Raw>({
    name: 'read_forgotten_moves_of',
    text: `select ${COLUMNS} from forgotten_moves where currency = $1 and sender = $2 and nonce >= $3 order by nonce limit $4`,
    values: [currency, from.txid, from.vout, limit],
  });
  return rows.map(moveOf);
}

/** Whether a transaction is noted as one. */
export async function isNoted(sql: Sql, currency: CurrencyCode, txid: string): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'is_noted_move',
    text: 'select from forgotten_moves where currency = $1 and txid = $2',
    values: [currency, txid],
  });
  return rows.length > 0;
}

/** It is booked, or is none, or its block was replaced: what another block has noted of it meanwhile stays. */
export async function dropMove(
  sql: Sql,
  currency: EvmCode,
  { txid, block }: { readonly txid: string; readonly block: BlockRef },
): Promise<void> {
  await sql.query({
    name: 'drop_forgotten_move',
    text: 'delete from forgotten_moves where currency = $1 and txid = $2 and block_hash = $3',
    values: [currency, txid, block.hash],
  });
}
