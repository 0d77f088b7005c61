// What blocks ask for has become much dearer since small payments were moved: what waits for that holds up no other payment.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EvmService, openEvmService } from './evm-service.ts';

const TIMEOUT = 300_000;
const FINAL = 70;
const LATER_MS = 61_000;
const GWEI = 10n ** 9n;
/** As many as wait for a block at most. */
const MANY = 16;
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
async function paid(wei: bigint): Promise<string> {
  const { address } = await service.owe('ETH', (wei * 3_000_00n) / 10n ** 18n + 1n);
  await service.pay('ETH', address, wei);
  return address;
}
async function baseFee(wei: bigint): Promise<void> {
  await service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', hex(wei));
  await service.mine();
}
const waiting = async () => (await service.batches('sweep')).filter(({ state }) => state === 'signed').length;

test('many small payments in ether', { timeout: TIMEOUT }, async () => {
  await baseFee(GWEI);
  const small: string[] = [];
  for (let n = 0; n < MANY; n++) small.push(await paid(10n ** 15n));
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await waiting()).toBe(MANY);
  await baseFee(60n * GWEI);
  const large = await paid(5n * 10n ** 18n);
  for (let n = 0; n < FINAL; n++) await baseFee(60n * GWEI);
  for (let turn = 0; turn < 4; turn++) {
    await service.work(LATER_MS);
    await baseFee(60n * GWEI);
  }
  expect(await service.ether(large)).toBe(0n);
  expect(await waiting()).toBe(MANY);
  // and when gas is as cheap as before
  await baseFee(GWEI);
  await service.work(LATER_MS);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  expect(await waiting()).toBe(0);
  for (const address of small) expect(await service.ether(address)).toBe(0n);
  expect((await service.findings()).filter((finding) => !finding.startsWith('INV-19'))).toEqual([]);
});
