// Reads the amounts of inputs out of the raw transactions that made them. A signature from before BIP143 does not cover the amount of its
// input: whoever states it too low makes the rest a fee.
import { createHash } from 'node:crypto';

export type PreviousOutput = { readonly amount: bigint; readonly script: string };

/**
 * The outputs of a raw transaction without witnesses, and its txid; null when the bytes are no such transaction. What follows the lock time
 * (a payload of Dash's special transactions) belongs to the txid.
 */
export function readPrevious(hex: string): { readonly txid: string; readonly outputs: readonly PreviousOutput[] } | null {
  const bytes = Buffer.from(hex, 'hex');
  try {
    const reader = createReader(bytes);
    reader.skip(4);
    const inputs = reader.count();
    if (inputs === 0) return null;
    for (let i = 0; i < inputs; i++) {
      reader.skip(36);
      reader.skip(reader.count());
      reader.skip(4);
    }
    const outputs: PreviousOutput[] = [];
    for (let left = reader.count(); left > 0; left--) {
      const amount = reader.amount();
      outputs.push({ amount, script: reader.take(reader.count()).toString('hex') });
    }
    reader.skip(4);
    const once = createHash('sha256').update(bytes).digest();
    return { txid: createHash('sha256').update(once).digest().reverse().toString('hex'), outputs };
  } catch (error) {
    if (error instanceof RangeError) return null;
    throw error;
  }
}

export type ShownOutputs = {
  /**
   * Remembers those of the outputs that this transaction (hex) has made.
   * @returns its txid; null when the bytes are no transaction
   */
  add(raw: string, outpoints: readonly { readonly txid: string; readonly vout: number }[]): string | null;
  get(outpoint: { readonly txid: string; readonly vout: number }): PreviousOutput | undefined;
};

/** A few hundred batches of those that need it. */
const MOST_REMEMBERED = 10_000;
/** In hex: our own scripts are shorter, and nothing else is asked for. */
const MOST_SCRIPT = 200;

/** Outputs that were shown before they are asked for. What a transaction has made never changes, so they may be remembered; the newest are. */
export function createShownOutputs(most = MOST_REMEMBERED): ShownOutputs {
  const held = new Map<string, PreviousOutput>();
  const keyOf = ({ txid, vout }: { readonly txid: string; readonly vout: number }): string => `${txid}:${vout}`;
  return {
    add(raw, outpoints) {
      const made = readPrevious(raw);
      if (made === null) return null;
      for (const outpoint of outpoints) {
        const output = outpoint.txid === made.txid ? made.outputs[outpoint.vout] : undefined;
        if (output === undefined || output.script.length > MOST_SCRIPT) continue;
        held.delete(keyOf(outpoint));
        held.set(keyOf(outpoint), output);
      }
      for (const oldest of held.keys()) {
        if (held.size <= most) break;
        held.delete(oldest);
      }
      return made.txid;
    },
    get: (outpoint) => held.get(keyOf(outpoint)),
  };
}

function createReader(bytes: Buffer) {
  let at = 0;
  const take = (length: number): Buffer => {
    if (at + length > bytes.length) throw new RangeError('the transaction is cut off');
    at += length;
    return bytes.subarray(at - length, at);
  };
  return {
    take,
    skip: (length: number): void => {
      take(length);
    },
    amount: (): bigint => take(8).readBigUInt64LE(),
    /** CompactSize. */
    count(): number {
      const [first = 0] = take(1);
      if (first < 0xfd) return first;
      if (first === 0xfd) return take(2).readUInt16LE();
      if (first === 0xfe) return take(4).readUInt32LE();
      throw new RangeError('nothing in a transaction is that long');
    },
  };
}
