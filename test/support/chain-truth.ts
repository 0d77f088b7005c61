// What really happens on a small chain, and what a watcher of it would record: transactions that pay us, blocks, reorganisations,
// replacements, twins, and outages of our own node. Pure; the setup of the judge's tests is built on it.
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { ChainView, Payment } from '../../src/core/judge/case.ts';
import type { Rate } from '../../src/core/rate.ts';

export type Tx = {
  readonly txid: string;
  readonly inputs: readonly string[];
  /** Amounts of its outputs to us, by output index; none for a double spend. */
  readonly outputs: readonly bigint[];
  readonly coinbase: boolean;
  readonly madeAtMs: number;
  lock: Payment['lock'];
  place: 'mempool' | 'mined' | 'out' | 'dead';
  height: number | null;
};
type Block = { readonly hash: string; readonly timeMs: number };

export type Chain = {
  readonly currency: CurrencyCode;
  readonly txs: Tx[];
  /** The best chain, by height. */
  readonly blocks: Map<number, Block>;
  tip: number;
  up: boolean;
  /** What the service has read. */
  view: ChainView;
  viewTimes: Map<number, number>;
};

export const START_HEIGHT = 1000;
let made = 0;

export function newChain(currency: CurrencyCode, atMs: number): Chain {
  const blocks = new Map([[START_HEIGHT, { hash: `${currency}-${START_HEIGHT}`, timeMs: atMs }]]);
  return {
    currency,
    txs: [],
    blocks,
    tip: START_HEIGHT,
    up: true,
    view: { tipHeight: START_HEIGHT, timeMs: atMs },
    viewTimes: new Map([[START_HEIGHT, atMs]]),
  };
}

export function isAlive(tx: Tx): boolean {
  return tx.place === 'mempool' || tx.place === 'mined';
}

/** Brings a transaction into the mempool (a coinbase into a block of its own); whatever spends the same is dead then. */
export function broadcast(
  chain: Chain,
  tx: {
    outputs: readonly bigint[];
    inputs?: readonly string[];
    coinbase?: boolean;
    lock?: Payment['lock'];
    atMs: number;
    mined?: boolean;
  },
): Tx {
  made += 1;
  const txid = `t${made}`;
  const fresh: Tx = {
    txid,
    inputs: tx.inputs ?? [`in-${txid}`],
    outputs: tx.outputs,
    coinbase: tx.coinbase ?? false,
    madeAtMs: tx.atMs,
    lock: tx.lock ?? null,
    place: 'mempool',
    height: null,
  };
  for (const other of chain.txs) {
    if (other.inputs.some((input) => fresh.inputs.includes(input))) Object.assign(other, { place: 'dead', height: null });
  }
  chain.txs.push(fresh);
  if (tx.coinbase === true || tx.mined === true) mine(chain, { count: 1, atMs: tx.atMs, only: [fresh] });
  return fresh;
}

/** Mines blocks; the first of them takes the mempool (or only these transactions of it). */
export function mine(chain: Chain, options: { count: number; atMs: number; only?: readonly Tx[] }): void {
  for (let n = 0; n < options.count; n++) {
    made += 1;
    chain.tip += 1;
    chain.blocks.set(chain.tip, { hash: `${chain.currency}-${chain.tip}-${made}`, timeMs: options.atMs });
    if (n > 0) continue;
    for (const tx of options.only ?? chain.txs)
      if (tx.place === 'mempool') Object.assign(tx, { place: 'mined', height: chain.tip });
  }
}

/** Replaces the top blocks by one more, all empty. Their transactions go to the mempool, or out of it, or a rival takes their inputs. */
export function reorganise(chain: Chain, options: { depth: number; atMs: number; to: 'mempool' | 'out' | 'dead' }): Tx[] {
  const base = chain.tip - options.depth;
  const fallen = chain.txs.filter((tx) => tx.height !== null && tx.height > base);
  for (let height = base + 1; height <= chain.tip; height++) chain.blocks.delete(height);
  chain.tip = base;
  // a coinbase dies with its block
  for (const tx of fallen) Object.assign(tx, { place: tx.coinbase ? 'dead' : 'mempool', height: null });
  mine(chain, { count: options.depth + 1, atMs: options.atMs, only: [] });
  for (const tx of fallen) if (!tx.coinbase) leave(chain, tx, options.to === 'mempool' ? null : options.to, options.atMs);
  return fallen;
}

/** Takes a transaction out of the mempool: evicted, or double-spent by one that does not pay us. */
export function leave(chain: Chain, tx: Tx, how: 'out' | 'dead' | null, atMs: number): void {
  if (how === 'out') Object.assign(tx, { place: 'out', height: null });
  if (how === 'dead') broadcast(chain, { outputs: [], inputs: tx.inputs, atMs });
}

/** The watcher's pass: what the judge's facts are after it. `payments` is changed in place; true for payments whose facts changed. */
export function watch(
  chain: Chain,
  payments: Payment[],
  options: { nowMs: number; arrivalRate: Rate | null; nextId: () => bigint },
): boolean {
  if (!chain.up) return false;
  const before = JSON.stringify(payments, asText);
  const caughtUpAtMs = chain.view.timeMs;
  const inOrder = chain.txs.filter(isAlive).sort((a, b) => (a.height ?? 1e9) - (b.height ?? 1e9));
  for (const tx of inOrder) {
    const block = tx.height === null ? null : (chain.blocks.get(tx.height) ?? null);
    const place = {
      state: tx.height === null ? ('mempool' as const) : ('mined' as const),
      height: tx.height,
      blockHash: block?.hash ?? null,
      blockTimeMs: block?.timeMs ?? null,
      lastHeight: tx.height,
      lock: tx.lock,
      goneSinceMs: null,
      conflictTxid: null,
    };
    tx.outputs.forEach((amount, vout) => {
      const at = indexOfPayment(chain, payments, tx, vout);
      if (at >= 0) {
        const known = payments[at] as Payment;
        payments[at] = { ...known, ...place, txid: tx.txid, lastHeight: tx.height ?? known.lastHeight };
      } else {
        payments.push({
          ...unjudged(),
          ...place,
          id: options.nextId(),
          currency: chain.currency,
          txid: tx.txid,
          vout,
          amount,
          coinbase: tx.coinbase,
          seenAtMs: options.nowMs,
          caughtUpAtMs,
          foundMined: tx.height !== null,
          spends: tx.inputs,
          arrivalRate: options.arrivalRate,
        });
      }
    });
  }
  payments.forEach((payment, at) => {
    if (payment.currency !== chain.currency || inOrder.some((tx) => tx.txid === payment.txid)) return;
    const inputs = chain.txs.find((tx) => tx.txid === payment.txid)?.inputs ?? [];
    const rival = inOrder.find((tx) => tx.inputs.some((input) => inputs.includes(input)));
    payments[at] = {
      ...payment,
      state: rival === undefined ? 'gone' : 'conflicted',
      height: null,
      blockHash: null,
      blockTimeMs: null,
      goneSinceMs: payment.goneSinceMs ?? options.nowMs,
      conflictTxid: rival?.txid ?? null,
    };
  });
  chain.view = { tipHeight: chain.tip, timeMs: options.nowMs };
  chain.viewTimes = new Map([...chain.blocks].map(([height, block]) => [height, block.timeMs]));
  return JSON.stringify(payments, asText) !== before;
}

/** The row of this output: its own, or that of the payment whose malleated twin it is. */
function indexOfPayment(chain: Chain, payments: readonly Payment[], tx: Tx, vout: number): number {
  const own = payments.findIndex(
    (payment) => payment.currency === chain.currency && payment.txid === tx.txid && payment.vout === vout,
  );
  if (own >= 0) return own;
  return payments.findIndex((payment) => {
    const other = chain.txs.find((one) => one.txid === payment.txid);
    return (
      payment.currency === chain.currency &&
      payment.vout === vout &&
      other !== undefined &&
      !isAlive(other) &&
      other.inputs.join() === tx.inputs.join() &&
      other.outputs.join() === tx.outputs.join()
    );
  });
}

export function unjudged() {
  return {
    classified: false,
    present: false,
    onTimeMinor: 0n,
    valueRate: null,
    judgedBlockHash: null,
    generation: 0,
    credited: 0n,
    suspended: 0n,
    fee: 0n,
    inAvailable: 0n,
    inSuspense: 0n,
    inRefund: 0n,
    sentBack: 0n,
    owed: 0n,
    owedFee: 0n,
    counted: false,
    wasLost: false,
    partKey: null,
    dueHeight: null,
    dueAtMs: null,
  };
}

export function asText(_key: string, value: unknown): unknown {
  return typeof value === 'bigint' ? `${value}n` : value;
}
