// The audit finds each row of a reimbursement that says something else than the books, the chain or the others.
import { describe, expect, test } from 'vitest';
import { green, service, signedRefund, status } from './refund-service.ts';

describe('the audit is red', () => {
  const red = async (sql: string): Promise<string> => {
    await service.admin.query(sql);
    return (await service.findings()).join('\n');
  };
  test.each([
    ['INV-5', `update payouts set amount = amount + 1`, /INV-5: refund_payable.* open reimbursements need 500001/],
    ['BOOK-13', `update payments set in_refund = in_refund - 1 where in_refund > 0`, /BOOK-13: refund_payable/],
    ['INV-12', `update ledger.entry set key = key || 'x' where key like 'po:refund%:hold'`, /INV-12: refund_.* has 0 hold/],
    ['OUT-1', `update payouts set amount = amount + 1`, /OUT-1: BTC/],
    ['OUT-2', `update outgoing_shares set fee = fee + 1`, /OUT-2: transaction/],
    [
      'INV-11',
      `insert into outgoing_batches (id, currency, state, fee_rate, created_at) values ('batch_x', 'BTC', 'signed', 1, now());
      insert into outgoing_attempts (batch_id, number, currency, txid, raw, fee, vbytes, lease_epoch, sequence, signed_at)
        values ('batch_x', 1, 'BTC', 'x', '', 1, 1, 1, 9, now());
      insert into outgoing_shares select a.id, s.payout_id, 0, 1 from outgoing_attempts a, outgoing_shares s where a.batch_id = 'batch_x'`,
      /INV-11: refund_.* is in 2 batches/,
    ],
  ])('%s when a row of a reimbursement says something else', async (_, sql, finding) => {
    await signedRefund();
    await green();
    expect(await red(`set session_replication_role = replica; ${sql}; set session_replication_role = default`)).toMatch(finding);
  });

  test('BOOK-14 when a late payment that the policy accepted was not worth the price', async () => {
    const { transactionId: id } = await service.create(500_00n);
    await service.wait(16 * 60_000 + 1_000);
    await service.judge();
    await service.pay(id, 500_000n);
    await service.mine(3);
    await service.judge();
    expect(await status(id)).toBe('succeeded');
    await green();
    const finding = /BOOK-14: txn_\w+ was accepted by policy for 49499\.\d+ of 50000 cents/;
    expect(await red(`update payments set value_rate = value_rate * 0.98999`)).toMatch(finding);
  });
});
