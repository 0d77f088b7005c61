// Database and signer were put back together, to before a sweep of USDT had failed: what it has cost is booked, the next one takes the next nonce, and
// nothing stops.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openBreakers } from '../../src/store/ledger/breakers.ts';
import { callData } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import type { Alteration } from '../support/nodes/altered-node.ts';
import { FINAL, SILENT } from './evm-lied-to.ts';
import { works } from './evm-steps.ts';
import { openOnTwoNodes, type TwoNodes } from './two-nodes.ts';

const TIMEOUT = 300_000;
const UNITS = 300_000_000n;
const REST_MS = 6 * 3_600_000;
let nodes: TwoNodes;
let service: TwoNodes['service'];

beforeAll(async () => {
  nodes = await openOnTwoNodes();
  ({ service } = nodes);
}, TIMEOUT);
afterAll(() => nodes?.close(), TIMEOUT);

const ended = async () => (await service.batches('sweep')).map(({ state, nonce }) => [state, nonce]);

/** As a sweep of this server that failed before it was put back. */
async function fails(address: string): Promise<void> {
  const { anvil } = service;
  await anvil.rpc('anvil_impersonateAccount', address);
  await anvil.rpc('anvil_setBalance', address, `0x${(10n ** 17n).toString(16)}`);
  const data = callData(QUIRKY_TOKEN, 'transfer(address,uint256)', await service.hot('USDT'), 3n * UNITS);
  await anvil.rpc('eth_sendTransaction', { from: address, to: anvil.token, data, gas: '0x186a0' });
  await service.mine(FINAL);
}

/** An address from which something was moved, and then something failed that was forgotten. @returns what was known before that */
async function failedOnce() {
  const { address } = await service.owe('USDT', 300_00n);
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await works(service, 4);
  const before = await ended();
  await service.pay('USDT', address, UNITS);
  await service.mine(FINAL);
  await fails(address);
  return { address, before };
}

test('a sweep that has failed and was forgotten stops nothing', { timeout: TIMEOUT }, async () => {
  const { address, before } = await failedOnce();
  expect(before).toEqual([['final', 0]]);
  nodes.other.alter(SILENT);
  service.restart();
  await works(service, 1);
  expect([await openBreakers(service.db), await ended()]).toEqual([[], [['final', 0]]]);
  expect(service.told.join()).toMatch(/stay at their addresses: 0x\w+ of 0x\w+ has failed, and is booked first/);
  nodes.other.alter({});
  await works(service, 2);
  expect(await openBreakers(service.db)).toEqual([]);
  expect(await ended()).toEqual([
    ['final', 0],
    ['dead', 1],
  ]);
  await service.work(REST_MS);
  await works(service, 2);
  expect(await ended()).toEqual([
    ['final', 0],
    ['dead', 1],
    ['final', 2],
  ]);
  expect(await service.units(address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
  expect((await service.findings()).filter((finding) => !finding.startsWith('EVM-2'))).toEqual([]);
});

test('an address rests no longer because the clock was fast when its sweep failed', { timeout: TIMEOUT }, async () => {
  const { address, before } = await failedOnce();
  await works(service, 2);
  expect(await ended()).toEqual([...before, ['dead', 1]]);
  // and was put right since
  const isFast = `update outgoing_batches set created_at = created_at + interval '1 day' where state = 'dead' and currency = 'USDT'`;
  await service.db.query({ text: isFast, values: [] });
  await works(service, 2);
  expect(await service.units(address)).toBe(0n);
  expect((await ended()).filter(([, nonce]) => nonce === 2)).toHaveLength(2);
});

/** A node that has forgotten the states of older blocks. */
const withStatesFrom = (height: number): Alteration => ({
  instead({ method, params }) {
    const isOld = method === 'eth_getTransactionCount' && Number(params[1]) < height;
    return isOld ? { error: { code: -32000, message: 'missing trie node 0bc3 (path ) state 0x63aa is not available' } } : null;
  },
});

test('one that no node can find any more keeps its address waiting, and stops nothing', { timeout: TIMEOUT }, async () => {
  const { address, before } = await failedOnce();
  const tip = Number(await service.anvil.rpc('eth_blockNumber'));
  for (const node of [nodes.read, nodes.other]) node.alter(withStatesFrom(tip));
  await works(service, 2);
  expect([await openBreakers(service.db), await ended()]).toEqual([[], before]);
  expect(service.told.join()).toMatch(/what 0x\w+ has sent at nonce 1 is not known here/);
  for (const node of [nodes.read, nodes.other]) node.alter({});
  await works(service, 2);
  await service.work(REST_MS);
  await works(service, 2);
  expect(await service.units(address)).toBe(0n);
  expect(await openBreakers(service.db)).toEqual([]);
});
