// What stands in the way of a transaction that was signed long ago is told: a block has not taken it for hours, though our node has it, or the node
// refuses it.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { openDriver } from './signer.ts';

const MINUTE = 60_000;
let service: ServiceOnDatabase;
let refusal: string | null;
let at: ReturnType<typeof openDriver>;

beforeEach(async () => {
  service = await openServiceOnDatabase();
  await tellFee(service.ctx);
  refusal = null;
  const send = async () => (refusal === null ? { state: 'accepted' } : { state: 'policy', reason: refusal });
  at = openDriver(service, undefined, { send });
  const { transactionId } = await service.create(1_000_00n);
  await service.pay(transactionId, 1_000_000n);
  await service.mine(6);
  await service.judge();
});
afterEach(() => service.drop());

async function request(): Promise<string> {
  const { merchantId } = service;
  const made = await requestPayout(service.ctx, { merchantId, amount: '0.002', destination: OUTSIDE });
  await at.driver.pass({ isQueued: true, signsNew: true });
  return made.id;
}
async function passes(minutes: number): Promise<void> {
  for (let passed = 0; passed < minutes; passed += 10) {
    service.pass(10 * MINUTE);
    await at.driver.pass({ isQueued: false, signsNew: true });
  }
}
const waiting = async (): Promise<readonly string[]> =>
  (await readReadiness(service.ctx, [])).problems.filter((one) => one.startsWith('payout '));

test('a payout that no block takes for as long as 36 blocks take is told, in the log and to /readyz', async () => {
  const id = await request();
  await passes(350);
  expect([await waiting(), at.troubles]).toEqual([[], []]);
  await passes(20);
  const [batch] = (await service.admin.query('select id from outgoing_batches')).rows;
  const why = expect.stringMatching(/no block has taken [0-9a-f]{64} for more than 360 minutes, and our nodes have it/);
  expect(await waiting()).toEqual([why]);
  expect((await waiting())[0]).toMatch(new RegExp(`^payout ${id} waits: `));
  expect(new Set(at.troubles)).toEqual(new Set([why]));
  expect(at.troubles[0]).toMatch(new RegExp(`^batch ${batch.id}: `));
});

test('one that the node refuses is told after ten minutes, and no more once it takes it', async () => {
  refusal = 'min relay fee not met';
  const id = await request();
  expect(await waiting()).toEqual([]);
  await passes(10);
  expect(await waiting()).toEqual([`payout ${id} waits: min relay fee not met`]);
  refusal = null;
  await passes(10);
  expect(await waiting()).toEqual([]);
});
