// USDT's owner switches its fee on while a payout is out: its payee gets less than was sent. All of it has left for good, so the payout is completed once
// its block is final, and nobody else's wait.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout, readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { FINAL, LATER_MS, receiveDollars } from './evm-lied-to.ts';
import { asOwnerFirst, ledgerIsChain, ownerCall, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'d5'.repeat(20)}`;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const fee = (points: bigint): string => ownerCall('setFee(uint256)', points);
const status = async (id: string) => (await readPayout(service.db, id))?.status;

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  await receiveDollars(service, 500n);
  await works(service, 3);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

async function isWhole(): Promise<void> {
  const own = await Promise.all((['ETH', 'USDT'] as const).map((currency) => service.hot(currency)));
  const { rows } = await service.db.query<{ address: string }>({ text: 'select lower(address) as address from transactions' });
  await ledgerIsChain(service, [...own, ...rows.map(({ address }) => address)]);
}
/** What waits is sent, and its block charges this fee. */
async function sentWithFee(points: bigint): Promise<void> {
  await service.work(LATER_MS);
  await asOwnerFirst(service, fee(points));
  await service.mine();
  await asOwnerFirst(service, fee(0n));
}

test('is completed once it is final', { timeout: TIMEOUT }, async () => {
  const id = await service.request(PAYEE);
  await sentWithFee(100n);
  expect(await status(id)).toBe('processing');
  await service.mine(12);
  await service.work(LATER_MS);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await status(id)).toBe('processing');
  await service.mine(FINAL);
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await status(id)).toBe('completed');
  expect(await service.units(PAYEE)).toBe(49_500_000n);
  const { rows: told } = await service.db.query<{ reason: string }>({
    text: `select reason from events where object_id = $1 and status = 'completed'`,
    values: [id],
  });
  expect(told).toEqual([{ reason: "the token's contract has kept 0.500000 USDT of it" }]);
  expect(await readPayoutDetails(service.db, id)).toMatchObject({ kept: 500_000n });
  const other = await service.request(PAYEE);
  await works(service, 2);
  expect(await status(other)).toBe('completed');
  expect(await readPayoutDetails(service.db, other)).toMatchObject({ kept: null });
  await isWhole();
});

test.each([
  ['a part', 100n],
  ['all', 10_000n],
])('what goes back to a customer shows what he has got, where %s was kept', { timeout: TIMEOUT }, async (_, points) => {
  const customer = `0x${(0xe000n + points).toString(16).padStart(40, '5')}`;
  const { id, address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
  const { merchantId } = service;
  await reimburseTransaction(service.ctx, { merchantId, transactionId: id, destination: customer, part: null, currency: null });
  await sentWithFee(points);
  await service.mine(12);
  await service.work(LATER_MS);
  expect(await readRefund(service.ctx, id)).toMatchObject({ status: 'pending' });
  await service.mine(FINAL);
  await works(service, 2);
  await service.settle();
  const arrived = await service.units(customer);
  const shown = await readRefund(service.ctx, id);
  expect(shown).toMatchObject({ status: 'completed', amount: arrived });
  // amount and fee are what was taken
  expect(arrived + (shown?.fee ?? 0n)).toBe(300_000_000n);
  expect(await service.status(id)).toBe('reimbursed');
  expect(await openBreakers(service.db)).toEqual([]);
  await isWhole();
});
