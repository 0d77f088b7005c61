// Ether that contracts send, at a node that shows no traces: found by what addresses hold before and after a block, credited once, whatever a
// later reading at another node calls it.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { callData, rawOf } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { type Alteration, openAlteredNode, WITHOUT_TRACES } from '../support/nodes/altered-node.ts';
import {
  anvil,
  call,
  chain,
  ETHER,
  eachAtAnvilWithoutTraces,
  mined,
  openAlteredService,
  readsBalances,
  relay,
  watchAnew,
} from './altered-anvil.ts';
import { type EvmService, openEvmService } from './evm-service.ts';
import { addressOf, type Owed } from './watched-chain.ts';

const TIMEOUT = 300_000;
const LATER_MS = 61_000;
type Relay = Awaited<ReturnType<typeof openAlteredNode>>;
/** Nor what addresses hold: calls without a payee are not for its callers. */
const NOTHING_INSIDE: Alteration = {
  instead: (asked) =>
    readsBalances(asked)
      ? { error: { code: -32602, message: 'missing value for required argument "to"' } }
      : (WITHOUT_TRACES.instead?.(asked) ?? null),
};

describe('a payment by a contract', () => {
  eachAtAnvilWithoutTraces();
  const tip = () => anvil.rpc<{ hash: string }>('eth_getBlockByNumber', 'latest', false);
  const balance = async (owed: Owed): Promise<bigint> =>
    BigInt(await anvil.rpc<string>('eth_getBalance', addressOf(owed), 'latest'));

  test.each(['halves(address)', 'delegated(address)', 'destroy(address)'])('%s is one payment of its block', async (name) => {
    const owed = await chain.owe();
    await call(name, owed);
    await anvil.mine();
    const { hash } = await tip();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid: hash, amount: ETHER, state: 'mined', foundMined: true }]);
    expect((await chain.watcher.pass()).alarms.join()).toContain('is found by what our addresses hold');
  });

  test.each(['sendAndRevert(address)', 'sendInReverted(address)'])('%s is none', async (name) => {
    const owed = await chain.owe();
    await call(name, owed);
    await anvil.mine();
    await chain.catchUp();
    expect([await balance(owed), await chain.facts(owed)]).toEqual([0n, []]);
  });

  test('beside what transactions themselves pay in the same block is only the rest', async () => {
    const [one, two] = [await chain.owe(), await chain.owe()];
    const plain = await anvil.send({ to: addressOf(one), value: 5n });
    await call('halves(address)', one, 7n);
    await call('halves(address)', two, 9n);
    await anvil.mine();
    const { hash } = await tip();
    await chain.catchUp();
    const paid = new Map((await chain.facts(one)).map(({ txid, amount }) => [txid, amount]));
    expect(paid).toEqual(
      new Map([
        [plain.hash, 5n],
        [hash, 7n],
      ]),
    );
    expect(await chain.facts(two)).toMatchObject([{ txid: hash, amount: 9n }]);
  });

  test('is looked for at an address that was there before, and in every block', async () => {
    const owed = await chain.owe();
    for (const wei of [3n, 4n, 5n]) {
      await call('halves(address)', owed, wei);
      await anvil.mine(2);
    }
    await chain.catchUp();
    expect(await mined(owed)).toEqual([3n, 4n, 5n]);
  });

  test('that a reorganisation puts into another block is the same payment', async () => {
    const owed = await chain.owe();
    const sent = await call('halves(address)', owed);
    await anvil.mine(2);
    await chain.catchUp();
    const [before] = await chain.facts(owed);
    await anvil.rpc('anvil_reorg', 2, [[rawOf(sent), 1]]);
    await anvil.mine();
    await chain.catchUp();
    const after = await chain.facts(owed);
    expect(after).toMatchObject([{ amount: ETHER, state: 'mined', gone: false }]);
    expect(after[0]?.txid).not.toBe(before?.txid);
  });

  test('two in one block that a reorganisation puts into two, and back into one, are worth the same', async () => {
    const owed = await chain.owe();
    const worth = async () =>
      (await chain.facts(owed)).flatMap(({ state, amount }) => (state === 'mined' ? [amount] : [])).sort((a, b) => Number(a - b));
    const [first, second] = [rawOf(await call('halves(address)', owed, 4n)), rawOf(await call('halves(address)', owed, 6n))];
    await anvil.mine(2);
    await chain.catchUp();
    expect(await worth()).toEqual([10n]);
    const reorganised = async (depth: number, blocks: readonly (readonly [string, number])[]): Promise<void> => {
      await anvil.rpc('anvil_reorg', depth, blocks);
      await anvil.mine();
      await chain.catchUp();
      expect(await balance(owed)).toBe(10n);
    };
    await reorganised(2, [
      [first, 0],
      [second, 1],
    ]);
    expect(await worth()).toEqual([4n, 6n]);
    await reorganised(3, [
      [first, 1],
      [second, 1],
    ]);
    expect(await worth()).toEqual([10n]);
  });

  test('that a reorganisation takes away is gone', async () => {
    const owed = await chain.owe();
    await call('halves(address)', owed);
    await anvil.mine();
    await chain.catchUp();
    await anvil.rpc('anvil_reorg', 1, []);
    await anvil.rpc('anvil_dropAllTransactions');
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'gone', height: null }]);
  });

  const WRONG: Readonly<Record<string, (answer: string) => string>> = {
    'another block’s number': (answer) =>
      `0x${(BigInt(answer.slice(0, 66)) + 1n).toString(16).padStart(64, '0')}${answer.slice(66)}`,
    'another block before it': (answer) => `${answer.slice(0, 66)}${'ab'.repeat(32)}${answer.slice(130)}`,
    'one balance too few': (answer) => answer.slice(0, -64),
  };
  test.each(Object.entries(WRONG))('is not believed when the answer names %s', async (_what, wrong) => {
    const owed = await chain.owe();
    relay.alter({
      ...WITHOUT_TRACES,
      afterwards: ({ method }, answer) => (method === 'eth_call' ? { result: wrong(answer.result as string) } : answer),
    });
    await call('halves(address)', owed);
    await anvil.send({ to: addressOf(owed), value: 1n });
    await anvil.mine();
    await chain.catchUp();
    expect(await mined(owed)).toEqual([1n]);
    expect((await chain.watcher.pass()).alarms.join()).toContain('ether that contracts send is not seen');
  });

  test('costs one call more a block, and two where addresses are new', async () => {
    await Promise.all(Array.from({ length: 50 }, () => chain.owe()));
    const asked = async (): Promise<number> => {
      await anvil.send({ to: `0x${'57'.repeat(20)}`, value: 1n });
      await anvil.mine();
      relay.taken();
      await chain.catchUp();
      return relay.taken().filter((method) => method === 'eth_call').length;
    };
    expect(await asked()).toBe(2);
    expect(await asked()).toBe(1);
    await chain.owe();
    expect(await asked()).toBe(2);
  });

  test('in a transaction whose calls are too much to be shown is found by what is left, and told where balances are not said', async () => {
    const tooMuch = ({ method }: { readonly method: string }) =>
      method === 'debug_traceTransaction' || method === 'debug_traceBlockByHash'
        ? { result: 'x'.repeat(33 * 1024 * 1024) }
        : null;
    const noCalls = { error: { code: -32601, message: 'the method eth_call does not exist/is not available' } };
    relay.alter({ instead: (asked) => (asked.method === 'eth_call' ? noCalls : tooMuch(asked)) });
    await chain.close();
    await watchAnew();
    const [hidden, owed] = [await chain.owe(), await chain.owe()];
    const unseen = await call('halves(address)', hidden);
    await anvil.mine();
    await chain.catchUp();
    expect(await chain.facts(hidden)).toEqual([]);
    const told = `inside 1 transaction was not seen, the last one ${unseen.hash}`;
    expect((await chain.watcher.pass()).alarms.join()).toContain(told);
    relay.alter({ instead: tooMuch });
    await call('halves(address)', owed);
    await anvil.mine();
    const { hash } = await tip();
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid: hash, amount: ETHER, state: 'mined' }]);
    expect((await chain.watcher.pass()).alarms.join()).toContain(told);
  });
});

describe('the whole service', () => {
  let altered: Awaited<ReturnType<typeof openAlteredService>>;
  let service: EvmService;
  beforeAll(async () => {
    altered = await openAlteredService(WITHOUT_TRACES);
    ({ service } = altered);
  }, TIMEOUT);
  afterAll(() => altered?.close(), TIMEOUT);

  const available = () => service.balance(`merchant:${service.merchantId}:available:ETH`);

  test('credits it once, moves it, and finds nothing wrong at either kind of node', { timeout: TIMEOUT }, async () => {
    const owed = await service.owe('ETH', 300_00n);
    await altered.pay(owed.address, ETHER / 10n);
    await service.mine(70);
    expect([await service.status(owed.id), await available()]).toEqual(['succeeded', ETHER / 10n]);
    expect(await service.findings()).toEqual([]);
    for (let turn = 0; turn < 4; turn++) {
      await service.work(LATER_MS);
      await service.mine();
    }
    expect(await service.ether(owed.address)).toBe(0n);
    await service.mine(65);
    expect(await service.findings()).toEqual([]);
    altered.alter({});
    const next = await service.owe('ETH', 300_00n);
    await altered.pay(next.address, ETHER / 10n);
    await service.mine(70);
    expect([await service.status(next.id), await available()]).toEqual(['succeeded', ETHER / 5n]);
    expect(await service.findings()).toEqual([]);
  });
});

describe.each([
  ['without traces, then at one with them', WITHOUT_TRACES, {}],
  ['with traces, then at one without', {}, WITHOUT_TRACES],
  ['without traces, then at one that shows nothing of the block', WITHOUT_TRACES, NOTHING_INSIDE],
  ['with traces, then at one that shows nothing of the block', {}, NOTHING_INSIDE],
] as const)('read at a node %s', (_what, first, second) => {
  let service: EvmService;
  const relays: Relay[] = [];
  const relayed = async (url: string, how: Alteration): Promise<string> => {
    const relay = await openAlteredNode(url);
    relay.alter(how);
    relays.push(relay);
    return relay.url;
  };
  beforeAll(async () => {
    service = await openEvmService({ through: (url) => relayed(url, first) });
  }, TIMEOUT);
  afterAll(async () => {
    await service?.close();
    for (const relay of relays) relay.close();
  }, TIMEOUT);

  test('a payment is credited once, and the second reading and a rescan agree', { timeout: TIMEOUT }, async () => {
    const { anvil, ctx } = service;
    const owed = await service.owe('ETH', 300_00n);
    const height = Number(await anvil.rpc<string>('eth_blockNumber'));
    const input = callData(FORWARDER, 'halves(address)', owed.address);
    await anvil.send({ to: anvil.forwarder, value: ETHER / 10n, input });
    await service.mine(70);
    const urls = [await relayed(anvil.url, second)];
    const nodes = createChainNodes({
      ...{ network: 'regtest', clock: ctx.ports.clock, tokenContract: anvil.token },
      urls: new Map([['ETH', urls]]),
    });
    const other = { ...ctx, ports: { ...ctx.ports, chains: nodes.chains } };
    while ((await reconcile(other, 'ETH')).more);
    const again = await rescan(other, 'ETH', { fromHeight: height });
    expect(again.found).toEqual([]);
    expect(again.unseen > 0).toBe(second === NOTHING_INSIDE);
    await service.mine();
    await nodes.close();
    expect(await service.status(owed.id)).toBe('succeeded');
    expect(await service.balance(`merchant:${service.merchantId}:available:ETH`)).toBe(ETHER / 10n);
    expect(await service.findings()).toEqual([]);
  });
});
