// A contract that we pay in ether sends USDT of its own on to addresses of ours, in our transaction: whoever it has them of, they are a payment.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { reimburseTransaction } from '../../src/flow/payouts/reimbursements.ts';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readMoves } from '../../src/store/sweeps/forgotten-moves.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { sendsOn } from './evm-steps.ts';

const TIMEOUT = 300_000;
const HUNDREDTH = 10n ** 16n;
const FINAL = 70;
const LATER_MS = 61_000;
const WALLET = `0x${'c0'.repeat(20)}`;
const UNITS = 300_000_000n;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

test('USDT that a contract sends on in a transaction of ours is credited', { timeout: TIMEOUT }, async () => {
  const { anvil, ctx, db, merchantId } = service;
  const ether = await service.owe('ETH', 30_00n);
  await service.pay('ETH', ether.address, HUNDREDTH);
  await service.pay('USDT', WALLET, UNITS);
  await service.mine(FINAL);
  const dollars = await service.owe('USDT', 300_00n);
  await anvil.rpc('anvil_setCode', WALLET, sendsOn(anvil.token, dollars.address, UNITS));
  await service.price();
  const of = { merchantId, transactionId: ether.id, destination: WALLET, part: null, currency: null };
  await reimburseTransaction(ctx, of);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  expect([(await service.ether(WALLET)) > 0n, await service.units(dollars.address)]).toEqual([true, UNITS]);
  expect(await readMoves(db, 'USDT', 10)).toEqual([]);
  expect(await service.status(dollars.id)).toBe('succeeded');
  expect(await service.findings()).toEqual([]);
  expect(await openBreakers(db)).toEqual([]);
  // and is moved as any
  for (let turn = 0; turn < 5; turn++) {
    await service.work(LATER_MS);
    await service.mine(FINAL);
  }
  expect(await service.units(dollars.address)).toBe(0n);
  expect(await service.findings()).toEqual([]);
});
