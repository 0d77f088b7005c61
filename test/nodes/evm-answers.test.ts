// What an Ethereum node answers wrongly, refuses or limits: the reason is told, and it is right again when the node is.
import { describe, expect, test } from 'vitest';
import { createEvmNode } from '../../src/outside/evm/node.ts';
import { createEvmSource } from '../../src/outside/evm/source.ts';
import { type Answer, refuse, withTamperedEvm } from './tampered-evm.ts';
import { addressOf } from './watched-chain.ts';

/** keccak256("Transfer(address,address,uint256)") */
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';

const evm = withTamperedEvm();
type Receipt = { logs: { topics: string[]; data: string; removed?: boolean; blockHash: string }[]; status: string };

describe('a node', () => {
  test('of another chain is not read', async () => {
    const owed = await evm.watch('ETH');
    evm.pay('ETH', owed);
    evm.tamper = (call, answer) => (call.method === 'eth_chainId' ? { result: '0x1' } : answer);
    expect(await evm.chain.watcher.pass()).toMatchObject({ state: 'wrong_network' });
    expect(await evm.chain.facts(owed)).toEqual([]);
  });

  test('that asks to wait with 429 is left alone until then', async () => {
    await evm.watch('ETH');
    evm.statuses = [{ status: 429, headers: { 'retry-after': '30' } }];
    expect(await evm.chain.watcher.pass()).toMatchObject({ state: 'busy' });
    const result = await evm.chain.watcher.pass();
    expect(result.state).toBe('busy');
    expect(result.reason).toMatch(/too many requests \(HTTP 429\); it is asked again in \d+ s$/);
  });

  test.each([
    [-32005, 'daily request count exceeded, request rate limited'],
    [-32000, 'Your app has exceeded its compute units per second capacity'],
    [429, 'Too Many Requests'],
  ])('that refuses with its limit (%i %s) is busy', async (code, message) => {
    const owed = await evm.watch('USDT');
    evm.pay('USDT', owed);
    evm.honest.mine(1);
    evm.tamper = refuse(code, message, 'eth_getBlockReceipts');
    expect(await evm.chain.watcher.pass()).toMatchObject({ state: 'busy' });
    evm.tamper = (_call, answer) => answer;
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });

  test('without receipts of a block is asked for each one', async () => {
    evm.tamper = refuse(-32601, 'the method eth_getBlockReceipts does not exist/is not available', 'eth_getBlockReceipts');
    const owed = await evm.watch('USDT');
    evm.pay('USDT', owed);
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ amount: 5_000_000n, state: 'mined' }]);
  });

  test('without traces says so, and shows what its transactions themselves pay', async () => {
    evm.tamper = refuse(-32601, 'the method does not exist/is not available', 'debug_traceBlockByHash', 'trace_block');
    const owed = await evm.watch('ETH');
    evm.honest.pay('ETH', [{ to: addressOf(owed), minor: 7n }], 'internal');
    evm.pay('ETH', owed, 9n);
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ amount: 9n, state: 'mined' }]);
    expect((await evm.chain.watcher.pass()).alarms.join()).toContain('ether that contracts send is not seen');
  });

  test('that cannot show the calls of one block is asked again, and then for those of the next', async () => {
    const owed = await evm.watch('ETH');
    const pruned = 'missing trie node 0bc3 (path ) state 0x63aa is not available, not found';
    evm.tamper = (call, answer) =>
      call.method === 'debug_traceBlockByHash' ? { error: { code: -32000, message: pruned } } : answer;
    evm.honest.pay('ETH', [{ to: addressOf(owed), minor: 7n }], 'internal');
    evm.honest.mine(1);
    expect(await evm.chain.catchUp()).toMatchObject({
      state: 'bad_answer',
      reason: expect.stringContaining('missing trie node'),
    });
    evm.tamper = (_call, answer) => answer;
    expect(await evm.chain.catchUp()).toMatchObject({ caughtUp: true });
    expect(await evm.chain.facts(owed)).toMatchObject([{ amount: 7n, state: 'mined' }]);
  });

  test('without a pool shows a payment once it is in a block', async () => {
    const pool = refuse(-32601, 'method not found', 'txpool_status', 'txpool_content');
    evm.tamper = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'pending'
        ? { error: { code: -32000, message: 'pending is not available' } }
        : pool(call, answer);
    const owed = await evm.watch('ETH');
    const txid = evm.pay('ETH', owed);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toEqual([]);
    expect((await evm.chain.watcher.pass()).alarms.join()).toContain('does not show what waits to be mined');
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ txid, state: 'mined', foundMined: true }]);
  });

  test('with nothing new is asked twice a pass: for its pool, and then for its tip and how it is', async () => {
    await evm.watch('ETH');
    await evm.chain.watcher.pass({ quiet: true });
    evm.requests = [];
    expect(await evm.chain.watcher.pass({ quiet: true })).toMatchObject({ state: 'ready', caughtUp: true });
    expect(evm.requests).toEqual([['txpool_content'], ['eth_chainId', 'eth_syncing', 'net_peerCount', 'eth_getBlockByNumber']]);
  });

  test('whose pool has grown is asked for its size before it is read again', async () => {
    const owed = await evm.watch('ETH');
    const many = Array.from({ length: 201 }, () => evm.pay('ETH', owed));
    await evm.chain.watcher.pass({ quiet: true });
    evm.requests = [];
    expect(await evm.chain.watcher.pass({ quiet: true })).toMatchObject({ state: 'ready', caughtUp: true });
    expect(evm.requests.slice(0, 2)).toEqual([['txpool_status'], ['txpool_content']]);
    expect(await evm.chain.facts(owed)).toHaveLength(many.length);
    evm.honest.mine(1);
  });

  test('with a large pool is asked for the block that it would make', async () => {
    evm.tamper = (call, answer) => (call.method === 'txpool_status' ? { result: { pending: '0x2711', queued: '0x0' } } : answer);
    const owed = await evm.watch('ETH');
    const txid = evm.pay('ETH', owed);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ txid, state: 'mempool' }]);
    evm.honest.mine(1);
  });

  test('that names its tip as final makes nothing final there', async () => {
    evm.tamper = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'finalized'
        ? { result: blockJson(evm.honest.state.active.length - 1) }
        : answer;
    const owed = await evm.watch('ETH');
    evm.pay('ETH', owed);
    evm.honest.mine(32);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
  });

  test('says which block is final also to whom its tip was never reported', async () => {
    evm.honest.mine(70);
    const source = createEvmSource({ url: evm.url });
    const clock = { now: () => Date.now(), steady: () => performance.now() };
    const node = createEvmNode({ currency: 'ETH', source, network: 'regtest', clock, contract: null });
    const tip = evm.honest.state.active.length - 1;
    expect(await node.finalized?.()).toMatchObject({ height: tip - 64 });
    await node.close();
  });

  test('with a pool of few and very large transactions is asked for the block that it would make', async () => {
    const input = `0x${'00'.repeat(128 * 1024)}`;
    const from = '0x1111111111111111111111111111111111111111';
    evm.tamper = (call, answer) => {
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
    const owed = await evm.watch('ETH');
    const txid = evm.pay('ETH', owed);
    expect(await evm.chain.catchUp()).toMatchObject({ state: 'ready', caughtUp: true });
    expect(await evm.chain.facts(owed)).toMatchObject([{ txid, state: 'mempool' }]);
    evm.honest.mine(1);
  });

  test('that shows thousands of events of a strange contract at our addresses is told of a few of them', async () => {
    const owed = await evm.watch('USDT');
    const address = '0x2222222222222222222222222222222222222222';
    const topics = [TRANSFER, `0x${'0'.repeat(64)}`, `0x${addressOf(owed).slice(2).padStart(64, '0')}`];
    evm.tamper = (call, answer) => {
      const [receipt] = call.method === 'eth_getBlockReceipts' ? (answer.result as (Receipt & { blockHash: string })[]) : [];
      const blockHash = receipt?.blockHash as string;
      const strange = { address, topics, data: `0x${'f'.repeat(64)}`, blockHash };
      receipt?.logs.push(...Array.from({ length: 5_000 }, () => strange));
      return answer;
    };
    evm.pay('USDT', owed);
    evm.honest.mine(1);
    const { alarms } = await evm.chain.watcher.pass();
    expect(alarms).toHaveLength(11);
    expect(alarms.at(-1)).toContain('4990 more in block');
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  });

  test('that does not know the finalized block is believed two epochs behind its tip', async () => {
    evm.tamper = (call, answer) =>
      call.method === 'eth_getBlockByNumber' && call.params[0] === 'finalized'
        ? { error: { code: -32602, message: 'invalid block tag' } }
        : answer;
    const owed = await evm.watch('ETH');
    evm.pay('ETH', owed);
    evm.honest.mine(64);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
    evm.honest.mine(1);
    await evm.chain.catchUp();
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined', lock: 'chainlock' }]);
  });

  test('that fails to say which block is final makes none final by its depth', async () => {
    let says: Answer = { result: null };
    evm.tamper = (call, answer) => (call.method === 'eth_getBlockByNumber' && call.params[0] === 'finalized' ? says : answer);
    const owed = await evm.watch('ETH');
    evm.pay('ETH', owed);
    says = { error: { code: -32603, message: 'Internal error' } };
    evm.honest.mine(70);
    expect(await evm.chain.catchUp()).toMatchObject({ caughtUp: true });
    expect((await evm.chain.watcher.pass()).alarms.join()).toContain('does not say which block is final');
    says = { result: blockJson(50) };
    evm.honest.mine(1);
    expect(await evm.chain.catchUp()).toMatchObject({ caughtUp: true });
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined', lock: null }]);
  });

  test('behind a balancer that answers from an older head takes nothing back', async () => {
    const owed = await evm.watch('USDT');
    evm.pay('USDT', owed);
    evm.honest.mine(3);
    await evm.chain.catchUp();
    const before = await evm.chain.cursor();
    const height = evm.honest.state.active.length - 1;
    const old = evm.honest.state.active[height - 2]?.number as number;
    evm.tamper = (call, answer) => {
      if (call.method !== 'eth_getBlockByNumber') return answer;
      const [tag] = call.params as [string];
      if (tag === 'latest') return { result: blockJson(old) };
      return tag.startsWith('0x') && Number(tag) > old ? { result: null } : answer;
    };
    expect(await evm.chain.watcher.pass()).toMatchObject({ caughtUp: false, behind: true });
    expect(await evm.chain.cursor()).toEqual(before);
    expect(await evm.chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
    evm.tamper = (_call, answer) => answer;
    expect(await evm.chain.catchUp()).toMatchObject({ caughtUp: true, behind: false });
  });
});

function blockJson(number: number): object {
  const { hash, parentHash, timestamp } = evm.honest.state.active[number] as (typeof evm.honest.state.active)[number];
  return { hash, parentHash, number: `0x${number.toString(16)}`, timestamp: `0x${timestamp.toString(16)}`, transactions: [] };
}
