// The audit finds each row of a reimbursement that says something else than the books, the chain or the others.
import { describe, expect, test } from 'vitest';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { ask } from '../../../src/store/ledger/audit.ts';
import { OF_REIMBURSEMENTS } from '../../../src/store/ledger/reimbursement-audit.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { ctx, green, mined, refundServiceForEach, service, signedRefund, status } from './refund-service.ts';

refundServiceForEach();

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

  const returned = async (): Promise<void> => {
    const { batch, transaction } = await signedRefund();
    await mined(batch, transaction);
    await progress(ctx, batch.id);
    await service.judge();
    await green();
  };
  const changed: readonly (readonly [id: string, what: string, change: string])[] = [
    ['PAY-3', 'a payment of it is another amount', `update reimbursement_shares set from_available = from_available + 5`],
    [
      'PAY-3',
      'a payment of it lay elsewhere',
      `update reimbursement_shares set from_available = from_suspense, from_suspense = from_available`,
    ],
    [
      'PAY-3',
      'it is another merchant’s',
      `update payouts set merchant_id = (select max(id) from merchants where id <> merchant_id)`,
    ],
    [
      'PAY-3',
      'it is of another transaction',
      `update payouts set reimburses = (select min(id) from transactions where id <> reimburses)`,
    ],
    ['PAY-4', 'it cost another fee', `update payouts set fee = fee + 1`],
    ['PAY-4', 'its transaction was never told', `update payouts set noted = false`],
    ['PAY-4', 'it was of the excess', `update payouts set part = 'excess'`],
    ['PAY-4', 'its transaction is not reimbursed', `update transactions set status = 'settled' where status = 'reimbursed'`],
  ];
  test('PAY-3 and PAY-4 when one that was confirmed says something else', async () => {
    await returned();
    for (const [id, what, change] of changed) {
      await service.admin.query('begin; set local session_replication_role = replica');
      await service.admin.query(change);
      const answers = await ask(service.admin as unknown as Sql, OF_REIMBURSEMENTS, null);
      await service.admin.query('rollback');
      const found = answers.filter(({ findings }) => findings.length > 0).map((answer) => answer.id);
      expect([what, found]).toEqual([what, expect.arrayContaining([id])]);
    }
    await green();
  });
});
