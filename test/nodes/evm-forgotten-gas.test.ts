// Database and signer were put back together, to before a sweep of USDT had failed that was the first of its address, or that another one came after:
// what it has cost is booked, and the books stay equal to the chain.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { FINAL, LATER_MS } from './evm-lied-to.ts';
import { ledgerIsChain, sent, transfer, works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const REST_MS = 6 * 3_600_000;
const HUNDREDTH = 10n ** 16n;
let nodes: TwoNodes;
let service: TwoNodes['service'];
const ours = new Set<string>();

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
  for (const currency of ['ETH', 'USDT'] as const) ours.add(await service.hot(currency));
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const hex = (amount: bigint): string => `0x${amount.toString(16)}`;
/** How many dollars its transaction is of, and the service has been paid them. */
async function paid(dollars = 300n): Promise<string> {
  const { address } = await service.owe('USDT', dollars * 100n);
  await service.pay('USDT', address, dollars * 1_000_000n);
  await service.mine(FINAL);
  ours.add(address);
  return address;
}
/** As this server did before it was put back. */
async function bringsGas(address: string): Promise<void> {
  await sent(service, await service.hot('ETH'), address, { value: HUNDREDTH });
  await service.mine();
}
async function sweeps(address: string, units: bigint): Promise<void> {
  await sent(service, address, service.anvil.token, { data: transfer(await service.hot('USDT'), units) });
  await service.mine();
}
const ended = async () => (await service.batches('sweep')).map(({ state, nonce }) => `${state} ${nonce}`);

test('one that was the first of its address', { timeout: TIMEOUT }, async () => {
  const address = await paid();
  await bringsGas(address);
  await sweeps(address, 3n * UNITS);
  await service.mine(FINAL);
  service.restart();
  await works(service, 2);
  expect(await ended()).toEqual(['dead 0']);
  await ledgerIsChain(service, ours);
  await service.work(REST_MS);
  await works(service, 3);
  expect(await ended()).toEqual(['dead 0', 'final 1']);
  expect(await service.units(address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
});

/** An address from which something was moved, and after the copy something failed and the rest was moved. */
async function failedBetween(): Promise<string> {
  const address = await paid();
  await works(service, 4);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await bringsGas(address);
  await sweeps(address, 3n * UNITS);
  await sweeps(address, UNITS);
  return address;
}

test('one before another that succeeded', { timeout: TIMEOUT }, async () => {
  const before = await ended();
  const address = await failedBetween();
  await service.mine(FINAL);
  service.restart();
  await works(service, 2);
  expect((await ended()).sort()).toEqual([...before, 'final 0', 'dead 1', 'final 2'].sort());
  await ledgerIsChain(service, ours);
  // the signer knows of the first only, and signs the one after those that are known to be used
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await service.work(REST_MS);
  await works(service, 3);
  expect(await service.units(address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
});

/** A node that has forgotten the states of older blocks. */
const withStatesFrom = (height: number): Alteration => ({
  instead({ method, params }) {
    const isOld = method === 'eth_getTransactionCount' && Number(params[1]) < height;
    return isOld ? { error: { code: -32000, message: 'missing trie node 0bc3 (path ) state 0x63aa is not available' } } : null;
  },
});

test('one that no node shows any more: the signer refuses what is next at its address, and no other one waits for that', {
  timeout: TIMEOUT,
}, async () => {
  const address = await failedBetween();
  await service.mine(FINAL);
  const tip = Number(await service.anvil.rpc('eth_blockNumber'));
  for (const node of [nodes.read, nodes.other]) node.alter(withStatesFrom(tip));
  service.restart();
  await works(service, 2);
  await service.pay('USDT', address, 2n * UNITS);
  const other = await paid();
  service.told.length = 0;
  for (let turn = 0; turn < 4; turn++) {
    // what the signer refuses for other reasons is asked for no more for ten minutes
    await service.work(LATER_MS);
    await service.mine();
  }
  expect(service.told.join()).toMatch(/rule conflict .* the next nonce of/);
  expect(await service.units(address)).toBe(2n * UNITS);
  expect(await service.units(other)).toBe(0n);
  for (const node of [nodes.read, nodes.other]) node.alter({});
  await works(service, 2);
  await service.work(REST_MS);
  await works(service, 3);
  expect(await service.units(address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
  await ledgerIsChain(service, ours);
});

test('what had failed before an address was paid is nobody’s sweep', { timeout: TIMEOUT }, async () => {
  const before = await ended();
  const { address } = await service.owe('USDT', 300_00n);
  await service.anvil.rpc('anvil_setBalance', address, hex(HUNDREDTH));
  await sweeps(address, UNITS);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await works(service, 2);
  expect(await service.units(address)).toBe(0n);
  expect((await ended()).sort()).toEqual([...before, 'final 1'].sort());
});
