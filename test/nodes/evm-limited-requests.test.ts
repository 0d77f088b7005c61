// Providers that take only a few calls in one request, or none together, and those that know a block's receipts by its number only: each says so in
// words of its own, and its chain is read all the same.
import { describe, expect, test } from 'vitest';
import { type Answer, type Call, type Tamper, withTamperedEvm } from './tampered-evm.ts';
import { addressOf } from './watched-chain.ts';

const evm = withTamperedEvm();
const refusal = (code: number, message: string): Answer => ({ error: { code, message } });

const NO_MORE_THAN_3 = refusal(
  31,
  'Batch of more than 3 requests are not allowed on free tier, to use this feature register paid account',
);
const NONE = refusal(-32600, 'batch requests are not supported');
const WITHOUT_BLOCK_RECEIPTS: Tamper = ({ method }, answer) =>
  method === 'eth_getBlockReceipts' ? refusal(-32601, 'the method eth_getBlockReceipts does not exist/is not available') : answer;

describe.each(['ETH', 'USDT'] as const)('%s', (currency) => {
  test.each([
    ['at most three', 3, NO_MORE_THAN_3],
    ['none', 0, NONE],
  ] as const)('is read at a provider that takes %s in one request, also receipts one by one', async (_what, most, refused) => {
    evm.whole = (calls: readonly Call[]) => (calls.length > most ? refused : null);
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
