// A second node on Ethereum's chain that answers too late, and what is taken back of a block because of what one denies.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { takeBackAt } from '../../src/store/chain/sightings.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import type { ChainWatcher } from '../../src/worker/chain/watcher.ts';
import { type Anvil, startAnvil } from '../support/evm/anvil.ts';
import { type Alteration, openAlteredNode } from '../support/nodes/altered-node.ts';
import { watchBySeveral } from './several-nodes.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
const ETH: CurrencyCode = 'ETH';
const LATER_MS = 61_000;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
let anvil: Anvil;
let other: Awaited<ReturnType<typeof openAlteredNode>>;
let chain: WatchedChain;
let ctx: ChainContext;
let watcher: ChainWatcher;
let end: () => Promise<void>;
let skew = 0;

beforeAll(async () => {
  anvil = await startAnvil();
}, TIMEOUT);
afterAll(() => anvil?.remove());
afterEach(() => end(), TIMEOUT);

/** Ether watched by anvil itself and a second node, for whose answers we wait so long. */
async function watched(patienceMs: number): Promise<void> {
  other = await openAlteredNode(anvil.url);
  chain = await watchChain('ETH', anvil.url);
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() + skew };
  const watching = watchBySeveral(chain, [anvil.url, other.url], { clock, patienceMs });
  ({ ctx, watcher } = watching);
  end = async () => {
    await watching.stop();
    await chain.close();
    other.close();
  };
  await caughtUp();
}
async function caughtUp(laterMs = 0): Promise<void> {
  skew += laterMs;
  for (let result = await watcher.pass(); !result.caughtUp; ) result = await watcher.pass();
}
async function unconfirmed(): Promise<readonly { readonly denied: boolean }[]> {
  const { rows } = await chain.db.query<{ denied: boolean }>({
    text: 'select denied from unconfirmed_blocks order by height, denied',
  });
  return rows;
}
const amounts = async (owed: Owed): Promise<readonly bigint[]> =>
  (await chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ amount }) => amount);

test('what is taken back is what one block pays to the addresses that this is about', { timeout: TIMEOUT }, async () => {
  await watched(2_000);
  const [first, second] = [await chain.owe(), await chain.owe()];
  await anvil.send({ to: addressOf(first), value: 5n });
  await anvil.mine();
  await anvil.send({ to: addressOf(first), value: 6n });
  await anvil.send({ to: addressOf(second), value: 7n });
  await anvil.mine();
  await caughtUp();
  const { height, hash } = (await chain.cursor())!;
  for (const owed of [first, second]) await chain.takeDue(owed);
  const takeBack = (at: { height: number; hash: string; scripts: readonly Buffer[] }): Promise<void> =>
    chain.db.transaction((sql) => takeBackAt(sql, ETH, { ...at, atMs: Date.now() + skew }));
  await takeBack({ height, hash: `0x${'ab'.repeat(32)}`, scripts: [first.script] });
  await takeBack({ height: height - 1, hash, scripts: [first.script] });
  expect(new Set(await amounts(first))).toEqual(new Set([5n, 6n]));
  await takeBack({ height, hash, scripts: [first.script] });
  expect([await amounts(first), await amounts(second)]).toEqual([[5n], [7n]]);
  expect([await chain.takeDue(first), await chain.takeDue(second)]).toEqual([true, false]);
});

test('what a node has answered too late counts once: it is asked again', { timeout: TIMEOUT }, async () => {
  await watched(100);
  const owed = await chain.owe();
  let answered: () => void = () => undefined;
  const late = new Promise<void>((resolve) => {
    answered = resolve;
  });
  const hidden: Alteration = {
    before: ({ method }) => (method === 'eth_getBlockByHash' ? late : undefined),
    afterwards: ({ method }, answer) =>
      method === 'eth_getBlockByHash' ? { ...answer, result: { ...(answer.result as Json), transactions: [] } } : answer,
  };
  other.alter(hidden);
  await anvil.send({ to: addressOf(owed), value: 7n });
  await anvil.mine();
  await caughtUp();
  expect([await amounts(owed), (await unconfirmed()).map(({ denied }) => denied)]).toEqual([[7n], [false]]);
  answered();
  for (let look = 0; look < 20 && (await amounts(owed)).length > 0; look++) await caughtUp(LATER_MS);
  expect([await amounts(owed), (await unconfirmed()).map(({ denied }) => denied)]).toEqual([[], [true]]);
  other.alter({});
  // on a busy machine it is late once more
  for (let look = 0; look < 20 && (await unconfirmed()).length > 0; look++) await caughtUp(LATER_MS);
  expect([await amounts(owed), await unconfirmed()]).toEqual([[7n], []]);
});

test('how many transactions end is asked of a node that hangs once a minute, not once each', { timeout: TIMEOUT }, async () => {
  const PATIENCE_MS = 8_000;
  await watched(PATIENCE_MS);
  const { hash } = await anvil.send({ to: STRANGER, value: 1n });
  await anvil.mine();
  const port = ctx.ports.chains.get(ETH) as EvmPort;
  let answer: () => void = () => undefined;
  const hangs = new Promise<void>((resolve) => {
    answer = resolve;
  });
  other.alter({ before: ({ method }) => (method.startsWith('eth_getTransaction') ? hangs : undefined) });
  const asked = async (): Promise<{ readonly ms: number; readonly said: readonly string[] }> => {
    const began = performance.now();
    const { said } = await port.ended(hash);
    return { ms: performance.now() - began, said };
  };
  expect((await asked()).ms).toBeGreaterThan(PATIENCE_MS * 0.9);
  for (let n = 0; n < 2; n++) {
    const { ms, said } = await asked();
    expect(ms).toBeLessThan(PATIENCE_MS / 2);
    expect(said).toEqual([expect.stringContaining('while it rests'), expect.stringContaining('shows it paid')]);
  }
  skew += LATER_MS;
  expect((await asked()).ms).toBeGreaterThan(PATIENCE_MS * 0.9);
  answer();
  other.alter({});
  // whoever rests and answers is heard
  expect((await port.ended(hash)).ended).not.toBeNull();
});
