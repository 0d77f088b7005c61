// Reimbursements beside the rules that change a status: what went back, or is on its way back, is money for none of them. After each move the
// payments and the books tell the same story (support/invariants).
import { describe, expect, test } from 'vitest';
import { HOUR, judgedTransaction, W } from '../../support/judged-transaction.ts';

describe('a late order of which a part went back', () => {
  test('is accepted by policy only for what is still here (rule 11)', () => {
    const judged = judgedTransaction({ toleranceBps: 100 });
    judged.until(W + HOUR);
    judged.pay({ amount: 49_250n });
    judged.mine(6);
    expect(judged.status).toBe('review');
    judged.openRefund('excess');
    judged.commitRefund();
    judged.finishRefund();
    judged.pay({ amount: 500n });
    judged.mine(6);
    expect([judged.status, judged.available(), judged.suspense()]).toEqual(['review', 0n, 500n]);
    judged.pay({ amount: 49_000n });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 49_500n]);
  });

  test('is accepted together with what the merchant has accepted of it before', () => {
    const judged = judgedTransaction();
    judged.until(W + HOUR);
    judged.pay({ amount: 30_000n });
    judged.mine(6);
    judged.acceptExcess();
    expect([judged.status, judged.available()]).toEqual(['review', 30_000n]);
    judged.pay({ amount: 20_000n });
    judged.mine(6);
    expect([judged.status, judged.available()]).toEqual(['succeeded', 50_000n]);
  });
});
