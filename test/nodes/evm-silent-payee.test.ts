// A node that says nothing about one payee: its payout goes behind the others, and is paid once the node speaks.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { openNodeRelay } from '../support/nodes/node-relay.ts';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const SILENT = `0x${'5e'.repeat(20)}`;
const PAYEES = [`0x${'b1'.repeat(20)}`, `0x${'b2'.repeat(20)}`] as const;
let service: EvmService;
let relay: Awaited<ReturnType<typeof openNodeRelay>>;

beforeAll(async () => {
  service = await openEvmService({
    async through(url) {
      const isAboutIt = ([call]: readonly unknown[]): boolean => (call as { data: string }).data.includes(SILENT.slice(2));
      relay = await openNodeRelay(url, 'eth_estimateGas', isAboutIt);
      return relay.url;
    },
  });
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(65);
}, TIMEOUT);
afterAll(async () => {
  await service?.close();
  relay?.close();
}, TIMEOUT);

const status = async (id: string) => (await readPayout(service.db, id))?.status;

test('the oldest payout, of whose payee the node says nothing, holds up none behind it, and is asked about ever more rarely', {
  timeout: TIMEOUT,
}, async () => {
  relay.set('refuse');
  const silent = await service.request(SILENT);
  const first = await service.request(PAYEES[0]);
  await service.work(30_000);
  expect(relay.count()).toBe(1);
  expect(service.told.join()).toContain(`does not say whether ${silent} can be paid`);
  const second = await service.request(PAYEES[1]);
  await service.work(1_000);
  // the others come first, and it is not asked about at each look
  expect(relay.count()).toBe(1);
  await service.mine(12);
  await service.work(1_000);
  expect([await status(first), await status(second), await status(silent)]).toEqual(['completed', 'completed', 'processing']);
  await service.work(31_000);
  expect(relay.count()).toBe(2);
  await service.work(31_000);
  expect(relay.count()).toBe(2);
  relay.set('pass');
  await service.work(61_000);
  await service.mine(12);
  await service.work(61_000);
  expect(await status(silent)).toBe('completed');
});
