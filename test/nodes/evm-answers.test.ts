// What an Ethereum node answers wrongly, refuses or limits: nothing is recorded from it, the reason is told, and it is right again when the
// node is.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { createEvmNode } from '../../src/outside/evm/node.ts';
import { createEvmSource, type EvmSource } from '../../src/outside/evm/source.ts';
import { createServedEvm, type ServedEvm } from '../../src/sandbox/evm/served-evm.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const TOKEN = '0x5fbdb2315678afecb367f032d93f642f64180aa3';
const addressOf = ({ script }: Owed): string => `0x${script.subarray(3).toString('hex')}`;

type Call = { readonly method: string; readonly params: readonly unknown[] };
type Answer = { result?: unknown; error?: { code: number; message: string } };
/** Changes an answer of the node, or gives another. */
type Tamper = (call: Call, answer: Answer) => Answer;
const refuse =
  (code: number, message: string, ...methods: readonly string[]): Tamper =>
  ({ method }, answer) =>
    methods.includes(method) ? { error: { code, message } } : answer;

let honest: ServedEvm;
let server: Server;
let url: string;
let tamper: Tamper;
/** The methods of each request. */
let requests: string[][];
/** Statuses to answer instead, one a request. */
let statuses: { readonly status: number; readonly headers: Record<string, string> }[];

beforeAll(async () => {
  honest = await createServedEvm({ folder: null, now: () => Date.now() });
  server = createServer((request, response) => void answer(request, response));
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const instead = statuses.shift();
    if (instead !== undefined) return void response.writeHead(instead.status, instead.headers).end('slow down');
    const asked = JSON.parse(Buffer.concat(parts).toString('utf8')) as (Call & { id: number }) | (Call & { id: number })[];
    requests.push([asked].flat().map(({ method }) => method));
    const honestAnswer = await fetch(new URL(honest.url).origin + new URL(honest.url).pathname, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from('bursar:simulated').toString('base64')}` },
      body: JSON.stringify(asked),
    });
    const answers = [await honestAnswer.json()].flat() as (Answer & { id: number })[];
    const changed = answers.map(({ id, ...answer }) => {
      const call = [asked].flat().find((one) => one.id === id) as Call;
      return { jsonrpc: '2.0', id, ...tamper(call, answer) };
    });
    response
      .writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify(Array.isArray(asked) ? changed : changed[0]));
  }
  url = `http://127.0.0.1:${await listen(server, 0)}/key-in-the-path`;
});
afterAll(async () => {
  await closeServer(server);
  await honest.stop();
});

let chain: WatchedChain;
let isOpen = false;
beforeEach(() => {
  tamper = (_call, answer) => answer;
  statuses = [];
  requests = [];
});
afterEach(async () => {
  if (isOpen) await chain.close();
  isOpen = false;
});

async function watch(currency: 'ETH' | 'USDT'): Promise<Owed> {
  chain = await watchChain(currency, url, { contract: currency === 'USDT' ? TOKEN : null });
  isOpen = true;
  await chain.catchUp();
  return chain.owe();
}
const pay = (currency: 'ETH' | 'USDT', owed: Owed, minor = 5_000_000n): string =>
  honest.pay(currency, [{ to: addressOf(owed), minor }], null)?.hash as string;

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
    const owed = await watch('USDT');
    const txid = pay('USDT', owed);
    honest.mine(1);
    tamper = wrong;
    const result = await chain.watcher.pass();
    expect(result).toMatchObject({ state: 'bad_answer', caughtUp: false });
    expect(result.reason).toContain(reason);
    expect(result.reason).not.toContain('key-in-the-path');
    expect(await chain.facts(owed)).toEqual([]);
    tamper = (_call, answer) => answer;
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, amount: 5_000_000n, state: 'mined' }]);
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
    const owed = await watch('ETH');
    pay('ETH', owed);
    honest.mine(1);
    tamper = wrong;
    const result = await chain.watcher.pass();
    expect(result).toMatchObject({ state: 'bad_answer' });
    expect(result.reason).toContain(reason);
    tamper = (_call, answer) => answer;
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });
});

describe('a node', () => {
  test('of another chain is not read', async () => {
    const owed = await watch('ETH');
    pay('ETH', owed);
    tamper = (call, answer) => (call.method === 'eth_chainId' ? { result: '0x1' } : answer);
    expect(await chain.watcher.pass()).toMatchObject({ state: 'wrong_network' });
    expect(await chain.facts(owed)).toEqual([]);
  });

  test('that asks to wait with 429 is left alone until then', async () => {
    await watch('ETH');
    statuses = [{ status: 429, headers: { 'retry-after': '30' } }];
    expect(await chain.watcher.pass()).toMatchObject({ state: 'busy' });
    const result = await chain.watcher.pass();
    expect(result.state).toBe('busy');
    expect(result.reason).toMatch(/too many requests \(HTTP 429\); it is asked again in \d+ s$/);
  });

  test.each([
    [-32005, 'daily request count exceeded, request rate limited'],
    [-32000, 'Your app has exceeded its compute units per second capacity'],
    [429, 'Too Many Requests'],
  ])('that refuses with its limit (%i %s) is busy', async (code, message) => {
    const owed = await watch('USDT');
    pay('USDT', owed);
    honest.mine(1);
    tamper = refuse(code, message, 'eth_getBlockReceipts');
    expect(await chain.watcher.pass()).toMatchObject({ state: 'busy' });
    tamper = (_call, answer) => answer;
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });

  test('without receipts of a block is asked for each one', async () => {
    tamper = refuse(-32601, 'the method eth_getBlockReceipts does not exist/is not available', 'eth_getBlockReceipts');
    const owed = await watch('USDT');
    pay('USDT', owed);
    honest.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ amount: 5_000_000n, state: 'mined' }]);
  });

  test('without traces says so, and shows what its transactions themselves pay', async () => {
    tamper = refuse(-32601, 'the method does not exist/is not available', 'debug_traceBlockByHash', 'trace_block');
    const owed = await watch('ETH');
    honest.pay('ETH', [{ to: addressOf(owed), minor: 7n }], 'internal');
    pay('ETH', owed, 9n);
    honest.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ amount: 9n, state: 'mined' }]);
    expect((await chain.watcher.pass()).alarms.join()).toContain('ether that contracts send is not seen');
  });

  test('that cannot show the calls of one block is asked again, and then for those of the next', async () => {
    const owed = await watch('ETH');
    const pruned = 'missing trie node 0bc3 (path ) state 0x63aa is not available, not found';
    tamper = (call, answer) => (call.method === 'debug_traceBlockByHash' ? { error: { code: -32000, message: pruned } } : answer);
    honest.pay('ETH', [{ to: addressOf(owed), minor: 7n }], 'internal');
    honest.mine(1);
    expect(await chain.catchUp()).toMatchObject({ state: 'bad_answer', reason: expect.stringContaining('missing trie node') });
    tamper = (_call, answer) => answer;
    expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([{ amount: 7n, state: 'mined' }]);
  });

  test('without a pool shows a payment once it is in a block', async () => {
    const pool = refuse(-32601, 'method not found', 'txpool_status', 'txpool_content');
    tamper = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'pending'
        ? { error: { code: -32000, message: 'pending is not available' } }
        : pool(call, answer);
    const owed = await watch('ETH');
    const txid = pay('ETH', owed);
    await chain.catchUp();
    expect(await chain.facts(owed)).toEqual([]);
    expect((await chain.watcher.pass()).alarms.join()).toContain('does not show what waits to be mined');
    honest.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined', foundMined: true }]);
  });

  test('with nothing new is asked twice a pass: for its pool, and then for its tip and how it is', async () => {
    await watch('ETH');
    await chain.watcher.pass({ quiet: true });
    requests = [];
    expect(await chain.watcher.pass({ quiet: true })).toMatchObject({ state: 'ready', caughtUp: true });
    expect(requests).toEqual([['txpool_content'], ['eth_chainId', 'eth_syncing', 'net_peerCount', 'eth_getBlockByNumber']]);
  });

  test('whose pool has grown is asked for its size before it is read again', async () => {
    const owed = await watch('ETH');
    const many = Array.from({ length: 201 }, () => pay('ETH', owed));
    await chain.watcher.pass({ quiet: true });
    requests = [];
    expect(await chain.watcher.pass({ quiet: true })).toMatchObject({ state: 'ready', caughtUp: true });
    expect(requests.slice(0, 2)).toEqual([['txpool_status'], ['txpool_content']]);
    expect(await chain.facts(owed)).toHaveLength(many.length);
    honest.mine(1);
  });

  test('with a large pool is asked for the block that it would make', async () => {
    tamper = (call, answer) => (call.method === 'txpool_status' ? { result: { pending: '0x2711', queued: '0x0' } } : answer);
    const owed = await watch('ETH');
    const txid = pay('ETH', owed);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool' }]);
    honest.mine(1);
  });

  test('that names its tip as final makes nothing final there', async () => {
    tamper = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'finalized'
        ? { result: blockJson(honest.state.active.length - 1) }
        : answer;
    const owed = await watch('ETH');
    pay('ETH', owed);
    honest.mine(32);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
    honest.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
  });

  test('says which block is final also to whom its tip was never reported', async () => {
    honest.mine(70);
    const source = createEvmSource({ url });
    const clock = { now: () => Date.now(), steady: () => performance.now() };
    const node = createEvmNode({ currency: 'ETH', source, network: 'regtest', clock, contract: null });
    const tip = honest.state.active.length - 1;
    expect(await node.finalized?.()).toMatchObject({ height: tip - 64 });
    await node.close();
  });

  test('with a pool of few and very large transactions is asked for the block that it would make', async () => {
    const input = `0x${'00'.repeat(128 * 1024)}`;
    const from = '0x1111111111111111111111111111111111111111';
    tamper = (call, answer) => {
      if (call.method !== 'txpool_content') return answer;
      const large = (n: number) => ({
        hash: `0x${String(n).padStart(64, '0')}`,
        from,
        to: null,
        value: '0x0',
        nonce: '0x0',
        input,
      });
      return {
        result: { pending: { [from]: Object.fromEntries(Array.from({ length: 100 }, (_, n) => [n, large(n)])) }, queued: {} },
      };
    };
    const owed = await watch('ETH');
    const txid = pay('ETH', owed);
    expect(await chain.catchUp()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool' }]);
    honest.mine(1);
  });

  test('that shows thousands of events of a strange contract at our addresses is told of a few of them', async () => {
    const owed = await watch('USDT');
    const address = '0x2222222222222222222222222222222222222222';
    const topics = [TRANSFER, `0x${'0'.repeat(64)}`, `0x${addressOf(owed).slice(2).padStart(64, '0')}`];
    tamper = (call, answer) => {
      const [receipt] = call.method === 'eth_getBlockReceipts' ? (answer.result as (Receipt & { blockHash: string })[]) : [];
      const blockHash = receipt?.blockHash as string;
      const strange = { address, topics, data: `0x${'f'.repeat(64)}`, blockHash };
      receipt?.logs.push(...Array.from({ length: 5_000 }, () => strange));
      return answer;
    };
    pay('USDT', owed);
    honest.mine(1);
    const { alarms } = await chain.watcher.pass();
    expect(alarms).toHaveLength(11);
    expect(alarms.at(-1)).toContain('4990 more in block');
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });

  test('that does not know the finalized block is believed two epochs behind its tip', async () => {
    tamper = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'finalized'
        ? { error: { code: -32602, message: 'invalid block tag' } }
        : answer;
    const owed = await watch('ETH');
    pay('ETH', owed);
    honest.mine(64);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
    honest.mine(1);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
  });

  test('that fails to say which block is final makes none final by its depth', async () => {
    let says: Answer = { result: null };
    tamper = (call, answer) => (call.method === 'eth_getBlockByNumber' && call.params[0] === 'finalized' ? says : answer);
    const owed = await watch('ETH');
    pay('ETH', owed);
    says = { error: { code: -32603, message: 'Internal error' } };
    honest.mine(70);
    expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
    expect((await chain.watcher.pass()).alarms.join()).toContain('does not say which block is final');
    says = { result: blockJson(50) };
    honest.mine(1);
    expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
  });

  test('behind a balancer that answers from an older head takes nothing back', async () => {
    const owed = await watch('USDT');
    pay('USDT', owed);
    honest.mine(3);
    await chain.catchUp();
    const before = await chain.cursor();
    const height = honest.state.active.length - 1;
    const old = honest.state.active[height - 2]?.number as number;
    tamper = (call, answer) => {
      if (call.method !== 'eth_getBlockByNumber') return answer;
      const [tag] = call.params as [string];
      if (tag === 'latest') return { result: blockJson(old) };
      return tag.startsWith('0x') && Number(tag) > old ? { result: null } : answer;
    };
    expect(await chain.watcher.pass()).toMatchObject({ caughtUp: false, behind: true });
    expect(await chain.cursor()).toEqual(before);
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
    tamper = (_call, answer) => answer;
    expect(await chain.catchUp()).toMatchObject({ caughtUp: true, behind: false });
  });
});

function blockJson(number: number): object {
  const { hash, parentHash, timestamp } = honest.state.active[number] as (typeof honest.state.active)[number];
  return { hash, parentHash, number: `0x${number.toString(16)}`, timestamp: `0x${timestamp.toString(16)}`, transactions: [] };
}

describe('the search of a range of blocks', () => {
  let source: EvmSource;
  beforeEach(() => {
    source = createEvmSource({ url });
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
    honest.pay('USDT', [{ to, minor: 1n }], null);
    const { hash, number } = honest.mine(1);
    honest.mine(5);
    tamper = (call, answer) => {
      if (call.method !== 'eth_getLogs') return answer;
      const [{ fromBlock, toBlock }] = call.params as [{ fromBlock: string; toBlock: string }];
      return Number(toBlock) - Number(fromBlock) >= most ? { error: { code: -32602, message } } : answer;
    };
    const script = Buffer.from(`65766d${to.slice(2)}`, 'hex');
    const found = await blocksWithTransfers(source, { contract: TOKEN, scripts: [script], fromHeight: 1, toHeight: number + 5 });
    expect(found).toContain(hash);
  });
});
