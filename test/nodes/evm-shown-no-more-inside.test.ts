// Ether that contracts sent, in a block that is read again after nodes have thrown away what shows it: who cannot see it says nothing against it.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, openAlteredNode, receipts, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { readsBalances } from './altered-anvil.ts';
import { type Watching, watchBySeveral } from './several-nodes.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
const INSIDE = 8n;
const DIRECTLY = 5n;
let anvil: Anvil;
let nodes: Awaited<ReturnType<typeof openAlteredNode>>[];
let chain: WatchedChain;
let watching: Watching | undefined;

beforeAll(async () => {
  anvil = await startAnvil();
}, TIMEOUT);
afterAll(() => anvil?.remove());
beforeEach(async () => {
  nodes = [await openAlteredNode(anvil.url), await openAlteredNode(anvil.url)];
  chain = await watchChain('ETH', anvil.url);
}, TIMEOUT);
afterEach(async () => {
  await watching?.stop();
  await chain.close();
  for (const node of nodes) node.close();
}, TIMEOUT);

const clock = { now: () => Date.now(), steady: () => performance.now() };
/** A process that starts with so many of the nodes, and remembers nothing of what they have shown. */
async function startsWith(count: number): Promise<Watching> {
  await watching?.stop();
  const urls = nodes.slice(0, count).map(({ url }) => url);
  watching = watchBySeveral(chain, urls, { clock, patienceMs: 2_000 });
  return watching;
}
/** A block has one payment by a contract and one by a transaction itself. @returns its height, and the transaction of the second */
async function paid(count: number, owed: Owed): Promise<{ readonly height: number; readonly hash: string }> {
  const { watcher } = await startsWith(count);
  while (!(await watcher.pass()).caughtUp);
  const input = callData(FORWARDER, 'halves(address)', addressOf(owed));
  await anvil.send({ to: anvil.forwarder, value: INSIDE, input });
  const { hash } = await anvil.send({ to: addressOf(owed), value: DIRECTLY });
  await anvil.mine();
  const height = Number(await anvil.rpc<string>('eth_blockNumber'));
  await anvil.mine(5);
  while (!(await watcher.pass()).caughtUp);
  expect(await there(owed)).toEqual([DIRECTLY, INSIDE]);
  return { height, hash };
}
const there = async (owed: Owed): Promise<readonly bigint[]> => {
  const mined = (await chain.facts(owed)).filter(({ state }) => state === 'mined');
  const inside = mined.filter(({ vout }) => vout > 0).reduce((all, { amount }) => all + amount, 0n);
  return [...mined.filter(({ vout }) => vout === 0).map(({ amount }) => amount), inside];
};

/** Old states are thrown away, and calls were never shown. */
const SEES_NOTHING_INSIDE: Alteration = {
  instead: (asked) =>
    readsBalances(asked)
      ? { error: { code: -32602, message: 'missing value for required argument "to"' } }
      : (WITHOUT_TRACES.instead?.(asked) ?? null),
};
type Traced = { readonly result: Record<string, unknown> };
const HIDES_CALLS: Alteration = {
  afterwards({ method }, answer) {
    if (!method.startsWith('debug_trace')) return answer;
    return {
      ...answer,
      result: (answer.result as readonly Traced[]).map((one) => ({ ...one, result: { ...one.result, calls: [] } })),
    };
  },
};

test('of two nodes one says that it was not sent, and the other cannot say: it stays', { timeout: TIMEOUT }, async () => {
  const owed = await chain.owe();
  const { height } = await paid(2, owed);
  nodes[0]?.alter(HIDES_CALLS);
  nodes[1]?.alter(SEES_NOTHING_INSIDE);
  const { takenBack, doubted } = await rescan((await startsWith(2)).ctx, 'ETH', { fromHeight: height });
  expect([await there(owed), takenBack]).toEqual([[DIRECTLY, INSIDE], []]);
  expect(doubted.reduce((all, { amount }) => all + amount, 0n)).toBe(INSIDE);
});

test('what a transaction has paid to the same address is shown no more: it stays', { timeout: TIMEOUT }, async () => {
  const owed = await chain.owe();
  const { height, hash } = await paid(1, owed);
  nodes[0]?.alter({
    ...SEES_NOTHING_INSIDE,
    ...receipts((one) => (one.transactionHash === hash ? { ...one, status: '0x0' } : one)),
  });
  const { takenBack, doubted } = await rescan((await startsWith(1)).ctx, 'ETH', { fromHeight: height });
  expect([await there(owed), takenBack]).toEqual([[DIRECTLY, INSIDE], []]);
  expect(doubted).toMatchObject([{ amount: DIRECTLY, reason: expect.stringContaining('neither calls nor balances') }]);
});

test('that two nodes can see, and do not show, is taken back', { timeout: TIMEOUT }, async () => {
  const owed = await chain.owe();
  const { height } = await paid(2, owed);
  for (const node of nodes) node.alter(HIDES_CALLS);
  const { takenBack, doubted } = await rescan((await startsWith(2)).ctx, 'ETH', { fromHeight: height });
  expect([await there(owed), doubted]).toEqual([[DIRECTLY, 0n], []]);
  expect(takenBack.reduce((all, { amount }) => all + amount, 0n)).toBe(INSIDE);
});
