// Payments by contracts that wait to be mined: seen where the node tries calls, as promises that the block keeps or not, and never at a price that
// strangers set.
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import type { EvmTransaction } from '../../src/outside/evm/answers.ts';
import { createCallTrials } from '../../src/outside/evm/waiting-calls.ts';
import { NodeTrouble, RpcRefusal } from '../../src/outside/utxo/node/trouble.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { FORWARDER } from '../support/evm/compiled.ts';
import { openAlteredNode } from '../support/nodes/altered-node.ts';
import { addressOf, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const ETHER = 10n ** 18n;
const OURS = `0x${'0a'.repeat(20)}`;
const STRANGER = `0x${'57'.repeat(20)}`;

let anvil: Anvil;
let relay: Awaited<ReturnType<typeof openAlteredNode>>;
let chain: WatchedChain | null = null;
beforeAll(async () => {
  anvil = await startAnvil();
  relay = await openAlteredNode(anvil.url);
}, 120_000);
afterAll(async () => {
  relay?.close();
  await anvil?.remove();
});
afterEach(async () => {
  relay.alter({});
  await chain?.close();
  chain = null;
});

async function watched(currency: 'ETH' | 'USDT'): Promise<WatchedChain> {
  chain = await watchChain(currency, relay.url, { contract: currency === 'USDT' ? anvil.token : null });
  await chain.catchUp();
  return chain;
}
const call = (name: string, to: string, value = ETHER) =>
  anvil.send({ to: anvil.forwarder, value, input: callData(FORWARDER, name, to) });
const places = async (owed: Owed) => (await chain?.facts(owed))?.map(({ amount, state, txid }) => ({ amount, state, txid }));

test('ether through a contract is seen while it waits, and is the same payments in its block', async () => {
  const { owe, catchUp } = await watched('ETH');
  const owed = await owe();
  const { hash } = await call('halves(address)', addressOf(owed));
  await catchUp();
  const half = { amount: ETHER / 2n, txid: hash };
  expect(await places(owed)).toEqual([
    { ...half, state: 'mempool' },
    { ...half, state: 'mempool' },
  ]);
  await anvil.mine();
  await catchUp();
  expect(await places(owed)).toEqual([
    { ...half, state: 'mined' },
    { ...half, state: 'mined' },
  ]);
});

test.each(['sendAndRevert(address)', 'sendInReverted(address)'])('%s promises nothing', async (name) => {
  const { owe, catchUp } = await watched('ETH');
  const owed = await owe();
  await call(name, addressOf(owed));
  await catchUp();
  expect(await places(owed)).toEqual([]);
  await anvil.mine();
});

test('tokens through a contract are seen while they wait, and another token’s are not', async () => {
  const { owe, catchUp } = await watched('USDT');
  const owed = await owe();
  await anvil.deal(anvil.forwarder, 10n ** 15n);
  const input = callData(
    FORWARDER,
    'spreadTokens(address,address[],uint256[])',
    anvil.token,
    [addressOf(owed), addressOf(owed)],
    [3n, 4n],
  );
  const { hash } = await anvil.send({ to: anvil.forwarder, input });
  await call('halves(address)', addressOf(owed));
  await catchUp();
  expect(await places(owed)).toEqual([
    { amount: 3n, txid: hash, state: 'mempool' },
    { amount: 4n, txid: hash, state: 'mempool' },
  ]);
  await anvil.mine();
  await catchUp();
  expect((await places(owed))?.map(({ amount, state }) => [amount, state])).toEqual([
    [3n, 'mined'],
    [4n, 'mined'],
  ]);
});

test('two calls of which only one can be paid are both promised, and the block keeps one', async () => {
  const { owe, catchUp } = await watched('ETH');
  const owed = await owe();
  await anvil.send({ to: anvil.forwarder, value: ETHER });
  await anvil.mine();
  const all = BigInt(await anvil.rpc<string>('eth_getBalance', anvil.forwarder, 'latest'));
  const input = callData(FORWARDER, 'spread(address[],uint256[])', [addressOf(owed)], [all]);
  const sent = [await anvil.send({ to: anvil.forwarder, input }), await anvil.send({ to: anvil.forwarder, input })];
  await catchUp();
  expect((await places(owed))?.map(({ amount, state }) => [amount, state])).toEqual(Array(2).fill([all, 'mempool']));
  await anvil.mine();
  await catchUp();
  const status = async (hash: string) => (await anvil.rpc<{ status: string }>('eth_getTransactionReceipt', hash)).status;
  const ended = await Promise.all(sent.map(async ({ hash }) => [hash, await status(hash)] as const));
  expect(ended.map(([, how]) => how).sort()).toEqual(['0x0', '0x1']);
  const expected = ended.map(([txid, how]) => ({ amount: all, txid, state: how === '0x1' ? 'mined' : 'conflicted' }));
  expect(await places(owed)).toEqual(expect.arrayContaining(expected));
  expect(await places(owed)).toHaveLength(2);
});

test('what a call promised and its block does not keep was never paid', async () => {
  const { owe, catchUp } = await watched('ETH');
  const owed = await owe();
  relay.alter({
    afterwards: ({ method }, answer) =>
      method === 'eth_simulateV1'
        ? { result: JSON.parse(JSON.stringify(answer.result).replaceAll('6f05b59d3b20000', '6f05b59d3b20001')) }
        : answer,
  });
  await call('halves(address)', addressOf(owed));
  await catchUp();
  expect((await places(owed))?.map(({ state }) => state)).toEqual(['mempool', 'mempool']);
  await anvil.mine();
  await catchUp();
  const after = (await places(owed)) ?? [];
  expect(after.filter(({ state }) => state === 'mined').map(({ amount }) => amount)).toEqual([ETHER / 2n, ETHER / 2n]);
  expect(after.filter(({ state }) => state !== 'mined').map(({ state }) => state)).toEqual(['conflicted', 'conflicted']);
});

test('a node that tries no calls shows them in their block, and is not asked again soon', async () => {
  const { owe, catchUp } = await watched('ETH');
  const owed = await owe();
  const message = 'the method eth_simulateV1 does not exist/is not available';
  relay.alter({ instead: ({ method }) => (method === 'eth_simulateV1' ? { error: { code: -32601, message } } : null) });
  relay.taken();
  for (let n = 0; n < 2; n++) {
    await call('halves(address)', addressOf(owed));
    await catchUp();
  }
  expect(await places(owed)).toEqual([]);
  expect(relay.taken().filter((method) => method === 'eth_simulateV1')).toHaveLength(1);
  await anvil.mine();
  await catchUp();
  expect(await places(owed)).toHaveLength(4);
});

const waiting = (nonce: number, input: string): EvmTransaction => ({
  ...{ hash: `0x${String(nonce).padStart(64, '0')}`, from: STRANGER, to: STRANGER, value: 0n, nonce, input },
});
const naming = (address: string): string => `0xe0000001${address.slice(2).padStart(64, '0')}`;
const watch = {
  hasScript: (bytes: Uint8Array) => Buffer.from(bytes).toString('hex') === `65766d${OURS.slice(2)}`,
  hasOutpoint: () => false,
};
function trials(answer: (calls: number) => Promise<readonly unknown[]>) {
  const asked: number[] = [];
  let ms = 0;
  const rpc = {
    batch: (calls: readonly unknown[]) => {
      asked.push(calls.length);
      return answer(calls.length);
    },
  };
  const { paying } = createCallTrials(
    rpc,
    ({ code }) => code === -32601,
    () => ms,
  );
  const look = (...inputs: readonly string[]) =>
    paying(
      inputs.map((input, nonce) => waiting(nonce, input)),
      watch,
      null,
    );
  function wait(forMs: number): void {
    ms += forMs;
  }
  return { asked, look, wait };
}

test('only calls that name an address of ours are tried, sixteen at a look', async () => {
  const { asked, look } = trials(async (calls) => Array.from({ length: calls }, () => []));
  expect(await look(naming(STRANGER), '0x', `0xe0000001${'ab'.repeat(32)}`)).toEqual([]);
  expect(asked).toEqual([]);
  await look(...Array.from({ length: 40 }, () => naming(OURS)));
  expect(asked).toEqual([16]);
});

test('an answer that is not what it should be promises nothing', async () => {
  const log = { address: `0x${'ee'.repeat(20)}`, topics: [], data: '0x' };
  const [from, to] = [STRANGER, OURS].map((address) => `0x${address.slice(2).padStart(64, '0')}`);
  const transfer = { ...log, topics: ['0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef', from, to] };
  for (const answer of [
    null,
    7,
    [],
    [{}],
    [{ calls: [{ status: '0x0', logs: [{ ...transfer, data: `0x${'5'.padStart(64, '0')}` }] }] }],
    [{ calls: [{ status: '0x1', logs: [{}] }] }],
    ...['zz'.repeat(32), '', 7].map((data) => [
      { calls: [{ status: '0x1', logs: [{ ...transfer, data: typeof data === 'string' ? `0x${data}` : data }] }] },
    ]),
  ]) {
    const { look } = trials(async () => [answer]);
    expect(await look(naming(OURS))).toEqual([]);
  }
  const { look } = trials(async () => [
    [{ calls: [{ status: '0x1', logs: [{ ...transfer, data: `0x${'5'.padStart(64, '0')}` }] }] }],
  ]);
  expect((await look(naming(OURS))).map(({ outputs }) => outputs.map(({ amountMinor }) => amountMinor))).toEqual([[5n]]);
});

test.each<[string, () => Promise<readonly unknown[]>, number]>([
  ['that is silent', () => new Promise(() => undefined), 60_000],
  ['in trouble', () => Promise.reject(new NodeTrouble('busy', 'too many requests')), 60_000],
  ['that does not know how', async () => [new RpcRefusal('eth_simulateV1', -32601, 'no such method')], 600_000],
  ['of which one part does not know how', async () => [[], new RpcRefusal('eth_simulateV1', -32601, 'no such method')], 600_000],
])('a node %s is left alone for a while, and holds up nothing', async (_what, answer, forMs) => {
  const { asked, look, wait } = trials(answer);
  const began = performance.now();
  expect(await look(naming(OURS))).toEqual([]);
  expect(performance.now() - began).toBeLessThan(5_000);
  wait(forMs - 1);
  expect(await look(naming(OURS))).toEqual([]);
  expect(asked).toHaveLength(1);
  wait(1);
  await look(naming(OURS));
  expect(asked).toHaveLength(2);
});
