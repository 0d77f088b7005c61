// Transactions of ours that a block takes and that fail there, on a real EVM: the service pays their gas, the money is where it was, the audit is
// green afterwards, and nobody makes the service pay for that again and again.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { requestTokenPayout } from '../../src/flow/evm/request.ts';
import { approvePayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { readRefund, reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { listAllPayouts, readPayout, readPayoutDetails } from '../../src/store/payouts/reads.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
const FINAL = 65;
const LATER_MS = 61_000;
const CODE = {
  /** Writes a place of its storage. */
  takes: '0x600160005500',
  reverts: '0x60006000fd',
  /** Takes a wei, and nothing above. */
  takesOneWei: '0x34600110600857005b60006000fd',
} as const;
const ADDRESSES = { wallet: `0x${'c0'.repeat(20)}`, other: `0x${'c1'.repeat(20)}`, plain: `0x${'a9'.repeat(20)}` } as const;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);
beforeEach(() => {
  service.told.length = 0;
});

const setCode = (address: string, code: string): Promise<unknown> => service.anvil.rpc('anvil_setCode', address, code);
const nonceOf = (address: string): Promise<string> => service.anvil.rpc<string>('eth_getTransactionCount', address, 'latest');

/** A transaction that was paid in ether, is final, and is to go back to an address. */
async function reimbursed(destination: string): Promise<{ readonly transactionId: string; readonly refundId: string }> {
  const { id: transactionId, address } = await service.owe('ETH', 300_00n);
  await service.pay('ETH', address, TENTH);
  await service.mine(FINAL);
  const { merchantId } = service;
  await service.price();
  const asked = { merchantId, transactionId, destination, part: null, currency: null };
  await reimburseTransaction(service.ctx, asked);
  const refund = await readRefund(service.ctx, transactionId);
  if (refund === null) throw new Error('no reimbursement');
  const { rows } = await service.db.query<{ id: string }>({
    text: 'select id from payouts where reimburses = $1 order by created_at desc limit 1',
    values: [transactionId],
  });
  return { transactionId, refundId: rows[0]?.id as string };
}
const shown = async (id: string) => {
  const found = await readPayoutDetails(service.db, id);
  return { status: found?.status, waits: found?.heldReason, error: found?.error, trouble: found?.trouble };
};

test('a USDT payout that reverted is given back, the service has paid its gas, and the audit is green', {
  timeout: TIMEOUT,
}, async () => {
  const gas = await service.balance('expense:network_fee:ETH');
  await service.price();
  const { merchantId } = service;
  const { id } = await requestTokenPayout(service.ctx, { merchantId, amount: '50', destination: ADDRESSES.plain });
  await service.work(30_000);
  await service.anvil.whilePaused(async () => {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  });
  await service.work(LATER_MS);
  expect(await readPayout(service.db, id)).toMatchObject({ status: 'failed', error: 'reverted' });
  expect(await service.balance('expense:network_fee:ETH')).toBeGreaterThan(gas);
  expect(await service.balance(`merchant:${merchantId}:held:USDT`)).toBe(0n);
  await service.mine(FINAL);
  expect(await service.findings()).toEqual([]);
});

test('what a contract would not take whole is not signed: the whole amount is tried before, from our own address', {
  timeout: TIMEOUT,
}, async () => {
  await setCode(ADDRESSES.wallet, CODE.takesOneWei);
  const { refundId } = await reimbursed(ADDRESSES.wallet);
  const nonce = await nonceOf(await service.hot('ETH'));
  await service.work(LATER_MS);
  await service.mine(1);
  expect(await shown(refundId)).toMatchObject({ status: 'pending', waits: 'approval' });
  expect((await shown(refundId)).trouble).toMatch(/cannot be paid now/);
  expect(await nonceOf(await service.hot('ETH'))).toBe(nonce);
  // it takes all of it from now on
  await setCode(ADDRESSES.wallet, CODE.takes);
  await approvePayout(service.ctx, { payoutId: refundId, by: 'test' });
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await shown(refundId)).status).toBe('completed');
  expect(await service.findings()).toEqual([]);
});

test('after one that reverted at a contract, the merchant’s next to a contract waits for the operator, and one to a plain address does not', {
  timeout: TIMEOUT,
}, async () => {
  await setCode(ADDRESSES.wallet, CODE.takes);
  const gas = await service.balance('expense:network_fee:ETH');
  const { refundId: first } = await reimbursed(ADDRESSES.wallet);
  await service.work(LATER_MS);
  // what was tried is not what is executed
  await setCode(ADDRESSES.wallet, CODE.reverts);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await shown(first)).toMatchObject({ status: 'failed', error: 'reverted' });
  expect(await service.balance('expense:network_fee:ETH')).toBeGreaterThan(gas);
  expect(await service.findings()).toEqual([]);

  await setCode(ADDRESSES.other, CODE.takes);
  const { refundId: second } = await reimbursed(ADDRESSES.other);
  const { refundId: plain } = await reimbursed(ADDRESSES.plain);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await shown(plain)).status).toBe('completed');
  expect(await shown(second)).toMatchObject({ status: 'pending', waits: 'approval' });
  expect((await shown(second)).trouble).toMatch(/reverted.*approve/);
  await service.work(2 * 3_600_000);
  expect(await shown(second)).toMatchObject({ status: 'pending', waits: 'approval' });

  await approvePayout(service.ctx, { payoutId: second, by: 'test' });
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await shown(second)).status).toBe('completed');
  // an approved one has arrived since: what comes next needs nobody
  const { refundId: third } = await reimbursed(ADDRESSES.other);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect((await shown(third)).status).toBe('completed');
  expect(await service.findings()).toEqual([]);
});

test('a merchant has one reimbursement to a contract on its way at a time', { timeout: TIMEOUT }, async () => {
  await setCode(ADDRESSES.wallet, CODE.takes);
  await setCode(ADDRESSES.other, CODE.takes);
  const ids = [await reimbursed(ADDRESSES.wallet), await reimbursed(ADDRESSES.other)].map(({ refundId }) => refundId);
  await service.work(LATER_MS);
  expect(service.told.join()).toMatch(/one reimbursement to a contract at a time/);
  await setCode(ADDRESSES.wallet, CODE.reverts);
  await setCode(ADDRESSES.other, CODE.reverts);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await service.work(LATER_MS);
  await setCode(ADDRESSES.other, CODE.takes);
  await service.work(LATER_MS);
  expect(await Promise.all(ids.map(async (id) => (await shown(id)).status))).toEqual(['failed', 'pending']);
  expect((await listAllPayouts(service.db, { status: 'pending', limit: 10 })).map(({ id }) => id)).toContain(ids[1]);
  expect(await service.findings()).toEqual([]);
});
