// What a look at the whole mempool changes of payments that are in no block: who came, who went, and since when.
import { expect, test } from 'vitest';
import type { PaymentFacts } from '../../src/store/chain/payment-facts.ts';
import { compareWithMempool } from '../../src/store/chain/sightings.ts';

const AT = 5_000;
const row = (known: Partial<PaymentFacts>): PaymentFacts => ({
  id: 1n,
  transactionId: 'txn',
  txid: 'ours',
  vout: 0,
  amount: 5n,
  malleationKey: '',
  state: 'mempool',
  block: null,
  goneSinceMs: null,
  lastHeight: null,
  conflictTxid: null,
  conflictMined: false,
  ...known,
});
/** What becomes of it, null for nothing, when the mempool lists these. */
function after(
  known: Partial<PaymentFacts>,
  listed: readonly string[],
  seenHeight?: number | null,
): Partial<PaymentFacts> | null {
  const { changed } = compareWithMempool(
    { payments: [row(known)], conflicting: ['rival'] },
    new Set(listed),
    AT,
    ...(seenHeight === undefined ? [] : [seenHeight]),
  );
  if (changed.length === 0) return null;
  const { state, goneSinceMs, lastHeight, conflictTxid } = changed[0] as PaymentFacts;
  expect(changed).toEqual([row({ ...known, state, goneSinceMs, lastHeight, conflictTxid })]);
  return { state, goneSinceMs, lastHeight, conflictTxid };
}
const gone = { state: 'gone', goneSinceMs: AT, lastHeight: null, conflictTxid: null } as const;
const there = { state: 'mempool', goneSinceMs: null, lastHeight: null, conflictTxid: null } as const;

test('what is listed stays, and what is not is gone from then on', () => {
  expect(after({}, ['ours'])).toBeNull();
  expect(after({}, [])).toEqual(gone);
});

test('what is gone was last seen below the highest tip that is known of it', () => {
  const lastHeight = (known: number | null, seen: number | null) => after({ lastHeight: known }, [], seen)?.lastHeight;
  expect([lastHeight(9, null), lastHeight(null, null)]).toEqual([9, null]);
  expect([lastHeight(9, 7), lastHeight(6, 7), lastHeight(null, 7), lastHeight(null, 0)]).toEqual([9, 7, 7, 0]);
});

test('what is gone comes back when it is listed, and stays gone since then when not', () => {
  expect(after({ state: 'gone', goneSinceMs: 1 }, ['ours'])).toEqual(there);
  expect(after({ state: 'gone', goneSinceMs: 1 }, [])).toBeNull();
});

test('a double spend ends when the payment is listed, or its rival no more', () => {
  const conflicted = { state: 'conflicted', conflictTxid: 'rival' } as const;
  expect(after(conflicted, ['ours', 'rival'])).toEqual(there);
  expect(after(conflicted, [])).toEqual(gone);
  expect(after(conflicted, ['rival'])).toBeNull();
  expect(after({ ...conflicted, conflictTxid: 'in a block' }, [])).toBeNull();
  expect(after({ ...conflicted, conflictTxid: null }, [])).toBeNull();
});

test('rivals that are no more listed have left', () => {
  const departed = (listed: readonly string[]) =>
    compareWithMempool({ payments: [], conflicting: ['rival', 'other'] }, new Set(listed), AT).departed;
  expect([departed(['other']), departed(['other', 'rival'])]).toEqual([['rival'], []]);
});
