// USDT's issuer destroys what lies at a blacklisted address of ours. Nothing of ours has taken it, so no look can find where it is: payouts stop until
// an operator writes it off, which nodes must show, and from then on books, audit and sweeps are as if it had never been there.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { readPayout } from '../../src/store/payouts/reads.ts';
import { balancesToCompare } from '../../src/store/sweeps/balances.ts';
import { writeOffAt } from '../../src/worker/payouts/evm/write-off.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS, SILENT } from './evm-lied-to.ts';
import { isDestroyed, ledgerIsChain, ownerCall, sent, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();
const lost = () => service.balance('expense:written_off:USDT');
const asked = { takesBack: false, by: 'operator test', evidence: 'its issuer says so' };
const writtenOff = async (address: string, more: Partial<typeof asked> = {}) =>
  (await writeOffAt(service.ctx, { address, ...asked, ...more })).flatMap(({ written }) => written);
const refusal = (what: string) => expect.objectContaining({ code: 'not_resolvable', message: expect.stringContaining(what) });
const sweeps = async () => (await service.batches('sweep')).map(({ state, nonce }) => `${state} ${nonce}`);

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);
afterEach(() => {
  for (const node of [nodes.read, nodes.other]) node.alter({});
});

async function paid(address?: string, units = UNITS): Promise<string> {
  const to = address ?? (await service.owe('USDT', units / 10_000n)).address;
  await service.pay('USDT', to, units);
  await service.mine();
  ours.add(to);
  return to;
}
/** At once, so that nothing is moved. */
const destroyed = (address: string): Promise<void> => isDestroyed(service, address);
const released = (address: string) => service.anvil.asOwner(ownerCall('setBlacklisted(address,bool)', address, 0n));

test('is written off, and payouts go on', { timeout: TIMEOUT }, async () => {
  const address = await paid();
  await service.mine(FINAL);
  await destroyed(address);
  await service.findings();
  await expect(writtenOff(address)).rejects.toEqual(refusal('lacks nothing'));
  await service.mine(FINAL);
  expect(await service.findings()).toEqual([
    expect.stringMatching(
      new RegExp(`^EVM-1: ${address} of txn_.* had 0 of USDT .* 300000000 are missing \\(bursar chain write-off`),
    ),
  ]);
  expect(await writtenOff(address)).toEqual([{ address, amount: UNITS }]);
  expect(await lost()).toBe(UNITS);
  await ledgerIsChain(service, ours);
  // said again, nothing more is lost
  expect(await writtenOff(address)).toEqual([]);
  expect(await lost()).toBe(UNITS);
  const id = await service.request(`0x${'c1'.repeat(20)}`);
  service.told.length = 0;
  await works(service, 2);
  expect((await readPayout(service.db, id))?.status).toBe('completed');
  expect(service.told.join()).not.toContain(address);
  expect(await sweeps()).toEqual([]);
  // what is paid there later is another payment
  await released(address);
  await paid(address, 200_000_000n);
  await service.mine(FINAL);
  await works(service, 4);
  expect(await sweeps()).toEqual(['final 0']);
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain(service, ours);
});
test('only what nodes show alike to be gone is written off', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const address = await paid();
  await service.mine(FINAL);
  await destroyed(address);
  await service.mine(FINAL);
  await service.findings();
  const balanceOf = `0x70a08231${address.slice(2).padStart(64, '0')}`;
  const still = (units: bigint) => ({
    instead: ({ method, params }: { method: string; params: readonly unknown[] }) =>
      method === 'eth_call' && (params[0] as { data?: string }).data === balanceOf
        ? { result: `0x${units.toString(16).padStart(64, '0')}` }
        : null,
  });
  nodes.other.alter(still(UNITS));
  await expect(writtenOff(address)).rejects.toEqual(refusal('300000000 units'));
  nodes.other.alter(SILENT);
  await expect(writtenOff(address)).rejects.toEqual(refusal('once two nodes say alike'));
  nodes.read.alter(SILENT);
  await expect(writtenOff(address)).rejects.toMatchObject({ name: 'NodeTrouble' });
  for (const node of [nodes.read, nodes.other]) node.alter({});
  // they rest no more
  await service.work(LATER_MS);
  await expect(writtenOff(`0x${'ab'.repeat(20)}`)).rejects.toEqual(refusal('is no address of ours'));
  expect(await lost()).toBe(before);
  // two say that it is gone, and a third that it is there
  const third = await openAlteredNode(service.anvil.url);
  third.alter(still(UNITS));
  const { clock, chains } = service.ctx.ports;
  const urls = new Map([['USDT' as const, [nodes.read, nodes.other, third].map(({ url }) => url)]]);
  const three = createChainNodes({ network: 'regtest', clock, urls, tokenContract: service.anvil.token });
  const ctx = { ...service.ctx, ports: { ...service.ctx.ports, chains: new Map([...chains, ...three.chains]) } };
  await expect(writeOffAt(ctx, { address, ...asked })).rejects.toEqual(refusal('none that it is more'));
  await three.close();
  third.close();
  // two operators at once
  const both = await Promise.all([writtenOff(address), writtenOff(address)]);
  expect(both.flat()).toHaveLength(1);
  expect(await lost()).toBe(before + UNITS);
  await ledgerIsChain(service, ours);
});

test('a part of what is there', { timeout: TIMEOUT }, async () => {
  const [before, moved] = [await lost(), (await sweeps()).length];
  const address = await paid();
  await service.mine(FINAL);
  await destroyed(address);
  await released(address);
  await paid(address, 200_000_000n);
  await service.mine(FINAL);
  await service.work(LATER_MS);
  await service.findings();
  expect(await writtenOff(address)).toMatchObject([{ amount: UNITS }]);
  await works(service, 4);
  expect((await sweeps()).slice(moved)).toEqual(['final 0']);
  expect(await service.units(address)).toBe(0n);
  expect(await lost()).toBe(before + UNITS);
  await ledgerIsChain(service, ours);
});

test('what is there again', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const address = await paid();
  await service.anvil.asOwner(ownerCall('setBlacklisted(address,bool)', address, 1n));
  await service.mine(FINAL);
  await service.findings();
  const balanceOf = `0x70a08231${address.slice(2).padStart(64, '0')}`;
  const none = {
    instead: ({ method, params }: { method: string; params: readonly unknown[] }) =>
      method === 'eth_call' && (params[0] as { data?: string }).data === balanceOf ? { result: `0x${'0'.repeat(64)}` } : null,
  };
  for (const node of [nodes.read, nodes.other]) node.alter(none);
  expect(await writtenOff(address)).toMatchObject([{ amount: UNITS }]);
  for (const node of [nodes.read, nodes.other]) node.alter({});
  await service.mine(2);
  expect(await service.findings()).toEqual([
    expect.stringMatching(/^EVM-2: .* 300000000 more .*bursar chain write-off --take-back\)/),
  ]);
  await expect(writtenOff(address)).rejects.toEqual(refusal('--take-back'));
  await service.db.query({ text: 'update chain_cursors set deep_height = height' });
  expect(await writtenOff(address, { takesBack: true })).toMatchObject([{ amount: -UNITS }]);
  await expect(writtenOff(address, { takesBack: true })).rejects.toEqual(refusal('has nothing more than is known'));
  expect(await lost()).toBe(before);
  await ledgerIsChain(service, ours);
  await released(address);
  await works(service, 4);
  expect(await service.units(address)).toBe(0n);
  await ledgerIsChain(service, ours);
});

test('behind a sweep that was forgotten, and has failed', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const address = await paid();
  await sent(service, await service.hot('ETH'), address, { value: 10n ** 16n });
  await service.mine();
  const data = transfer(await service.hot('USDT'), UNITS);
  await service.anvil.whilePaused(async () => {
    await sent(service, address, service.anvil.token, { data });
    await service.mine();
  });
  await destroyed(address);
  await service.mine(FINAL);
  service.restart();
  await works(service, 2);
  await service.findings();
  expect(await writtenOff(address)).toMatchObject([{ amount: UNITS }]);
  await works(service, 2);
  expect((await sweeps()).at(-1)).toBe('dead 0');
  expect(await lost()).toBe(before + UNITS);
  await ledgerIsChain(service, ours);
});

test('what its key has sent is not gone otherwise', { timeout: TIMEOUT }, async () => {
  const before = await lost();
  const address = await paid();
  await sent(service, await service.hot('ETH'), address, { value: 10n ** 16n });
  await service.mine();
  await sent(service, address, service.anvil.token, { data: transfer(`0x${'e1'.repeat(20)}`, UNITS) });
  await service.mine(FINAL);
  await service.findings();
  await expect(writtenOff(address)).rejects.toEqual(refusal('has sent 1 transactions, and 0 of them are known here'));
  expect(await lost()).toBe(before);
});

test('our own addresses, and those that differ, are compared before however many others', { timeout: TIMEOUT }, async () => {
  const hot = await service.hot('USDT');
  for (let nth = 0; nth < 3; nth++) await paid(undefined, 1_000_000n);
  await service.mine(FINAL);
  const gone = await paid();
  await service.mine(FINAL);
  await destroyed(gone);
  await service.mine(FINAL);
  await service.findings();
  const first = await balancesToCompare(service.db, 'USDT', { height: 1_000_000, limit: 3 });
  expect(first.map(({ script }) => `0x${script.toString('hex').slice(6)}`)).toEqual(expect.arrayContaining([hot, gone]));
});
