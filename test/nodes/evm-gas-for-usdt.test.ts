// The address that USDT leaves from has no ether of its own: what its payouts need comes from ether's sending address, as with sweeps, and where
// there is none either an operator is told.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { readReadiness } from '../../src/flow/readiness.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { ledgerIsChain } from './evm-steps.ts';

const TIMEOUT = 300_000;
const PAYEE = `0x${'b1'.repeat(20)}`;
const FINAL = 65;
const LATER_MS = 61_000;
const GWEI = 10n ** 9n;
let service: EvmService;
const ours: string[] = [];

beforeAll(async () => {
  service = await openEvmService({ gasOfUsdt: 0n });
  const { address } = await service.owe('USDT', 300_00n);
  ours.push(address, await service.hot('ETH'), await service.hot('USDT'));
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
}, TIMEOUT);
afterAll(() => service?.close(), TIMEOUT);
beforeEach(() => {
  service.told.length = 0;
});

const request = (): Promise<string> => service.request(PAYEE);
const status = async (id: string) => (await readPayout(service.db, id))?.status;
const problems = async (): Promise<string> => (await readReadiness(service.ctx, ['ETH', 'USDT'])).problems.join('; ');
const toHot = async () =>
  (await service.batches('top_up')).length -
  (await service.batches('sweep')).filter(({ currency }) => currency === 'USDT').length;
/** Until nothing is on its way, and all of it is final. */
async function settled(turns = 6): Promise<void> {
  for (let turn = 0; turn < turns; turn++) {
    await service.work(LATER_MS);
    await service.mine();
  }
  await service.mine(FINAL);
  await service.work(LATER_MS);
}

test('the ether for its gas is sent there once, with some for the next payouts, and the books balance', {
  timeout: TIMEOUT,
}, async () => {
  const ids = [await request(), await request(), await request()];
  await settled();
  expect(await Promise.all(ids.map(status))).toEqual(['completed', 'completed', 'completed']);
  expect(await service.units(PAYEE)).toBe(150_000_000n);
  expect(await toHot()).toBe(1);
  expect(service.told).toEqual([]);
  expect(await problems()).not.toContain('too little ether');
  await ledgerIsChain(service, ours);
});

test('a payout that fees have left behind gets the ether for its replacement, and is paid once', {
  timeout: TIMEOUT,
}, async () => {
  const before = await service.units(PAYEE);
  // all that the next payout needs, and little more
  const hot = await service.hot('USDT');
  await service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${GWEI.toString(16)}`);
  await service.mine();
  const id = await request();
  await service.work(LATER_MS);
  await service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${(1_500n * GWEI).toString(16)}`);
  const had = await service.ether(hot);
  await service.mine();
  for (let turn = 0; turn < 8 && (await status(id)) !== 'completed'; turn++) {
    await service.work(LATER_MS);
    // the block asks for as much as the one before, less an eighth
    await service.mine();
  }
  await settled(2);
  expect(await status(id)).toBe('completed');
  expect(await service.units(PAYEE)).toBe(before + 50_000_000n);
  expect(had).toBeGreaterThan(0n);
  await ledgerIsChain(service, ours);
});

test('ether for the gas of a sweep that fees have left behind is replaced at its nonce, and the books balance', {
  timeout: TIMEOUT,
}, async () => {
  const { address } = await service.owe('USDT', 300_00n);
  ours.push(address);
  await service.pay('USDT', address, 300_000_000n);
  await service.mine(FINAL);
  await service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${GWEI.toString(16)}`);
  await service.mine();
  service.restart();
  const newest = async () => (await service.batches('top_up')).at(-1);
  for (let turn = 0; turn < 4 && (await newest())?.state !== 'signed'; turn++) await service.work(LATER_MS);
  const sent = await newest();
  expect([sent?.attempts, sent?.state]).toEqual([1, 'signed']);
  await service.anvil.rpc('anvil_setNextBlockBaseFeePerGas', `0x${(1_500n * GWEI).toString(16)}`);
  await service.mine();
  expect(await service.ether(address)).toBe(0n);
  for (let turn = 0; turn < 12 && (await service.units(address)) > 0n; turn++) {
    await service.work(LATER_MS);
    // a sweep is worth its gas again some blocks later
    await service.mine(turn < 2 ? 1 : 10);
  }
  await settled(2);
  expect(await service.units(address)).toBe(0n);
  // what was dear for a while may want some more of it
  const replaced = (await service.batches('top_up')).find(({ id }) => id === sent?.id);
  expect(replaced).toMatchObject({ state: 'final', nonce: sent?.nonce });
  expect(replaced?.attempts).toBeGreaterThan(1);
  await ledgerIsChain(service, ours);
});

test('where there is no ether at all it is named, in /readyz too, and payouts go on once there is some', {
  timeout: TIMEOUT,
}, async () => {
  // what gas costs is asked every 15 s, and it was dear a moment ago: a worker that starts asks at once
  service.restart();
  await service.work();
  const before = await service.units(PAYEE);
  const [ether, usdt] = [await service.hot('ETH'), await service.hot('USDT')];
  const had = [await service.ether(ether), await service.ether(usdt)] as const;
  for (const address of [ether, usdt]) await service.anvil.rpc('anvil_setBalance', address, '0x0');
  await service.mine();
  const id = await request();
  await service.work(LATER_MS);
  expect(service.told.join()).toContain(
    `our address ${usdt} has too little ether, and our address ${ether} has too little ether`,
  );
  expect(await problems()).toContain(`our address ${usdt} has too little ether`);
  expect(await status(id)).toBe('processing');
  for (const [at, address] of [ether, usdt].entries())
    await service.anvil.rpc('anvil_setBalance', address, `0x${(had[at] as bigint).toString(16)}`);
  await service.mine();
  await settled(3);
  expect(await status(id)).toBe('completed');
  expect(await problems()).not.toContain('too little ether');
  expect(await service.units(PAYEE)).toBe(before + 50_000_000n);
  await ledgerIsChain(service, ours);
});
