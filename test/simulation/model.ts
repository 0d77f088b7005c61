// The simulation's own truth: what was asked for, what was sent to which script, where it lies on the chains now and what our node showed
// of it since the watchers last read it to the end. Takes nothing from the product but the ids; reads the simulated chains themselves.
import type { Transaction } from '../../src/sandbox/utxo/transaction.ts';
import { type Code, finalDepthOf, MINUTE, SECOND, type Seen, WINDOW } from './behaviour.ts';
import type { Merchant, SimulatedService } from './simulated-service.ts';

export type Purchase = {
  readonly id: string;
  readonly currency: Code;
  readonly script: Buffer;
  readonly merchant: Merchant;
  readonly cents: bigint;
  /** Cents for one currency when it was quoted. */
  readonly price: bigint;
  readonly amountDue: bigint;
  readonly createdAt: number;
  readonly windowEnd: number;
  /** What the merchant said and was not refused. */
  readonly words: { cancelled: boolean; accepted: boolean; acceptedExcess: boolean; declined: boolean };
};

export type Sent = {
  readonly currency: Code;
  tx: Transaction;
  readonly sentAt: number;
  readonly coinbase: boolean;
  readonly outputs: readonly { readonly purchase: Purchase; readonly amount: bigint }[];
  /** It never left our node's view since it was sent. */
  calm: boolean;
  /** Since when our node has not shown it, though it is spent by nobody else; null while watchers that read to the end have seen it since. */
  hiddenSince: number | null;
  /** Something else has spent its currencies once. */
  rivalled: boolean;
  /** It took the place of another payment. */
  readonly replaces: Sent | null;
  /** When a watcher that read to the end first saw it, and whether it was on time then; null = not seen yet. */
  seen: { readonly at: number; readonly onTime: (purchase: Purchase) => boolean } | null;
  /** A pass that was not finished may have seen it earlier. */
  fuzzy: boolean;
  /** The best that our node showed of it since the watchers last knew all. */
  best: Seen;
};

type Place = { readonly where: 'chain' | 'pool' | 'hidden' | 'dead'; readonly seen: Seen };
const NOTHING: Seen = { confirmations: 0, instant: false, chain: false };

export type Model = ReturnType<typeof newModel>;

export function newModel(service: SimulatedService) {
  const purchases: Purchase[] = [];
  let sent: Sent[] = [];
  /** Also the ids that a malleated twin took over. */
  const byTxid = new Map<string, Sent>();
  const caughtUp = new Map<Code, number>();
  const highest = new Map<Code, bigint>(service.prices);
  const lowest = new Map<Code, bigint>(service.prices);
  const priceLog: { at: number; prices: Map<Code, bigint> }[] = [{ at: 0, prices: new Map(service.prices) }];

  function placeOf(one: Sent): Place {
    const { state } = service.node(one.currency);
    const known = state.alive.get(one.tx.txid);
    if (known === undefined) return { where: 'dead', seen: NOTHING };
    if (known.block === null && state.denied.has(one.tx.txid)) return { where: 'hidden', seen: NOTHING };
    const height = known.block?.height ?? null;
    const seen = {
      confirmations: height === null ? 0 : state.active.length - height,
      instant: state.locked.has(one.tx.txid),
      chain: height !== null && height <= state.chainLock,
    };
    return { where: height === null ? 'pool' : 'chain', seen };
  }
  const better = (a: Seen, b: Seen): Seen => ({
    confirmations: Math.max(a.confirmations, b.confirmations),
    instant: a.instant || b.instant,
    chain: a.chain || b.chain,
  });

  return {
    purchases,
    placeOf,
    get sent(): readonly Sent[] {
      return sent;
    },
    /** The payment behind a txid of now or of an earlier twin. */
    known: (txid: string): Sent | undefined => byTxid.get(txid),
    on: (currency: Code, ...where: Place['where'][]): Sent[] =>
      sent.filter((one) => one.currency === currency && where.includes(placeOf(one).where)),
    ask(purchase: Omit<Purchase, 'words' | 'windowEnd'>): Purchase {
      const words = { cancelled: false, accepted: false, acceptedExcess: false, declined: false };
      const made = { ...purchase, windowEnd: purchase.createdAt + WINDOW, words };
      purchases.push(made);
      return made;
    },
    /** Something was sent; `outputs` in the order of the transaction. */
    send(currency: Code, tx: Transaction, outputs: Sent['outputs'], how: { coinbase?: boolean; replaces?: Sent } = {}): void {
      const made: Sent = {
        currency,
        tx,
        outputs: outputs.filter((output) => isProtected(output.purchase, currency)),
        sentAt: service.now(),
        coinbase: how.coinbase ?? false,
        replaces: how.replaces ?? null,
        calm: true,
        hiddenSince: null,
        rivalled: false,
        seen: null,
        fuzzy: false,
        best: NOTHING,
      };
      sent.push(made);
      byTxid.set(tx.txid, made);
      this.moved(currency);
    },
    /** A twin under another id took the place of a payment: it is the same one. */
    rename(one: Sent, twin: Transaction): void {
      one.tx = twin;
      byTxid.set(twin.txid, one);
      this.moved(one.currency);
    },
    /** The chain has moved: what our node shows now may be what the watchers read. */
    moved(currency: Code): void {
      for (const one of sent) {
        if (one.currency !== currency) continue;
        const { where, seen } = placeOf(one);
        if (where === 'hidden' || where === 'dead') one.calm = false;
        if (where === 'hidden') one.hiddenSince ??= service.now();
        if (where === 'dead') one.rivalled = true;
        one.best = better(one.best, seen);
      }
    },
    /** A pass began; whatever it reads, somebody has looked. */
    looked(currency: Code, result: { readonly caughtUp: boolean; readonly atMs: number }): void {
      const before = caughtUp.get(currency) ?? 0;
      for (const one of sent) {
        if (one.currency !== currency) continue;
        const { where, seen } = placeOf(one);
        if (!result.caughtUp) {
          if (one.seen === null) one.fuzzy = true;
          continue;
        }
        one.best = seen;
        if (where === 'pool' || where === 'chain') one.hiddenSince = null;
        if (one.seen === null && (where === 'pool' || where === 'chain')) one.seen = firstSeen(service, one, result.atMs, before);
      }
      if (result.caughtUp) caughtUp.set(currency, result.atMs);
    },
    caughtUpAt: (currency: Code): number => caughtUp.get(currency) ?? 0,
    priced(): void {
      for (const [currency, price] of service.prices) {
        if (price > (highest.get(currency) as bigint)) highest.set(currency, price);
        if (price < (lowest.get(currency) as bigint)) lowest.set(currency, price);
      }
      priceLog.push({ at: service.now(), prices: new Map(service.prices) });
    },
    highest: (currency: Code): bigint => highest.get(currency) as bigint,
    lowest: (currency: Code): bigint => lowest.get(currency) as bigint,
    priceAt: (currency: Code, at: number): bigint =>
      (priceLog.findLast((one) => one.at <= at)?.prices ?? service.prices).get(currency) as bigint,
    /** What lies at a purchase's script now, mined: one amount for each outpoint. */
    outputsAt(purchase: Purchase, currency: Code): bigint[] {
      const { state } = service.node(currency);
      const amounts: bigint[] = [];
      if (!isProtected(purchase, currency)) return amounts;
      for (const txid of state.byScript.get(purchase.script.toString('hex')) ?? []) {
        const known = state.alive.get(txid);
        if (known === undefined || known.block === null) continue;
        for (const output of known.transaction.outputs) if (output.script.equals(purchase.script)) amounts.push(output.minor);
      }
      return amounts.sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
    },
    /** How many blocks must come until all that lies on a chain is final, and a coinbase mature. */
    blocksToRest(currency: Code): number {
      const coinbases = sent.some((one) => one.currency === currency && one.coinbase && placeOf(one).where === 'chain');
      return coinbases ? 240 : finalDepthOf(currency);
    },
    /** The round is over: its payments are looked at no more. */
    forget(): void {
      sent = [];
      byTxid.clear();
      purchases.length = 0;
      for (const [currency, price] of service.prices) {
        highest.set(currency, price);
        lowest.set(currency, price);
      }
    },
  };
}

const WITHOUT_SEGWIT: readonly Code[] = ['BCH', 'DASH', 'DOGE'];
/** Whether a key of ours controls the purchase's script on a chain: a witness script is anybody's where there is no segwit. */
function isProtected(purchase: Purchase, currency: Code): boolean {
  return !(purchase.script[0] === 0 && WITHOUT_SEGWIT.includes(currency));
}

/** On time: seen by W + 1 min; or, when the watcher had not caught up by then, dated (or in the mempool) by W + 2 h. */
function firstSeen(service: SimulatedService, one: Sent, atMs: number, caughtUpBefore: number): Sent['seen'] {
  const { alive, mempool } = service.node(one.currency).state;
  const block = alive.get(one.tx.txid)?.block ?? null;
  const enteredAt = (mempool.get(one.tx.txid)?.time ?? 0) * SECOND;
  const seenAt = block === null ? Math.min(enteredAt, atMs) : atMs;
  const evidence = block === null ? seenAt : block.time * SECOND;
  return {
    // what is found in a block arrived by its date
    at: Math.min(seenAt, evidence),
    onTime: ({ windowEnd }) =>
      seenAt <= windowEnd + MINUTE || (caughtUpBefore < windowEnd + MINUTE && evidence <= windowEnd + 120 * MINUTE),
  };
}
