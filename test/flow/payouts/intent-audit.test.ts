// What the audit says of open payouts: each is what its API has signed (INT-1), and none takes too long (INV-19).
import { beforeEach, describe, expect, test } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { runAudit } from '../../../src/flow/audit.ts';
import { reimburseTransaction } from '../../../src/flow/payouts/reimbursements.ts';
import { OUTSIDE } from '../../support/funded.ts';
import { batches, batchServiceForEach, ctx, service } from './batch-service.ts';

batchServiceForEach();

const HOUR = 3_600_000;
beforeEach(() => batches.earn(4));

const red = async (): Promise<string[]> =>
  (await runAudit(ctx)).answers.filter(({ id }) => id === 'INT-1').flatMap(({ findings }) => findings);
const late = async (): Promise<readonly string[]> => {
  const { ok, pages } = await runAudit(ctx);
  expect(ok).toBe(true);
  return pages.flatMap(({ id, findings }) => findings.map((finding) => `${id} ${finding}`));
};
async function requested(): Promise<Record<'bitcoin' | 'ach' | 'reimbursement', string>> {
  const { rows } = await service.admin.query('select id from transactions limit 1');
  const transactionId = rows[0].id;
  const bitcoin = await batches.request();
  const asked = { merchantId: service.merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  const { id: ach } = await requestAchPayout(ctx, asked);
  await reimburseTransaction(ctx, {
    merchantId: service.merchantId,
    transactionId,
    destination: OUTSIDE,
    part: null,
    currency: null,
  });
  const found = await service.admin.query('select id from payouts where reimburses = $1', [transactionId]);
  return { bitcoin, ach, reimbursement: found.rows[0].id };
}

describe('an open payout', () => {
  test.each([
    ['bitcoin', "script = '\\x0014000000000000000000000000000000000000dead'"],
    ['bitcoin', 'amount = amount + 1'],
    ['bitcoin', 'merchant_id = merchant_id + 1'],
    ['bitcoin', "intent_key = repeat('0', 64)"],
    ['bitcoin', 'intent = intent_key::bytea'],
    ['ach', "destination = 'ach:021000021:666'"],
    ['ach', 'fee_max = fee_max + 1'],
    ['reimbursement', "script = '\\x0014000000000000000000000000000000000000dead'"],
    ['reimbursement', "created_at = created_at + interval '1 ms'"],
  ] as const)('by %s that is changed in the database makes INT-1 red: %s', async (method, change) => {
    const ids = await requested();
    expect(await red()).toEqual([]);
    const client = await service.admin.connect();
    try {
      await client.query('set session_replication_role = replica');
      await client.query(`update payouts set ${change} where id = $1`, [ids[method]]);
    } finally {
      client.release(true);
    }
    expect(await red()).toEqual([`${ids[method]} is not what its API has signed`]);
  });

  test('that is on its way for too long is told by INV-19, which stops nothing', async () => {
    const { bitcoin, ach } = await requested();
    await service.wait(23 * HOUR);
    expect(await late()).toEqual([]);
    await service.wait(2 * HOUR);
    expect((await late()).join()).toMatch(new RegExp(`INV-19 ${bitcoin} by bitcoin is processing since`));
    expect((await late()).join()).not.toContain(ach);
    await service.wait(12 * 24 * HOUR);
    expect((await late()).join()).toContain(ach);
  });
});
