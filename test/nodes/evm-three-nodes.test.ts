// Three nodes on Ethereum's chain: two that say the same are enough, whichever of them is read, and one that hangs holds up nothing.
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { EvmPort } from '../../src/core/evm/port.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import type { ChainContext } from '../../src/worker/chain/context.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { deepScan } from '../../src/worker/rescan/rescan.ts';
import { type Anvil, startAnvil } from '../support/evm/anvil.ts';
import { type Alteration, openAlteredNode } from '../support/nodes/altered-node.ts';
import { addressOf, type WatchedChain, watchChain } from './watched-chain.ts';

const TIMEOUT = 120_000;
const ETH: CurrencyCode = 'ETH';
const STRANGER = `0x${'5e'.repeat(20)}`;
type Json = Record<string, unknown>;
type Relay = Awaited<ReturnType<typeof openAlteredNode>>;
let anvil: Anvil;
let relays: readonly Relay[];
let chain: WatchedChain;
let ctx: ChainContext;
let watcher: ChainWatcher;
let end: () => Promise<void>;
let skew = 0;

beforeAll(async () => {
  anvil = await startAnvil();
}, TIMEOUT);
afterAll(async () => {
  await anvil?.remove();
});
beforeEach(async () => {
  relays = [await openAlteredNode(anvil.url), await openAlteredNode(anvil.url), await openAlteredNode(anvil.url)];
  chain = await watchChain('ETH', anvil.url);
  const clock = { now: () => Date.now() + skew, steady: () => performance.now() + skew };
  const urls = new Map([[ETH, relays.map(({ url }) => url)]]);
  const nodes = createChainNodes({ network: 'regtest', clock, urls, tokenContract: anvil.token });
  ctx = { ...chain.ctx, ports: { clock, chains: nodes.chains } };
  watcher = createChainWatcher(ctx, ETH, { scripts: createWatchedScripts(ctx) });
  end = async () => {
    await watcher.close();
    await nodes.close();
    await chain.close();
    for (const relay of relays) relay.close();
  };
  await caughtUp();
}, TIMEOUT);
afterEach(async () => end(), TIMEOUT);

async function caughtUp(): Promise<void> {
  for (let result = await watcher.pass(); !result.caughtUp; ) result = await watcher.pass();
}
async function unconfirmed(): Promise<readonly { readonly denied: boolean; readonly reason: string }[]> {
  const { rows } = await chain.db.query<{ denied: boolean; reason: string }>({
    text: 'select denied, reason from unconfirmed_blocks order by height, denied',
  });
  return rows;
}
const nameOf = (nth: number): string => new URL((relays[nth] as Relay).url).host;
const altered = (nths: readonly number[], alteration: Alteration): void => {
  for (const nth of nths) relays[nth]?.alter(alteration);
};
const ofTransactions = (change: (one: Json) => Json): Alteration => ({
  afterwards({ method }, answer) {
    const { result } = answer as { result?: { transactions?: readonly Json[] } };
    if (!method.startsWith('eth_getBlockBy') || result?.transactions === undefined) return answer;
    return { ...answer, result: { ...result, transactions: result.transactions.map(change) } };
  },
});
/** Nodes that show another payee. */
const withoutEther = (address: string): Alteration =>
  ofTransactions((one) => (one.to === address ? { ...one, to: STRANGER } : one));
/** Nodes that show what a stranger gets as a payment. */
const withEther = (address: string, stranger: string): Alteration =>
  ofTransactions((one) => (one.to === stranger ? { ...one, to: address, value: '0x63' } : one));
const SAYS_NOTHING: Alteration = {
  instead: ({ method }) =>
    /ByHash$|Receipts?$|^debug_|^trace_/.test(method) ? { error: { code: -32005, message: 'limit exceeded' } } : null,
};

test.each([
  { who: 'one that is not read shows nothing', none: [1], silent: [] },
  { who: 'one that is not read says nothing', none: [], silent: [2] },
])('two of three nodes are enough: $who', { timeout: TIMEOUT }, async ({ none, silent }) => {
  const owed = await chain.owe();
  altered(none, withoutEther(addressOf(owed)));
  altered(silent, SAYS_NOTHING);
  await anvil.send({ to: addressOf(owed), value: 7n });
  await anvil.mine();
  await caughtUp();
  await deepScan(ctx, ETH);
  expect(await chain.facts(owed)).toMatchObject([{ amount: 7n, state: 'mined' }]);
  expect(await unconfirmed()).toEqual([]);
});

test('what one of three shows, read or not, is recorded by none', { timeout: TIMEOUT }, async () => {
  const [first, second] = [await chain.owe(), await chain.owe()];
  for (const [nth, owed, stranger] of [
    [0, first, STRANGER],
    [2, second, `0x${'57'.repeat(20)}`],
  ] as const) {
    altered([nth], withEther(addressOf(owed), stranger));
    await anvil.send({ to: stranger, value: 1n });
    await anvil.mine();
    await caughtUp();
  }
  await deepScan(ctx, ETH);
  expect([await chain.facts(first), await chain.facts(second)]).toEqual([[], []]);
  expect(await unconfirmed()).toMatchObject([
    { denied: true, reason: expect.stringContaining(`${nameOf(0)} shows in block`) },
    { denied: true, reason: expect.stringMatching(`${nameOf(2)} shows in block .* what ${nameOf(0)} does not`) },
  ]);
});

test('what the node that is read hides and two others show is recorded, because another one is read', {
  timeout: TIMEOUT,
}, async () => {
  const owed = await chain.owe();
  altered([0], withoutEther(addressOf(owed)));
  await anvil.send({ to: addressOf(owed), value: 9n });
  await anvil.mine();
  await caughtUp();
  await deepScan(ctx, ETH);
  expect([await chain.facts(owed), (await unconfirmed()).length]).toEqual([[], 1]);
  const { alarms } = await watcher.pass();
  expect(alarms.join()).toContain(`failed: ${nameOf(0)} does not show in block 0x`);
  skew += 61_000;
  await caughtUp();
  await caughtUp();
  expect(await chain.facts(owed)).toMatchObject([{ amount: 9n, state: 'mined' }]);
  expect(await unconfirmed()).toEqual([]);
});

test('what the node that is read lacks is told beside what is wrong with another one', { timeout: TIMEOUT }, async () => {
  altered([0], {
    instead: ({ params }) => (params[0] === 'finalized' ? { error: { code: -32000, message: 'internal' } } : null),
  });
  altered([1], { instead: ({ method }) => (method === 'eth_chainId' ? { result: '0x1' } : null) });
  await anvil.send({ to: STRANGER, value: 1n });
  await anvil.mine();
  await caughtUp();
  const { alarms } = await watcher.pass();
  expect(alarms).toEqual([
    expect.stringContaining(`${nameOf(0)}: it does not say which block is final (eth_getBlockByNumber: internal`),
    expect.stringContaining(`${nameOf(1)}: its chain id is 1`),
  ]);
});

test('nodes that hang are asked about few blocks of a long catch-up, and about the others when they answer again', {
  timeout: TIMEOUT,
}, async () => {
  const BLOCKS = 60;
  const owed = await chain.owe();
  let answer: () => void = () => undefined;
  const answered = new Promise<void>((resolve) => {
    answer = resolve;
  });
  const hanging: Alteration = { before: ({ method }) => (/ByHash$|^debug_/.test(method) ? answered : undefined) };
  altered([1, 2], hanging);
  for (let n = 0; n < BLOCKS; n++) {
    await anvil.send({ to: addressOf(owed), value: BigInt(n + 1) });
    await anvil.mine();
  }
  relays[1]?.taken();
  await caughtUp();
  expect(await chain.facts(owed)).toHaveLength(BLOCKS);
  const asked = (relays[1] as Relay).taken().filter((method) => /ByHash$|^debug_/.test(method));
  expect(asked.length).toBeLessThan(10);
  // nobody waits for them: a deep scan stops at once
  expect(await deepScan(ctx, ETH)).toBe(0);
  expect(await unconfirmed()).toHaveLength(BLOCKS);
  // one that hangs for ever is asked about others now and then
  for (let look = 0; look < 4; look++) {
    skew += 61_000;
    await caughtUp();
  }
  const { alarms } = await watcher.pass();
  expect(relays[1]?.taken().filter((method) => method.endsWith('ByHash'))).not.toEqual([]);
  expect(alarms.filter((what) => what.startsWith('unconfirmed'))).toEqual([
    expect.stringMatching(/^unconfirmed: what block \d+ and later ones pay is one node's word/),
  ]);
  altered([1, 2], {});
  answer();
  for (let look = 0; look < 2 * BLOCKS && (await unconfirmed()).length > 0; look++) {
    skew += 61_000;
    await caughtUp();
  }
  expect(await unconfirmed()).toEqual([]);
  expect(await chain.facts(owed)).toHaveLength(BLOCKS);
});

test.each(['says less', 'cannot say', 'is away'])(
  'what addresses hold is what the nodes know of: one of them %s',
  {
    timeout: TIMEOUT,
  },
  async (what) => {
    const owed = await chain.owe();
    await anvil.send({ to: addressOf(owed), value: 11n });
    await anvil.mine();
    await caughtUp();
    const { number, hash } = await anvil.rpc<{ number: string; hash: string }>('eth_getBlockByNumber', 'latest', false);
    const isBalances = ({ method, params }: { readonly method: string; readonly params: readonly unknown[] }): boolean =>
      method === 'eth_call' && (params[0] as { readonly to?: string }).to === undefined;
    const held = async () => {
      const said = await (ctx.ports.chains.get(ETH) as EvmPort).etherOf([addressOf(owed)], { height: Number(number), hash });
      return said === null ? null : said.map(({ most }) => most);
    };
    const less: Alteration = {
      afterwards: (call, answer) =>
        isBalances(call) ? { result: `${String(answer.result).slice(0, -64)}${'0'.repeat(64)}` } : answer,
    };
    const cannot: Alteration = {
      instead: (call) => (isBalances(call) ? { error: { code: -32601, message: 'the method does not exist' } } : null),
    };
    const away: Alteration = { instead: () => ({ error: { code: -32005, message: 'limit exceeded' } }) };
    if (what === 'is away') {
      altered([1], away);
      expect(await held()).toEqual([11n]);
      return;
    }
    altered([0], what === 'says less' ? less : cannot);
    expect(await held()).toEqual([11n]);
    altered([0, 1, 2], what === 'says less' ? less : cannot);
    expect(await held()).toEqual(what === 'says less' ? [0n] : null);
  },
);
