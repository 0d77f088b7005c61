// After a loss: the lost payment comes back (the paragraph below the table), or another amount replaces it.
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, MINUTE, W } from '../../support/judged-transaction.ts';

describe('the way back', () => {
  test('needs the R of the price, not only that of the payment’s own value', () => {
    const judged = judgedTransaction({ usd: 150_00n });
    judged.pay({ split: [75_000n, 75_000n] });
    judged.mine(2);
    judged.reorg(2, 'out');
    judged.wait(11 * MINUTE);
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
    expect(judged.transaction.confirmedAtMs).toBe(judged.now);
  });

  test('and the R of the price is enough, however large the payment is', () => {
    const judged = judgedTransaction();
    judged.pay({ amount: 10n * judged.amountDue });
    judged.mine();
    expect([judged.available(), judged.suspense()]).toEqual([judged.amountDue, 9n * judged.amountDue]);
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual([
      'succeeded',
      judged.amountDue,
      9n * judged.amountDue,
    ]);
  });

  test('all that was lost is back: what the merchant had accepted short is paid again, whatever else lies in suspense', () => {
    const judged = judgedTransaction();
    const first = judged.pay({ amount: 30_000n });
    judged.mine();
    judged.afterGrace();
    judged.accept();
    const extra = judged.pay({ amount: 5_000n });
    judged.mine();
    judged.reorg(2);
    judged.evict(first);
    judged.mineOnly(extra);
    judged.wait(11 * MINUTE);
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
    judged.resend(first);
    judged.mine(3);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', 30_000n, 5_000n]);
  });

  test('waits for another payment that is deep enough and not booked yet, because only one of our nodes has its block', () => {
    const judged = judgedTransaction({ usd: 1_500_00n });
    judged.until(W + HOUR);
    // less than the price, accepted by policy for what it is worth then
    judged.rate(125_000n);
    const first = judged.pay({ amount: 12_000_00n });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 12_000_00n]);
    judged.reorg(6, 'out');
    judged.wait(11 * MINUTE);
    judged.contest(0n);
    judged.resend(first);
    judged.mine(6);
    const both = judged.chain().view.tipHeight;
    judged.pay({ amount: 5_000n });
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
    judged.contest(0n, 'BTC', both);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 12_000_00n, 0n]);
    judged.contest(null);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 12_000_00n, 5_000n]);
  });

  test('waits while a reimbursement of something else is open', () => {
    const judged = judgedTransaction();
    const first = judged.pay();
    judged.mine();
    const extra = judged.pay({ amount: 30_000n });
    judged.mine();
    judged.reorg(2, 'out');
    judged.resend(extra);
    judged.mineOnly(extra);
    judged.wait(11 * MINUTE);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 0n, 30_000n]);
    judged.openRefund('excess');
    judged.resend(first);
    judged.mine(6);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', judged.amountDue, 0n]);
    judged.commitRefund();
    judged.finishRefund();
    expect([judged.status, judged.available()]).toEqual(['succeeded', judged.amountDue]);
  });

  test('is not opened by another payment: the merchant decides', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.reorg(1, 'dead');
    judged.pay({ amount: 2n * judged.amountDue });
    judged.mine(2);
    expect([judged.status, judged.suspense()]).toEqual(['review', 2n * judged.amountDue]);
    judged.accept();
    expect(judged.status).toBe('succeeded');
  });

  test('a refused one stays declined, and gets its payments all the same', () => {
    const judged = judgedTransaction();
    judged.pay();
    judged.mine();
    judged.reorg(1, 'out');
    judged.wait(11 * MINUTE);
    judged.decline();
    for (const tx of judged.chain().txs) judged.resend(tx);
    judged.mine();
    expect([judged.status, judged.available()]).toEqual(['declined', judged.amountDue]);
  });
});

describe('a booked payment is replaced by one of another amount', () => {
  const replaced = (amount: bigint, options: Parameters<typeof judgedTransaction>[0] = {}) => {
    const judged = judgedTransaction(options);
    const tx = judged.pay();
    judged.mine();
    judged.reorg(1, 'mempool');
    const other = judged.replace(tx, { amount });
    expect([judged.status, judged.available()]).toEqual(['review', 0n]);
    return { judged, tx, other };
  };

  test.each([
    ['a little less', 49_600n, 49_600n],
    ['a little more', 50_400n, 50_400n],
    ['far more, which is the price and an excess', 80_000n, 50_000n],
  ])('%s: that amount is credited, and it is paid again by itself', (_, amount, credited) => {
    const { judged } = replaced(amount);
    judged.mine();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', credited, amount - credited]);
  });

  test('far less: that amount is credited, and it stays in review', () => {
    const { judged } = replaced(20_000n);
    judged.mine();
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 20_000n, 0n]);
  });

  test('far less, where a fee is taken: the fee of that amount', () => {
    const { judged } = replaced(20_000n, { feeBps: 100 });
    judged.mine();
    expect([judged.status, judged.available(), judged.fees()]).toEqual(['review', 19_800n, 200n]);
  });

  test('what the merchant owes is repaid first', () => {
    const judged = judgedTransaction();
    const tx = judged.pay();
    judged.mine();
    judged.spend(judged.amountDue);
    judged.reorg(1, 'mempool');
    judged.replace(tx, { amount: judged.amountDue + 100n });
    expect(judged.receivable()).toBe(judged.amountDue);
    judged.mine();
    expect([judged.status, judged.available(), judged.receivable()]).toEqual(['succeeded', 100n, 0n]);
  });

  test('several times over, and the first one back: once', () => {
    const { judged, tx, other } = replaced(49_800n, { feeBps: 100 });
    const third = judged.replace(other, { amount: 49_900n });
    judged.mine();
    expect([judged.status, judged.available(), judged.fees()]).toEqual(['succeeded', 49_401n, 499n]);
    judged.reorg(1, 'dead');
    expect([judged.status, judged.available(), judged.fees()]).toEqual(['review', 0n, 0n]);
    judged.replace(third, { amount: 50_000n });
    judged.mine();
    expect([judged.status, judged.available(), judged.fees()]).toEqual(['succeeded', 49_500n, 500n]);
    expect(judged.books.of('asset:chain:BTC')).toBe(50_000n);
    expect(tx.txid).not.toBe(third.txid);
  });
});

test('all that was lost is back, but the price is short and other currencies lie in suspense: the merchant says whether it is enough', () => {
  const judged = judgedTransaction();
  judged.afterGrace();
  judged.rate(200_000n);
  judged.pay({ amount: 30_000n });
  judged.mine();
  judged.pay({ amount: 5_000n });
  judged.mine();
  expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', 30_000n, 5_000n]);
  judged.reorg(2, 'out');
  judged.wait(11 * MINUTE);
  for (const tx of judged.chain().txs) judged.resend(tx);
  judged.mine();
  expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 30_000n, 5_000n]);
  judged.accept();
  expect([judged.status, judged.available(), judged.suspense()]).toEqual(['succeeded', 35_000n, 0n]);
});

test('all that was lost is back and nothing else lies there: it succeeds again, however short the price was', () => {
  const judged = judgedTransaction();
  judged.afterGrace();
  judged.rate(200_000n);
  judged.pay({ amount: 30_000n });
  judged.mine();
  judged.reorg(1, 'out');
  judged.wait(11 * MINUTE);
  expect([judged.status, judged.available()]).toEqual(['review', 0n]);
  for (const tx of judged.chain().txs) judged.resend(tx);
  judged.mine();
  expect([judged.status, judged.available()]).toEqual(['succeeded', 30_000n]);
});
