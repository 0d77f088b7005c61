// One case for the judge, built by hand: for tests of a single function, and for the bench. judged-transaction.ts covers whole histories.
import type { Case, CaseTransaction, Payment } from '../../src/core/judge/case.ts';
import type { Rate } from '../../src/core/rate.ts';
import { unjudged } from './chain-truth.ts';

/** When the window of {@link newTransaction} ends: it began at zero. */
export const WINDOW_END_MS = 900_000;
/** The quote of {@link newTransaction}. */
export const PRICE: Rate = 100_000n * 10n ** 8n;
export const TIP = 1000;

/** A payment in the mempool, on time, that the judge has not seen yet. */
export function newPayment(id: number, known: Partial<Payment> = {}): Payment {
  return {
    ...unjudged(),
    id: BigInt(id),
    currency: 'BTC',
    txid: `tx${id}`,
    vout: id,
    amount: 1_000n,
    coinbase: false,
    lock: null,
    state: 'mempool',
    height: null,
    blockHash: null,
    blockTimeMs: null,
    seenAtMs: WINDOW_END_MS,
    caughtUpAtMs: WINDOW_END_MS,
    foundMined: false,
    goneSinceMs: null,
    lastHeight: null,
    conflictTxid: null,
    spends: [],
    arrivalRate: PRICE,
    ...known,
  };
}

/** One of 50 USD that waits for its payment; one cent is ten satoshi. */
export function newTransaction(known: Partial<CaseTransaction> = {}): CaseTransaction {
  return {
    id: 'txn_1',
    merchantId: 1n,
    currency: 'BTC',
    usdMinor: 50_00n,
    amountDue: 50_000n,
    rate: PRICE,
    toleranceBps: 100,
    latePolicy: 'accept',
    createdAtMs: 0,
    windowEndsAtMs: WINDOW_END_MS,
    status: 'started',
    merchantDecision: 'none',
    reviewCause: null,
    acceptedOnlyByHand: false,
    confirmedAtMs: null,
    succeededAtMs: null,
    lookedUpAtMs: null,
    lookupWanted: false,
    sequence: 1,
    ...known,
  };
}

export function newCase(
  payments: readonly Payment[],
  known: Partial<Omit<Case, 'payments' | 'transaction'>> & { readonly transaction?: Partial<CaseTransaction> } = {},
): Case {
  const view = { tipHeight: TIP, timeMs: WINDOW_END_MS };
  return {
    nowMs: WINDOW_END_MS,
    chains: new Map([
      ['BTC', view],
      ['LTC', view],
    ]),
    blocks: new Map(),
    feeBps: 0,
    settlementMs: 0,
    balances: new Map(),
    refunds: [],
    steps: [],
    ...known,
    payments,
    transaction: newTransaction(known.transaction),
  };
}

/** A late payment of `outputs` outputs to a transaction in review that was replaced `times` times, each time with the same outputs. */
export function replacedCase(outputs: number, times: number): Case {
  const last = `tx${times}`;
  const late = { seenAtMs: WINDOW_END_MS + 300_000, caughtUpAtMs: WINDOW_END_MS + 299_000 };
  const payments = Array.from({ length: outputs * (times + 1) }, (_, id) => {
    const txid = `tx${Math.floor(id / outputs)}`;
    const place = { txid, vout: id % outputs, amount: BigInt(600 + id), ...late };
    if (txid === last) return newPayment(id, place);
    const judged = { classified: true, valueRate: PRICE };
    return newPayment(id, { ...place, ...judged, state: 'conflicted', conflictTxid: last, spends: ['in:0'] });
  });
  const view = { tipHeight: TIP, timeMs: late.caughtUpAtMs };
  return newCase(payments, {
    nowMs: late.seenAtMs,
    chains: new Map([['BTC', view]]),
    transaction: { status: 'review', reviewCause: 'late' },
  });
}
