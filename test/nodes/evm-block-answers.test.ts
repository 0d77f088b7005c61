// Blocks of an Ethereum node that are not what they should be: nothing is recorded from them. And searches that it limits.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createEvmSource, type EvmSource } from '../../src/outside/evm/source.ts';
import { type Tamper, TOKEN, withTamperedEvm } from './tampered-evm.ts';

const evm = withTamperedEvm();

type Receipt = { logs: { topics: string[]; data: string; removed?: boolean; blockHash: string }[]; status: string };
/** Changes the receipts of a block. */
const receipts =
  (change: (all: (Receipt | null)[]) => unknown): Tamper =>
  ({ method }, answer) =>
    method === 'eth_getBlockReceipts' && answer.result ? { result: change(structuredClone(answer.result) as Receipt[]) } : answer;
const logs = (change: (log: Receipt['logs'][number]) => object): Tamper =>
  receipts((all) => all.map((one) => one && { ...one, logs: one.logs.map((log) => ({ ...log, ...change(log) })) }));

describe('a block is not believed', () => {
  test.each([
    ['a mined transaction has no receipt', receipts((all) => all.map(() => null)), 'has no receipt'],
    ['receipts are missing', receipts((all) => all.slice(1)), 'receipts for'],
    ['a log was removed', logs(() => ({ removed: true })), 'a log is not of this block'],
    ['a log is of another block', logs(() => ({ blockHash: `0x${'1'.repeat(64)}` })), 'a log is not of this block'],
    ['a topic is too short', logs(({ topics }) => ({ topics: topics.map((one) => one.slice(0, 42)) })), 'a topic is no hash'],
    [
      'an address has more than 20 bytes',
      logs(({ topics }) => ({ topics: [topics[0], topics[1], `0x${'f'.repeat(64)}`] })),
      'does not have its form',
    ],
    [
      'a transfer is of more than there is',
      logs(() => ({ data: `0x${(2n ** 97n).toString(16).padStart(64, '0')}` })),
      'is of 158456325028528675187087900672 units',
    ],
    [
      'a failed transaction has logs',
      receipts((all) => all.map((one) => ({ ...one, status: '0x0' }))),
      'a failed transaction has logs',
    ],
  ])('when %s', async (_what, wrong, reason) => {
    const owed = await evm.watch('USDT');
    const txid = evm.pay('USDT', owed);
    evm.honest.mine(1);
    evm.tamper = wrong;
    const result = await evm.chain.watcher.pass();
    expect(result).toMatchObject({ state: 'bad_answer', caughtUp: false });
    expect(result.reason).toContain(reason);
    expect(result.reason).not.toContain('key-in-the-path');
    expect(await evm.chain.facts(owed)).toEqual([]);
    evm.tamper = (_call, answer) => answer;
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ txid, amount: 5_000_000n, state: 'mined' }]);
  });

  test.each([
    [
      'is not traced',
      (call, answer) => (call.method === 'debug_traceBlockByHash' ? { result: [{ error: 'timeout' }] } : answer),
      'was not traced (timeout)',
    ],
    [
      'is another one',
      (call, answer) =>
        call.method === 'eth_getBlockByHash' ? { result: { ...(answer.result as object), hash: `0x${'2'.repeat(64)}` } } : answer,
      'names another block',
    ],
  ] satisfies readonly (readonly [string, Tamper, string])[])('of ether, when it %s', async (_what, wrong, reason) => {
    const owed = await evm.watch('ETH');
    evm.pay('ETH', owed);
    evm.honest.mine(1);
    evm.tamper = wrong;
    const result = await evm.chain.watcher.pass();
    expect(result).toMatchObject({ state: 'bad_answer' });
    expect(result.reason).toContain(reason);
    evm.tamper = (_call, answer) => answer;
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });
});

describe('the search of a range of blocks', () => {
  let source: EvmSource;
  beforeEach(() => {
    source = createEvmSource({ url: evm.url });
  });
  afterEach(() => source.close());

  test.each([
    ['query exceeds max block range 20', 20],
    ['range is too large, max is 1k blocks', 1_000],
    ['query exceeds max results 20000, retry with the range 1-7', 7],
    ['Log response size exceeded.', 16],
  ])('adapts to “%s”', async (message, most) => {
    const { blocksWithTransfers } = await import('../../src/outside/evm/logs.ts');
    const to = '0x00000000000000000000000000000000000000aa';
    evm.honest.pay('USDT', [{ to, minor: 1n }], null);
    const { hash, number } = evm.honest.mine(1);
    evm.honest.mine(5);
    evm.tamper = (call, answer) => {
      if (call.method !== 'eth_getLogs') return answer;
      const [{ fromBlock, toBlock }] = call.params as [{ fromBlock: string; toBlock: string }];
      return Number(toBlock) - Number(fromBlock) >= most ? { error: { code: -32602, message } } : answer;
    };
    const script = Buffer.from(`65766d${to.slice(2)}`, 'hex');
    const found = await blocksWithTransfers(source, { contract: TOKEN, scripts: [script], fromHeight: 1, toHeight: number + 5 });
    expect(found).toContain(hash);
  });
});

test('a block with more events than one answer may hold is read in parts', async () => {
  const owed = await evm.watch('USDT');
  const txids = [evm.pay('USDT', owed), evm.pay('USDT', owed)];
  evm.honest.mine(1);
  const padded = '0'.repeat(17 * 1024 * 1024);
  evm.tamper = receipts((all) => all.map((one) => ({ ...one, logsBloom: `0x${padded}` })));
  evm.requests = [];
  await evm.chain.catchUp();
  expect((await evm.chain.facts(owed)).map(({ txid, state }) => `${txid} ${state}`).sort()).toEqual(
    txids.map((txid) => `${txid} mined`).sort(),
  );
  expect(evm.requests.flat().filter((method) => method.endsWith('Receipts'))).toHaveLength(1);
  // the next block is asked for whole again
  evm.tamper = (_call, answer) => answer;
  evm.requests = [];
  evm.pay('USDT', owed);
  evm.honest.mine(1);
  await evm.chain.catchUp();
  expect(evm.requests.flat().filter((method) => /Receipts?$/.test(method))).toEqual(['eth_getBlockReceipts']);
});

/** Changes the transactions of a block. */
const transactions =
  (change: (one: Record<string, unknown>) => object): Tamper =>
  ({ method, params }, answer) => {
    const block = answer.result as { transactions: Record<string, unknown>[] };
    return method === 'eth_getBlockByHash' && params[1] === true && block
      ? { result: { ...block, transactions: block.transactions.map(change) } }
      : answer;
  };

test.each(['ETH', 'USDT'] as const)('a transaction of a kind to come stops nothing: %s', async (currency) => {
  const owed = await evm.watch(currency);
  const txids = [evm.pay(currency, owed), evm.pay(currency, owed)];
  evm.honest.mine(1);
  const withoutAmount = (type: string) =>
    transactions(({ value, to, input, ...one }) => (one.hash === txids[0] ? { ...one, type } : { ...one, value, to, input }));
  // of a known kind that is a wrong answer
  evm.tamper = withoutAmount('0x2');
  expect(await evm.chain.watcher.pass()).toMatchObject({ state: 'bad_answer', caughtUp: false });
  evm.tamper = withoutAmount('0x6');
  await evm.chain.catchUp();
  const mined = (await evm.chain.facts(owed)).filter(({ state }) => state === 'mined').map(({ txid }) => txid);
  // what ether it moves, this does not show; what a contract's events say, they say of any kind
  expect(mined.sort()).toEqual((currency === 'ETH' ? txids.slice(1) : txids).toSorted());
});

test('the event that each transfer of ether may write is no token’s', async () => {
  const owed = await evm.watch('USDT');
  const txid = evm.pay('USDT', owed);
  evm.honest.mine(1);
  evm.tamper = receipts((all) =>
    all.map((one) => one && { ...one, logs: [...one.logs, { ...one.logs[0], address: `0x${'f'.repeat(39)}e` }] }),
  );
  let told: readonly string[] = [];
  for (let result = await evm.chain.watcher.pass(); ; result = await evm.chain.watcher.pass()) {
    told = [...told, ...result.alarms];
    if (result.caughtUp) break;
  }
  expect(told.filter((what) => what.includes('tokens'))).toEqual([]);
  expect(await evm.chain.facts(owed)).toMatchObject([{ txid, amount: 5_000_000n, state: 'mined' }]);
});
