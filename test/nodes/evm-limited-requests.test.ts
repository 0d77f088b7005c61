// Providers that take only a few calls in one request, or none together, and those that know a block's receipts by its number only: each says so in
// words of its own, and its chain is read all the same.
import { describe, expect, test, vi } from 'vitest';
import { createRpc } from '../../src/outside/utxo/node/rpc.ts';
import { type Answer, type Call, type Tamper, withTamperedEvm } from './tampered-evm.ts';
import { addressOf } from './watched-chain.ts';

const evm = withTamperedEvm();
const refusal = (code: number, message: string): Answer => ({ error: { code, message } });

const NO_MORE_THAN_3 = refusal(
  31,
  'Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account',
);
const NONE = refusal(-32600, 'batch requests are not supported');
/** As geth says it (--rpc.batch-request-limit): a list with one refusal, in the place of the first call. */
const AS_GETH = [{ id: 0, ...refusal(-32600, 'batch too large') }];
/** As others do: for each call. */
const FOR_EACH = [0, 1, 2, 3, 4].map((id) => ({ id, ...NO_MORE_THAN_3 }));
const WITHOUT_BLOCK_RECEIPTS: Tamper = ({ method }, answer) =>
  method === 'eth_getBlockReceipts' ? refusal(-32601, 'the method eth_getBlockReceipts does not exist/is not available') : answer;

describe.each(['ETH', 'USDT'] as const)('%s', (currency) => {
  test.each([
    ['at most three', 3, NO_MORE_THAN_3],
    ['none', 0, NONE],
    ['at most three, as geth says it', 3, AS_GETH],
    ['at most three, as is said for each', 3, FOR_EACH],
  ] as const)('is read at a provider that takes %s in one request, also receipts one by one', async (_what, most, refused) => {
    evm.whole = (calls: readonly Call[]) =>
      calls.length <= most ? null : 'length' in refused ? refused.slice(0, calls.length) : refused;
    evm.tamper = WITHOUT_BLOCK_RECEIPTS;
    const owed = await evm.watch(currency);
    const txids = [1n, 2n, 3n, 4n, 5n, 6n, 7n].map((minor) => evm.pay(currency, owed, minor));
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect((await evm.chain.facts(owed)).map(({ txid, state }) => ({ txid, state }))).toEqual(
      expect.arrayContaining(txids.map((txid) => ({ txid, state: 'mined' }))),
    );
  });

  test('is not read, and nothing is asked for ever, at one that refuses a single call with such words', async () => {
    const owed = await evm.watch(currency);
    evm.pay(currency, owed);
    evm.honest.mine(1);
    evm.whole = () => NONE;
    evm.tamper = ({ method }, answer) => (method === 'eth_chainId' ? NONE : answer);
    expect(await evm.chain.watcher.pass()).toMatchObject({
      state: 'bad_answer',
      reason: expect.stringContaining('not supported'),
    });
    expect(await evm.chain.facts(owed)).toEqual([]);
  });

  test.each([
    [-32602, 'invalid argument 0: hex number > 64 bits'],
    [-32602, 'invalid block number'],
    [-32000, 'json: cannot unmarshal hex string of length 66 into Go value of type rpc.BlockNumber'],
  ])('is read at a provider that takes no hash where receipts are asked for (%i %s)', async (code, message) => {
    let [atAnother, takesNumbers] = [false, true];
    evm.tamper = ({ method, params }, answer) => {
      if (method !== 'eth_getBlockReceipts') return answer;
      if (String(params[0]).length === 66 || !takesNumbers) return refusal(code, message);
      const all = answer.result as { blockHash: string }[];
      return atAnother ? { result: all.map((one) => ({ ...one, blockHash: `0x${'3'.repeat(64)}` })) } : answer;
    };
    const owed = await evm.watch(currency);
    const txid = evm.honest.pay(currency, [{ to: addressOf(owed), minor: 5n }], null)?.hash;
    evm.honest.mine(1);
    atAnother = true;
    expect(await evm.chain.watcher.pass()).toMatchObject({
      state: 'bad_answer',
      reason: expect.stringContaining('a receipt is of another block'),
    });
    atAnother = false;
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ txid, amount: 5n, state: 'mined' }]);
    takesNumbers = false;
    evm.pay(currency, owed, 6n);
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect((await evm.chain.facts(owed)).map(({ amount, state }) => [amount, state])).toEqual([
      [5n, 'mined'],
      [6n, 'mined'],
    ]);
  });
});

test('looks that are refused together narrow no request twice, and after ten minutes a wide one is tried again', async () => {
  const now = vi.spyOn(performance, 'now');
  const rpc = createRpc({ url: evm.url, silenceMs: 5_000, connections: 6, jsonRpc: '2.0' });
  const four = ['eth_chainId', 'eth_syncing', 'net_peerCount', 'eth_blockNumber'].map((method) => ({ method }));
  const sizes = (): number[] => evm.requests.splice(0).map(({ length }) => length);
  try {
    evm.whole = (calls) => (calls.length > 3 ? NO_MORE_THAN_3 : null);
    const [first, second] = await Promise.all([rpc.batch(four), rpc.batch(four)]);
    expect(first).toEqual(second);
    expect(sizes()).toEqual([4, 4, 2, 2, 2, 2]);
    evm.whole = () => null;
    expect(await rpc.batch(four)).toEqual(first);
    expect(sizes()).toEqual([2, 2]);
    now.mockReturnValue(performance.now() + 600_001);
    expect(await rpc.batch(four)).toEqual(first);
    expect(sizes()).toEqual([4]);
  } finally {
    now.mockRestore();
    await rpc.close();
  }
});

test('a stranger whose contract speaks of batches narrows no request', async () => {
  const rpc = createRpc({ url: evm.url, silenceMs: 5_000, connections: 6, jsonRpc: '2.0' });
  const two = [{ method: 'eth_chainId' }, { method: 'eth_syncing' }];
  try {
    evm.tamper = () => refusal(3, 'execution reverted: batch too large');
    for (const said of [await rpc.batch(two), await rpc.batch(two)])
      expect(said).toEqual(two.map(() => expect.objectContaining({ code: 3 })));
    expect(evm.requests.map(({ length }) => length)).toEqual([2, 2]);
  } finally {
    await rpc.close();
  }
});
