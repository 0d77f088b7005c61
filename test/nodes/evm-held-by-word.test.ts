// What an address of ours holds after a final block, by the word of three nodes: what is missing there is written off for good.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { BlockRef } from '../../src/core/block-ref.ts';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { type Anvil, startAnvil } from '../support/evm/anvil.ts';
import { type Alteration, openAlteredNode } from '../support/nodes/altered-node.ts';
import { SILENT } from './evm-lied-to.ts';

const TIMEOUT = 120_000;
const ADDRESS = `0x${'a7'.repeat(20)}`;
const UNITS = 5_000_000n;
let anvil: Anvil;
let relays: Awaited<ReturnType<typeof openAlteredNode>>[] = [];
let port: EvmPort;
let ofFour: EvmPort;
let end: () => Promise<void>;
let block: BlockRef;
let skew = 0;

beforeAll(async () => {
  anvil = await startAnvil();
  for (let nth = 0; nth < 4; nth++) relays.push(await openAlteredNode(anvil.url));
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() + skew };
  const [three, four] = [3, 4].map((count) => {
    const urls = new Map([['USDT' as const, relays.slice(0, count).map(({ url }) => url)]]);
    return createChainNodes({ network: 'regtest', clock, urls, tokenContract: anvil.token });
  });
  port = three?.chains.get('USDT') as unknown as EvmPort;
  ofFour = four?.chains.get('USDT') as unknown as EvmPort;
  end = async () => void (await Promise.all([three?.close(), four?.close()]));
  await anvil.deal(ADDRESS, UNITS);
  await anvil.mine(100);
  block = (await port.finalized()) as BlockRef;
}, TIMEOUT);
afterEach(() => {
  for (const relay of relays) relay.alter({});
  // whoever was silent is asked again
  skew += 61_000;
});
afterAll(async () => {
  await end?.();
  for (const relay of relays) relay.close();
  relays = [];
  await anvil?.remove();
}, TIMEOUT);

const answers = (method: string, result: unknown): Alteration => ({
  instead: (call) => (call.method === method ? { result } : null),
});
const word = (units: bigint): string => `0x${units.toString(16).padStart(64, '0')}`;
const alter = (...of: readonly Alteration[]): void => {
  for (const [nth, alteration] of of.entries()) relays[nth]?.alter(alteration);
};
const header = async (at: string) => anvil.rpc<Record<string, unknown>>('eth_getBlockByNumber', at, false);
const held = () => port.heldBy(ADDRESS, block);

test('all say the same', async () => {
  const { said, ...word } = await held();
  expect(word).toEqual({ held: { nonce: 0, units: UNITS }, most: UNITS });
  expect(said).toHaveLength(3);
});

test('two say the same, and the third that there is more, less, or nothing', async () => {
  alter({}, {}, answers('eth_call', word(UNITS + 1n)));
  expect(await held()).toMatchObject({ held: { units: UNITS }, most: UNITS + 1n });
  alter({}, {}, answers('eth_call', word(0n)));
  expect(await held()).toMatchObject({ held: { units: UNITS }, most: UNITS });
  alter({}, {}, SILENT);
  expect(await held()).toMatchObject({ held: { units: UNITS }, most: UNITS, said: { length: 3 } });
});

test('no two say the same', async () => {
  alter({}, answers('eth_call', word(0n)), answers('eth_call', word(1n)));
  expect(await held()).toMatchObject({ held: null, most: UNITS });
  alter({}, answers('eth_getTransactionCount', '0x1'), answers('eth_getTransactionCount', '0x2'));
  expect(await held()).toMatchObject({ held: null });
  alter({}, {}, answers('eth_call', word(0n)), answers('eth_call', word(0n)));
  expect(await ofFour.heldBy(ADDRESS, block)).toMatchObject({ held: null, most: UNITS });
  alter({}, SILENT, SILENT);
  expect(await held()).toMatchObject({ held: null, most: UNITS });
  alter(SILENT, SILENT, SILENT);
  await expect(held()).rejects.toMatchObject({ name: 'NodeTrouble' });
});

test('one that does not call the block final, or has another one there, does not count', async () => {
  const earlier = await header(`0x${(block.height - 1).toString(16)}`);
  const notYet: Alteration = {
    instead: ({ method, params }) =>
      method === 'eth_getBlockByNumber' && params[0] === 'finalized' ? { result: earlier } : null,
  };
  const other: Alteration = {
    instead: ({ method, params }) =>
      method === 'eth_getBlockByNumber' && params[0] === `0x${block.height.toString(16)}`
        ? { result: { ...earlier, number: `0x${block.height.toString(16)}` } }
        : null,
  };
  alter({}, {}, notYet);
  expect(await held()).toMatchObject({ held: { units: UNITS } });
  alter({}, notYet, notYet);
  const unsure = await held();
  expect(unsure).toMatchObject({ held: null, most: UNITS });
  expect(unsure.said.join()).toContain(`does not call block ${block.height} final`);
  alter({}, other, notYet);
  const apart = await held();
  expect(apart).toMatchObject({ held: null });
  expect(apart.said.join()).toContain(`has another block ${block.height}`);
});
