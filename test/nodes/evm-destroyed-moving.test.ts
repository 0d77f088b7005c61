// USDT's issuer destroys what lies at our addresses while something of ours is on its way, or at the address that payouts leave from; and what moves a
// payment does something else than it asks for, as its events say. An operator's word ends each of them.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { receipts } from '../support/nodes/altered-node.ts';
import { FINAL } from './evm-lied-to.ts';
import { asOwnerFirst, isDestroyed, ledgerIsChain, ownerCall, sweepIsSigned, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();
const lost = () => service.balance('expense:written_off:USDT');
const writtenOff = (address: string) =>
  writeOffAt(service.ctx, { address, takesBack: false, by: 'operator test', evidence: 'its issuer says so' });
const last = async () => (await service.batches('sweep')).at(-1);
const status = async (id: string) => (await readPayout(service.db, id))?.status;

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(() => {
  for (const node of [nodes.read, nodes.other]) node.alter({});
});

/** What moves a payment is signed, and no block has it yet. */
async function swept(): Promise<string> {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  ours.add(address);
  await sweepIsSigned(service, 'USDT');
  return address;
}

test('while a sweep is out', { timeout: TIMEOUT }, async () => {
  const address = await swept();
  await asOwnerFirst(service, ownerCall('setBlacklisted(address,bool)', address, 1n));
  await asOwnerFirst(service, ownerCall('destroyBlackFunds(address)', address));
  await service.mine(FINAL);
  await works(service, 2);
  expect(await last()).toMatchObject({ state: 'dead' });
  expect((await service.findings()).join()).toMatch(/^EVM-1: .* 300000000 are known: 300000000 are missing/);
  expect(await writtenOff(address)).toMatchObject([{ written: [{ address, amount: UNITS }], ended: null }]);
  const sweeps = (await service.batches('sweep')).length;
  await service.work(6 * 3_600_000);
  await works(service, 2);
  expect(await service.batches('sweep')).toHaveLength(sweeps);
  await ledgerIsChain(service, ours);
});

test('at the address that payouts leave from, while the token is paused', { timeout: TIMEOUT }, async () => {
  const [before, hot] = [await lost(), await service.hot('USDT')];
  const held = await service.units(hot);
  await isDestroyed(service, hot);
  await service.anvil.asOwner(ownerCall('setPaused(bool)', 1n));
  const id = await service.request(`0x${'c2'.repeat(20)}`);
  await service.mine(FINAL);
  expect((await service.findings()).join()).toContain(`${held} are missing`);
  expect(await writtenOff(hot)).toMatchObject([{ written: [{ address: hot, amount: held }] }]);
  expect(await lost()).toBe(before + held);
  await ledgerIsChain(service, ours);
  await works(service, 1);
  expect(await status(id)).toBe('processing');
  await service.anvil.asOwner(ownerCall('setPaused(bool)', 0n));
  await service.anvil.asOwner(ownerCall('setBlacklisted(address,bool)', hot, 0n));
  await service.pay('USDT', hot, 500_000_000n);
  await service.mine(FINAL);
  await works(service, 2);
  expect(await status(id)).toBe('completed');
  await ledgerIsChain(service, ours);
});

test('a sweep that did something else', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const hot = await service.hot('USDT');
  const address = await swept();
  const wasHeld = await service.units(hot);
  await service.mine();
  // its event is there twice
  const twice = receipts((one) => (one.logs.length === 1 ? { ...one, logs: [...one.logs, ...one.logs] } : one));
  expect((await service.units(hot)) - wasHeld).toBe(UNITS);
  for (const node of [nodes.read, nodes.other]) node.alter(twice);
  await service.mine(FINAL);
  await works(service, 2);
  expect((await openBreakers(service.db)).map(({ trippedBy }) => trippedBy)).toEqual([['INV-10']]);
  expect(await last()).toMatchObject({ state: expect.stringMatching(/^(signed|mined)$/) });
  await service.findings();
  expect(await writtenOff(address)).toMatchObject([{ written: [], ended: expect.stringMatching(/^0x/) }]);
  expect(await last()).toMatchObject({ state: 'final' });
  await service.goOn();
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await lost()).toBe(before);
  await ledgerIsChain(service, ours);
});
