// Blocks that pay us by one node's word are asked about wherever they lie: far below the tip, and below the first block that we have read.
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CurrencyCode } from '../../src/core/currency.ts';
import { unconfirmedHeights } from '../../src/store/chain/unconfirmed-blocks.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import type { ChainWatcher } from '../../src/worker/chain/watcher.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import { watchBySeveral } from './several-nodes.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
const ETH: CurrencyCode = 'ETH';
const LATER_MS = 61_000;
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
let anvil: Anvil;
let read: Awaited<ReturnType<typeof openAlteredNode>>;
let other: typeof read;
let chain: WatchedChain;
let ctx: ChainContext;
let watcher: ChainWatcher;
let stopped: () => Promise<void>;
let end: () => Promise<void>;
let skew = 0;

beforeAll(async () => {
  anvil = await startAnvil();
}, TIMEOUT);
afterAll(async () => {
  await anvil?.remove();
});
beforeEach(() => opened(2_000), TIMEOUT);
async function opened(patienceMs: number): Promise<void> {
  [read, other] = [await openAlteredNode(anvil.url), await openAlteredNode(anvil.url)];
  chain = await watchChain('ETH', anvil.url);
  started(patienceMs);
}
/** A worker that starts, and has both nodes. */
function started(patienceMs = 2_000): void {
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() + skew };
  const watching = watchBySeveral(chain, [read.url, other.url], { clock, patienceMs });
  ({ ctx, watcher, stop: stopped } = watching);
  end = async () => {
    await stopped();
    await chain.close();
    read.close();
    other.close();
  };
}
afterEach(async () => end(), TIMEOUT);

async function caughtUp(laterMs = 0): Promise<void> {
  skew += laterMs;
  for (let result = await watcher.pass(); !result.caughtUp; ) result = await watcher.pass();
}
async function unconfirmed(): Promise<readonly { readonly denied: boolean; readonly reason: string }[]> {
  const { rows } = await chain.db.query<{ denied: boolean; reason: string }>({
    text: 'select denied, reason from unconfirmed_blocks order by height, denied',
  });
  return rows;
}
/** How many heights there are of which the judge books nothing large. */
async function heightsByOneWord(): Promise<number> {
  const { rows } = await chain.db.query({ text: `select * from ${unconfirmedHeights(`'ETH'`)} u` });
  return rows.length;
}
const amounts = async (owed: Owed): Promise<readonly bigint[]> =>
  (await chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ amount }) => amount);
/** A node that changes what it shows of the transactions of blocks. */
const inBlocks = (change: (one: Json) => Json): Alteration => ({
  afterwards({ method }, answer) {
    const { result } = answer as { result?: { transactions?: readonly Json[] } };
    if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
    return { ...answer, result: { ...result, transactions: result.transactions.map(change) } };
  },
});
/** A node that shows what a stranger gets as a payment. */
const withEther = (address: string): Alteration =>
  inBlocks((one) => (one.to === STRANGER ? { ...one, to: address, value: '0x63' } : one));
const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};

test('what is denied of a block far below the tip is taken back, and nothing else is read again', {
  timeout: TIMEOUT,
}, async () => {
  await caughtUp();
  const [first, second] = [await chain.owe(), await chain.owe()];
  other.alter(SAYS_NOTHING);
  read.alter(withEther(addressOf(first)));
  await anvil.send({ to: STRANGER, value: 1n });
  await anvil.send({ to: addressOf(second), value: 7n });
  await anvil.mine();
  await caughtUp();
  await anvil.mine(150);
  await caughtUp();
  expect([await amounts(first), await amounts(second)]).toEqual([[0x63n], [7n]]);
  const later = await chain.owe();
  await anvil.send({ to: addressOf(later), value: 9n });
  await anvil.mine();
  await caughtUp();
  const version = async (): Promise<unknown> =>
    (await chain.db.query({ text: 'select xmin::text from payments where transaction_id = $1', values: [later.id] })).rows;
  const before = await version();
  other.alter({});
  read.taken();
  await caughtUp(LATER_MS);
  expect(read.taken().filter((method) => method === 'eth_getBlockByHash').length).toBeLessThan(10);
  expect([await amounts(first), await amounts(second), await amounts(later)]).toEqual([[], [7n], [9n]]);
  expect(await version()).toEqual(before);
  expect(await unconfirmed()).toMatchObject([{ denied: true, reason: expect.stringContaining('shows in block') }]);
  expect(await chain.takeDue(first)).toBe(true);
  // both show it in the end: it is seen when it was shown first
  other.alter(withEther(addressOf(first)));
  await caughtUp(LATER_MS);
  expect([await amounts(first), await unconfirmed()]).toEqual([[0x63n], []]);
});

/** A node that shows two equal payments with their payees swapped. */
const swapped = (address: string): Alteration =>
  inBlocks((one) => (one.to === STRANGER ? { ...one, to: address } : one.to === address ? { ...one, to: STRANGER } : one));

test('what was made up in the place of another payment is not counted beside it', { timeout: TIMEOUT }, async () => {
  await caughtUp();
  const owed = await chain.owe();
  other.alter(SAYS_NOTHING);
  read.alter(swapped(addressOf(owed)));
  await anvil.send({ to: STRANGER, value: 7n });
  await anvil.send({ to: addressOf(owed), value: 7n });
  await anvil.mine();
  await caughtUp();
  expect([await amounts(owed), await heightsByOneWord()]).toEqual([[7n], 1]);
  await anvil.mine(20);
  await caughtUp();
  for (const node of [read, other]) node.alter({});
  await caughtUp(LATER_MS);
  await caughtUp(LATER_MS);
  expect([await amounts(owed), await unconfirmed()]).toEqual([[7n], []]);
});

test('what a contract sent keeps its name where something else of its block is not shown any more', {
  timeout: TIMEOUT,
}, async () => {
  await caughtUp();
  const [first, second] = [await chain.owe(), await chain.owe()];
  other.alter(SAYS_NOTHING);
  read.alter(withEther(addressOf(first)));
  await anvil.send({ to: STRANGER, value: 1n });
  await anvil.send({ to: anvil.forwarder, value: 8n, input: callData(FORWARDER, 'halves(address)', addressOf(second)) });
  await anvil.mine();
  await caughtUp();
  const before = await chain.facts(second);
  expect([await amounts(first), before.map(({ amount }) => amount)]).toEqual([[0x63n], [4n, 4n]]);
  await stopped();
  // another node is read, which shows no calls, but what the address holds
  read.alter(WITHOUT_TRACES);
  other.alter({});
  started();
  await caughtUp(LATER_MS);
  expect([await amounts(first), await chain.facts(second), await unconfirmed()]).toEqual([[], before, []]);
});

test('what a node makes up at a payer’s nonce takes no payment out of its block', { timeout: TIMEOUT }, async () => {
  await caughtUp();
  const owed = await chain.owe();
  const { hash } = await anvil.send({ to: addressOf(owed), value: 7n });
  await anvil.mine();
  await caughtUp();
  const payer = await anvil.rpc<Json>('eth_getTransactionByHash', hash);
  read.alter(inBlocks((one) => (one.to === STRANGER ? { ...one, from: payer.from, nonce: payer.nonce } : one)));
  await anvil.send({ to: STRANGER, value: 1n });
  await anvil.mine(3);
  await caughtUp();
  expect(await amounts(owed)).toEqual([7n]);
});

test('a node that answers of each block too late is heard all the same', { timeout: TIMEOUT }, async () => {
  const BLOCKS = 40;
  await end();
  await opened(100);
  await caughtUp();
  const owed = await chain.owe();
  other.alter({ before: ({ method }) => (method === 'eth_getBlockByHash' ? delay(300) : undefined) });
  for (let n = 0; n < BLOCKS; n++) {
    await anvil.send({ to: addressOf(owed), value: BigInt(n + 1) });
    await anvil.mine();
  }
  await caughtUp();
  expect((await unconfirmed()).length).toBeGreaterThan(35);
  for (let look = 0; look < 5 * BLOCKS && (await unconfirmed()).length > 0; look++) await caughtUp(LATER_MS);
  expect([(await amounts(owed)).length, await unconfirmed()]).toEqual([BLOCKS, []]);
});

test.each(['confirmed', 'denied'])(
  'what a rescan finds below our first block by one word is asked about too: %s',
  {
    timeout: TIMEOUT,
  },
  async (how) => {
    const owed = await chain.owe();
    const fromHeight = Number(await anvil.rpc<string>('eth_blockNumber'));
    if (how === 'denied') read.alter(withEther(addressOf(owed)));
    await anvil.send({ to: how === 'denied' ? STRANGER : addressOf(owed), value: 0x63n });
    await anvil.mine(10);
    await caughtUp();
    other.alter(SAYS_NOTHING);
    await rescan(ctx, ETH, { fromHeight });
    await caughtUp(LATER_MS);
    expect([await amounts(owed), (await unconfirmed()).map(({ denied }) => denied), await heightsByOneWord()]).toEqual([
      [0x63n],
      [false],
      1,
    ]);
    other.alter({});
    await chain.takeDue(owed);
    await caughtUp(LATER_MS);
    const isDenied = how === 'denied';
    expect([await amounts(owed), (await unconfirmed()).map(({ denied }) => denied), await heightsByOneWord()]).toEqual([
      isDenied ? [] : [0x63n],
      isDenied ? [true] : [],
      0,
    ]);
    expect(await chain.takeDue(owed)).toBe(true);
  },
);
