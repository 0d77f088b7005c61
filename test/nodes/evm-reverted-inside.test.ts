// Calls three deep, of which the middle one fails: what it has called has sent USDT and ether to addresses of ours, and nothing of that has happened.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { FINAL } from './evm-lied-to.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { ledgerIsChain, sendsToAll, works } from './evm-steps.ts';

const TIMEOUT = 300_000;
const TENTH = 10n ** 17n;
const UNITS = 300_000_000n;
const [INNER, MIDDLE, OUTER] = [`0x${'a1'.repeat(20)}`, `0x${'a2'.repeat(20)}`, `0x${'a3'.repeat(20)}`];
let service: EvmService;

beforeAll(async () => {
  service = await openEvmService();
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);

/** Code that calls an address with all the gas that is left, and goes on whatever becomes of that. */
const calls = (to: string, wei = 0n): string => `600060006000600067${wei.toString(16).padStart(16, '0')}73${to.slice(2)}5af150`;
const FAILS = '60006000fd';

test('what was sent in a call that failed is no payment, and what was sent beside it is one', { timeout: TIMEOUT }, async () => {
  const { anvil } = service;
  const [dollars, ether] = [await service.owe('USDT', 300_00n), await service.owe('ETH', 300_00n)];
  await service.pay('USDT', INNER, 2n * UNITS);
  await anvil.rpc('anvil_setBalance', INNER, `0x${(10n * TENTH).toString(16)}`);
  const sends = sendsToAll(anvil.token, [{ to: dollars.address, units: UNITS }]).slice(0, -2);
  await anvil.rpc('anvil_setCode', INNER, `${sends}${calls(ether.address, TENTH)}00`);
  await anvil.rpc('anvil_setCode', MIDDLE, `0x${calls(INNER)}${FAILS}`);
  const statuses = async () => [await service.status(dollars.id), await service.status(ether.id)];
  for (const [code, status] of [
    [calls(MIDDLE) + calls(MIDDLE), 'started'],
    [calls(MIDDLE) + calls(INNER) + calls(MIDDLE), 'succeeded'],
  ] as const) {
    await anvil.rpc('anvil_setCode', OUTER, `0x${code}00`);
    const { hash } = await anvil.send({ to: OUTER, input: '0x01' });
    await service.mine(FINAL);
    expect(await anvil.rpc('eth_getTransactionReceipt', hash)).toMatchObject({ status: '0x1' });
    expect(await statuses()).toEqual([status, status]);
  }
  expect([await service.units(dollars.address), await service.ether(ether.address)]).toEqual([UNITS, TENTH]);
  await works(service, 3);
  await ledgerIsChain(service, [await service.hot('ETH'), await service.hot('USDT'), dollars.address, ether.address]);
});
