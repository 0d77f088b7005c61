// Simulated Dash quorums: which transactions hold an InstantSend lock and up to which block the chain is locked. Set by the test (or
// automatically, with `auto`), shown by the RPC answers, and enforced against rivals of a locked transaction.
import { numberOf } from './lossless.ts';

type Input = { readonly txid: string; readonly vout: unknown };

export type Locks = {
  /** Every transaction that enters the mempool is locked at once. */
  auto: boolean;
  /** Height up to which the chain is locked; -1 = no ChainLock yet. */
  chainLock: number;
  lock(txid: string, inputs: readonly Input[]): void;
  has(txid: string): boolean;
  inputsOf(txid: string): readonly { readonly txid: string; readonly vout: number }[];
  /** Whether one of these outputs is locked to another transaction. */
  refuses(txid: string, inputs: readonly Input[]): boolean;
};

const outpoint = (input: Input): string => `${input.txid}:${numberOf(input.vout)}`;

export function createLocks(): Locks {
  const locked = new Map<string, readonly Input[]>();
  const outputs = new Map<string, string>();
  return {
    auto: false,
    chainLock: -1,
    lock(txid, inputs) {
      locked.set(txid, inputs);
      for (const input of inputs) outputs.set(outpoint(input), txid);
    },
    has: (txid) => locked.has(txid),
    inputsOf: (txid) => (locked.get(txid) ?? []).map(({ txid: from, vout }) => ({ txid: from, vout: numberOf(vout) })),
    refuses: (txid, inputs) =>
      inputs.some((input) => {
        const owner = outputs.get(outpoint(input));
        return owner !== undefined && owner !== txid;
      }),
  };
}
