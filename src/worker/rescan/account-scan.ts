// How far an account was used on its chain: searches every block from a height on for outputs to its addresses, in both chains of the
// account (BIP44), as long as used addresses follow each other without a larger gap.
import type { CurrencyCode } from '../../core/currency.ts';
import type { ChainPort, WatchList } from '../../core/ports.ts';
import { createByteSet } from '../chain/byte-set.ts';

export type AccountUse = {
  /** The highest index that was paid; null when none was. */
  readonly receive: number | null;
  readonly change: number | null;
  /** How many unused indexes after the highest were searched. */
  readonly gap: number;
  readonly fromHeight: number;
  readonly toHeight: number;
  /** `filters`: the node's block filters selected the blocks to read; `blocks`: all of them were read. */
  readonly by: 'filters' | 'blocks';
};

export type ScanOptions = {
  /** The output script of an index of the receiving chain (0) or of the change chain (1); null where BIP32 defines no key. */
  readonly scriptOf: (chain: 0 | 1, index: number) => Uint8Array | null;
  readonly fromHeight: number;
  /** How long one answer about filters should take at most, ms (default 2 s): it decides how many blocks are searched at once. */
  readonly answerMs?: number;
  readonly onProgress?: (height: number, toHeight: number) => void;
};

/** The account cannot be searched; the message says why. */
export class ScanRefused extends Error {}

/**
 * The search ends after this many unused addresses in a row. A start of the signer passes over up to 11,000 (signer/addresses/granting.ts), and a
 * process that ends loses up to 2,000 that lay ready.
 */
export const GAP = 20_000;
/** The first answer about filters is for few blocks: a filter of a full block takes a node many times as long as one of an empty one. */
const FILTERED_AT_FIRST = 50;
const FILTERED_AT_MOST = 2_000;
const ANSWER_MS = 2_000;
const READ_AHEAD = 4;
const MEMPOOL_AT_ONCE = 2_000;
/** How many of the blocks that were read last are read again when new ones came meanwhile. */
const READ_AGAIN = 10;

type Looked = { readonly scripts: readonly Uint8Array[]; readonly watch: WatchList };

/**
 * Reads the chain up to the node's tip, and its mempool. Addresses that were given out and never paid leave no trace there.
 * @throws ScanRefused for a node that is not ready or has pruned blocks
 */
export async function scanAccount(port: ChainPort, options: ScanOptions): Promise<AccountUse> {
  const { fromHeight } = options;
  const used: [number, number] = [-1, -1];
  let toHeight = await readableTo(port, fromHeight);
  let by: AccountUse['by'] | null = null;
  const { look, widen } = createLook(options.scriptOf, used);
  let wanted = GAP;
  widen(wanted);
  let next = fromHeight;
  do {
    const how = await readChain(port, look, { ...options, fromHeight: next }, toHeight);
    by ??= how;
    await readMempool(port, look);
    next = toHeight + 1;
    const needed = Math.max(used[0], used[1]) + 1 + GAP;
    if (needed > wanted) {
      // an index used beyond the searched range may have others near it that were paid earlier
      wanted = needed;
      widen(wanted);
      next = fromHeight;
    }
    // what was mined while it read is in no mempool, and the last blocks may have been replaced
    const tip = await readableTo(port, fromHeight);
    if (tip > toHeight) next = Math.min(next, Math.max(fromHeight, toHeight + 1 - READ_AGAIN));
    toHeight = Math.max(tip, toHeight);
  } while (next <= toHeight);
  const [receive, change] = used.map((index) => (index < 0 ? null : index)) as [number | null, number | null];
  return { receive, change, gap: GAP, fromHeight, toHeight, by: by ?? 'blocks' };
}

/** The height of the node's tip. @throws ScanRefused when it cannot be read from this height on */
async function readableTo(port: ChainPort, fromHeight: number): Promise<number> {
  const condition = await port.condition();
  if (condition.state !== 'ready')
    throw new ScanRefused(`the node of ${port.currency} is ${condition.state}: ${condition.reason}`);
  if (condition.prunedBelow !== undefined && fromHeight < condition.prunedBelow) {
    throw new ScanRefused(`the node of ${port.currency} is pruned and has no block below ${condition.prunedBelow}`);
  }
  return condition.height;
}

/** The scripts of the first indexes of both chains, none until it is widened to that many; each one seen raises `used`. */
function createLook(
  scriptOf: ScanOptions['scriptOf'],
  used: [number, number],
): { readonly look: Looked; readonly widen: (count: number) => void } {
  const set = createByteSet();
  const places = new Map<string, readonly [0 | 1, number]>();
  const scripts: Uint8Array[] = [];
  let derived = 0;
  function widen(count: number): void {
    for (; derived < count; derived++) {
      for (const chain of [0, 1] as const) {
        const script = scriptOf(chain, derived);
        if (script === null) continue;
        set.add(script, 0, script.length);
        places.set(Buffer.from(script).toString('hex'), [chain, derived]);
        scripts.push(script);
      }
    }
  }
  const watch: WatchList = {
    hasScript(bytes, start, end) {
      if (!set.has(bytes, start, end)) return false;
      const place = places.get(Buffer.from(bytes.subarray(start, end)).toString('hex'));
      if (place !== undefined) used[place[0]] = Math.max(used[place[0]], place[1]);
      return false;
    },
    hasOutpoint: () => false,
    fresh: async () => undefined,
  };
  return { look: { scripts, watch }, widen };
}

async function readChain(port: ChainPort, look: Looked, options: ScanOptions, toHeight: number): Promise<AccountUse['by']> {
  const { fromHeight, onProgress } = options;
  const filtered = await port.blocksPaying?.(look.scripts, fromHeight, Math.min(toHeight, fromHeight));
  if (filtered !== undefined && filtered !== null) {
    const { answerMs = ANSWER_MS } = options;
    let width = FILTERED_AT_FIRST;
    for (let height = fromHeight, end = 0; height <= toHeight; height = end + 1) {
      end = Math.min(toHeight, height + width - 1);
      const askedMs = performance.now();
      const hashes = await port.blocksPaying?.(look.scripts, height, end);
      if (hashes === undefined || hashes === null)
        throw new ScanRefused(`the node of ${port.currency} stopped answering requests for its filters`);
      width = Math.max(1, Math.min(FILTERED_AT_MOST, width * 2, Math.floor((width * answerMs) / (performance.now() - askedMs))));
      for (const hash of hashes) await port.readBlock(hash, look.watch);
      onProgress?.(end, toHeight);
    }
    return 'filters';
  }
  const ahead: Promise<void>[] = [];
  for (let height = fromHeight, next = fromHeight; height <= toHeight; height++) {
    for (; next <= toHeight && ahead.length < READ_AHEAD; next++) {
      const reading = readAt(port, look, next);
      reading.catch(() => undefined); // awaited below, or of no interest after an error before it
      ahead.push(reading);
    }
    await ahead.shift();
    onProgress?.(height, toHeight);
  }
  return 'blocks';
}

async function readAt(port: ChainPort, look: Looked, height: number): Promise<void> {
  const hash = await port.hashAt(height);
  if (hash === null)
    throw new ScanRefused(`the node of ${port.currency} has no block ${height} any more: its chain is being replaced`);
  await port.readBlock(hash, look.watch);
}

async function readMempool(port: ChainPort, look: Looked): Promise<void> {
  const listed = await port.mempool();
  for (let from = 0; from < listed.length; from += MEMPOOL_AT_ONCE) {
    await port.readMempoolTransactions(listed.slice(from, from + MEMPOOL_AT_ONCE), look.watch);
  }
}

/** What was searched and what the search can miss, in sentences for an operator. */
export function describeUse(currency: CurrencyCode, use: AccountUse): readonly string[] {
  const { receive, change, fromHeight, toHeight, by, gap } = use;
  const how = by === 'filters' ? "by the node's block filters" : 'all of them read';
  const found = receive === null && change === null ? 'was never paid' : `was paid up to index ${receive ?? 'none'}`;
  return [
    `The chain of ${currency} was asked, blocks ${fromHeight} to ${toHeight} (${how}) and the mempool: the account ${found}${change === null ? '' : `, its change up to ${change}`}.`,
    `It does not show addresses that were given out and never paid${fromHeight > 0 ? `, payments before block ${fromHeight}` : ''}, nor what lies more than ${gap} unused addresses further: if there are any, use --start.`,
  ];
}
