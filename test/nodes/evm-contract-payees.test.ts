// Reimbursements in ether to contracts that take them, on a real EVM: what their gas was given and not used is booked, and however many of a
// merchant wait for each other, they hide nobody's behind them.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const HUNDREDTH = 10n ** 16n;
const FINAL = 65;
const LATER_MS = 61_000;
/** More than one look takes up. */
const MANY = 101;
/** Writes a place of its storage. */
const TAKES = '0x600160005500';
const WALLET = `0x${'c0'.repeat(20)}`;
const PLAIN = `0x${'a9'.repeat(20)}`;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
  await service.anvil.rpc('anvil_setCode', WALLET, TAKES);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

/** Transactions that were paid in ether, are final, and are to go back to these addresses, in this order. */
async function reimbursed(destinations: readonly string[]): Promise<void> {
  const made: string[] = [];
  for (const _ of destinations) {
    const { id, address } = await service.owe('ETH', 30_00n);
    await service.pay('ETH', address, HUNDREDTH);
    made.push(id);
  }
  await service.mine(FINAL);
  const { merchantId } = service;
  await service.price();
  for (const [at, destination] of destinations.entries())
    await reimburseTransaction(service.ctx, {
      merchantId,
      transactionId: made[at] ?? '',
      destination,
      part: null,
      currency: null,
    });
}
const arrived = async (address: string): Promise<bigint> =>
  BigInt(await service.anvil.rpc<string>('eth_getBalance', address, 'latest'));

test('a contract uses less gas than it was given: what is left of the fee is income, and the audit is green', {
  timeout: TIMEOUT,
}, async () => {
  await reimbursed([WALLET]);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await arrived(WALLET)).toBeGreaterThan(0n);
  expect(await service.balance('income:gas:ETH')).toBeGreaterThan(0n);
  expect(await service.findings()).toEqual([]);
});

test('more to contracts than one look takes up wait for each other, and one to a plain address behind them leaves', {
  timeout: TIMEOUT,
}, async () => {
  await reimbursed([...Array.from({ length: MANY }, () => WALLET), PLAIN]);
  await service.work(LATER_MS);
  await service.work();
  await service.mine(1);
  expect(await arrived(PLAIN)).toBeGreaterThan(0n);
  expect(await service.findings()).toEqual([]);
});
