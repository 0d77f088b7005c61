// After a loss: the lost payment comes back (the paragraph below the table), or another amount replaces it.
import { describe, expect, test } from 'vitest';
import { judgedTransaction, MINUTE } from '../support/judged-transaction.ts';

describe('the way back', () => {
  test('needs the R of the price, not only that of the payment’s own value', () => {
    const world = judgedTransaction({ usd: 150_00n });
    world.pay({ split: [75_000n, 75_000n] });
    world.mine(2);
    world.reorg(2, 'out');
    world.wait(11 * MINUTE);
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect([world.status, world.available()]).toEqual(['review', 0n]);
    world.mine();
    expect([world.status, world.available()]).toEqual(['succeeded', world.amountDue]);
    expect(world.transaction.confirmedAtMs).toBe(world.now);
  });

  test('and the R of the price is enough, however large the payment is', () => {
    const world = judgedTransaction();
    world.pay({ amount: 10n * world.amountDue });
    world.mine();
    expect([world.available(), world.suspense()]).toEqual([world.amountDue, 9n * world.amountDue]);
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', world.amountDue, 9n * world.amountDue]);
  });

  test('all that was lost is back: what the merchant had accepted short is paid again, whatever else lies in suspense', () => {
    const world = judgedTransaction();
    const first = world.pay({ amount: 30_000n });
    world.mine();
    world.afterGrace();
    world.accept();
    const extra = world.pay({ amount: 5_000n });
    world.mine();
    world.reorg(2);
    world.evict(first);
    world.mineOnly(extra);
    world.wait(11 * MINUTE);
    expect([world.status, world.available()]).toEqual(['review', 0n]);
    world.resend(first);
    world.mine(3);
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', 30_000n, 5_000n]);
  });

  test('is not opened by another payment: the merchant decides', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.reorg(1, 'dead');
    world.pay({ amount: 2n * world.amountDue });
    world.mine(2);
    expect([world.status, world.suspense()]).toEqual(['review', 2n * world.amountDue]);
    world.accept();
    expect(world.status).toBe('succeeded');
  });

  test('a refused one stays declined, and gets its payments all the same', () => {
    const world = judgedTransaction();
    world.pay();
    world.mine();
    world.reorg(1, 'out');
    world.wait(11 * MINUTE);
    world.decline();
    for (const tx of world.chain().txs) world.resend(tx);
    world.mine();
    expect([world.status, world.available()]).toEqual(['declined', world.amountDue]);
  });
});

describe('a booked payment is replaced by one of another amount', () => {
  const replaced = (amount: bigint, options: Parameters<typeof judgedTransaction>[0] = {}) => {
    const world = judgedTransaction(options);
    const tx = world.pay();
    world.mine();
    world.reorg(1, 'mempool');
    const other = world.replace(tx, { amount });
    expect([world.status, world.available()]).toEqual(['review', 0n]);
    return { world, tx, other };
  };

  test.each([
    ['a little less', 49_600n, 49_600n],
    ['a little more', 50_400n, 50_400n],
    ['far more, which is the price and an excess', 80_000n, 50_000n],
  ])('%s: that amount is credited, and it is paid again by itself', (_, amount, credited) => {
    const { world } = replaced(amount);
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', credited, amount - credited]);
  });

  test('far less: that amount is credited, and it stays in review', () => {
    const { world } = replaced(20_000n);
    world.mine();
    expect([world.status, world.available(), world.suspense()]).toEqual(['review', 20_000n, 0n]);
  });

  test('far less, where a fee is taken: the fee of that amount', () => {
    const { world } = replaced(20_000n, { feeBps: 100 });
    world.mine();
    expect([world.status, world.available(), world.fees()]).toEqual(['review', 19_800n, 200n]);
  });

  test('what the merchant owes is repaid first', () => {
    const world = judgedTransaction();
    const tx = world.pay();
    world.mine();
    world.spend(world.amountDue);
    world.reorg(1, 'mempool');
    world.replace(tx, { amount: world.amountDue + 100n });
    expect(world.receivable()).toBe(world.amountDue);
    world.mine();
    expect([world.status, world.available(), world.receivable()]).toEqual(['succeeded', 100n, 0n]);
  });

  test('several times over, and the first one back: once', () => {
    const { world, tx, other } = replaced(49_800n, { feeBps: 100 });
    const third = world.replace(other, { amount: 49_900n });
    world.mine();
    expect([world.status, world.available(), world.fees()]).toEqual(['succeeded', 49_401n, 499n]);
    world.reorg(1, 'dead');
    expect([world.status, world.available(), world.fees()]).toEqual(['review', 0n, 0n]);
    world.replace(third, { amount: 50_000n });
    world.mine();
    expect([world.status, world.available(), world.fees()]).toEqual(['succeeded', 49_500n, 500n]);
    expect(world.books.of('asset:chain:BTC')).toBe(50_000n);
    expect(tx.txid).not.toBe(third.txid);
  });
});

test('all that was lost is back, but the price is short and other currencies lie in suspense: the merchant says whether it is enough', () => {
  const world = judgedTransaction();
  world.afterGrace();
  world.rate(200_000n);
  world.pay({ amount: 30_000n });
  world.mine();
  world.pay({ amount: 5_000n });
  world.mine();
  expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', 30_000n, 5_000n]);
  world.reorg(2, 'out');
  world.wait(11 * MINUTE);
  for (const tx of world.chain().txs) world.resend(tx);
  world.mine();
  expect([world.status, world.available(), world.suspense()]).toEqual(['review', 30_000n, 5_000n]);
  world.accept();
  expect([world.status, world.available(), world.suspense()]).toEqual(['succeeded', 35_000n, 0n]);
});

test('all that was lost is back and nothing else lies there: it succeeds again, however short the price was', () => {
  const world = judgedTransaction();
  world.afterGrace();
  world.rate(200_000n);
  world.pay({ amount: 30_000n });
  world.mine();
  world.reorg(1, 'out');
  world.wait(11 * MINUTE);
  expect([world.status, world.available()]).toEqual(['review', 0n]);
  for (const tx of world.chain().txs) world.resend(tx);
  world.mine();
  expect([world.status, world.available()]).toEqual(['succeeded', 30_000n]);
});
