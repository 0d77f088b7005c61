// Balances and facts for tests of payouts: booked as entries, without a payment on a chain.
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { Context } from '../../src/flow/context.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { saveFeeRate } from '../../src/store/payouts/fee-rates.ts';

let entries = 0;

async function post(ctx: Context, postings: readonly { account: string; amount: bigint }[]): Promise<void> {
  entries += 1;
  const entry = { key: `test:funds:${entries}`, kind: 'test_funds', postings, parts: [] };
  await postEntries(ctx.db, [{ entry, transactionId: null, atMs: ctx.ports.clock.now() }]);
}

/** Adds to what a merchant has available. */
export function fund(ctx: Context, merchantId: bigint, amount: bigint, currency: CurrencyCode = 'BTC'): Promise<void> {
  return post(ctx, [
    { account: `asset:chain:${currency}`, amount },
    { account: `merchant:${merchantId}:available:${currency}`, amount: -amount },
  ]);
}

/** A merchant owes so much; a negative amount repays it. */
export function owe(ctx: Context, merchantId: bigint, amount: bigint, currency: CurrencyCode = 'LTC'): Promise<void> {
  return post(ctx, [
    { account: `asset:receivable:merchant:${merchantId}:${currency}`, amount },
    { account: `asset:chain:${currency}`, amount: -amount },
  ]);
}

/** One satoshi a virtual byte: the highest fee of a payout is {@link FEE_MAX} then. */
export function tellFee(ctx: Context): Promise<void> {
  return saveFeeRate(ctx.db, 'BTC', 1_000n, ctx.ports.clock.now());
}
export const FEE_MAX = 4_000n;
/** Addresses of the outside world. */
export const OUTSIDE = 'bcrt1qcr8te4kr609gcawutmrza0j4xv80jy8zeqchgx';
