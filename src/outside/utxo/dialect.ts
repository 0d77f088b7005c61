// What differs between the JSON-RPC of the coins' nodes, as far as we call it: one row a coin. What differs between two engines of one coin
// (BCHN and bchd) is found out by asking: a method that is not there is refused. Read by utxo-node.ts and utxo-locks.ts.
import type { UtxoCode } from '../../core/currency.ts';
import type { RpcRefusal } from './node-trouble.ts';

export type UtxoDialect = {
  /** The second parameter of getblock that asks for the raw bytes; Dogecoin Core knows only a boolean. */
  readonly rawBlock: 0 | false;
  /** getrawtransaction tells InstantSend and ChainLocks (Dash Core). */
  readonly locks: boolean;
  /** getdsproof tells double-spend proofs (BCHN; bchd refuses it). */
  readonly doubleSpendProofs: boolean;
};

const PLAIN: UtxoDialect = { rawBlock: 0, locks: false, doubleSpendProofs: false };

export const UTXO_DIALECTS: Readonly<Record<UtxoCode, UtxoDialect>> = {
  BTC: PLAIN,
  LTC: PLAIN,
  BCH: { ...PLAIN, doubleSpendProofs: true },
  DASH: { ...PLAIN, locks: true },
  DOGE: { ...PLAIN, rawBlock: false },
};

/** Whether this is how a node refuses getblockhash for a height above its tip: -8 of Bitcoin Core and its children, -1 of bchd. */
export const isBeyondTip = ({ code, message }: RpcRefusal): boolean =>
  code === -8 || (code === -1 && message.includes('out of range'));
