// A node that answers nonsense: it is in trouble itself, by name, in text that can be stored; nothing else fails, and nothing is read for
// long.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { utxoRow } from '../../src/core/currency.ts';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node/node.ts';
import { recordCondition } from '../../src/store/chain/node-conditions.ts';
import { freshDatabase } from '../support/postgres.ts';

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
type Answer = { readonly result?: unknown; readonly error?: { readonly code: number; readonly message: string } };

const TIP = 'ab'.repeat(32);
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A node at block 120 that answers a call as it is told, and a whole request where `flood` writes it. */
async function nodeOf(
  lie: (call: Call) => Answer | null,
  flood: ((methods: readonly string[], response: ServerResponse) => boolean) | null = null,
): Promise<UtxoNode> {
  const honest: Record<string, unknown> = {
    getblockchaininfo: { blocks: 120, headers: 120, bestblockhash: TIP },
    getconnectioncount: 3,
    getblockheader: { time: Math.floor(Date.now() / 1000) },
    getrawmempool: [],
  };
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const asked = JSON.parse(Buffer.concat(parts).toString()) as Call | Call[];
    const calls = Array.isArray(asked) ? asked : [asked];
    if (
      flood?.(
        calls.map(({ method }) => method),
        response,
      )
    )
      return;
    const answers = calls.map((call) => {
      const blockHash = call.params[0] === 0 ? utxoRow('BTC').utxo.genesis.regtest : TIP;
      const honestly = { result: call.method === 'getblockhash' ? blockHash : honest[call.method] };
      return { result: null, error: null, id: call.id, ...(lie(call) ?? honestly) };
    });
    response.end(JSON.stringify(Array.isArray(asked) ? answers : answers[0]));
  }
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock: { now: () => Date.now() } });
  open.push(async () => {
    await node.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return node;
}

const info = (part: object) => (call: Call) =>
  call.method === 'getblockchaininfo' ? { result: { blocks: 120, headers: 120, bestblockhash: TIP, ...part } } : null;
const answering = (method: string, answer: Answer) => (call: Call) => (call.method === method ? answer : null);

test('heights, times and texts that nothing can hold are the node’s own trouble, and what is said of it can be stored', async () => {
  const lies: readonly (readonly [string, (call: Call) => Answer | null])[] = [
    ['did not answer a height', info({ blocks: 2 ** 31 })],
    ['did not answer a height', info({ blocks: 1e300 })],
    ['did not answer a height', info({ blocks: 1.5 })],
    ['did not answer a time', answering('getblockheader', { result: { time: 8_640_000_000_001 } })],
    ['did not answer a time', answering('getblockheader', { result: { time: -1 } })],
    ['odd text', answering('getblockchaininfo', { error: { code: -1, message: 'odd\u0000text\ud800\n' } })],
    ['odd', answering('getblockchaininfo', { error: { code: -1, message: `odd${'x'.repeat(200_000)}` } })],
    ['first block is an object', (call) => (call.params[0] === 0 ? { result: { toString: 1 } } : null)],
    ['first block is a b', (call) => (call.params[0] === 0 ? { result: `a\u0000b${'x'.repeat(100_000)}` } : null)],
    ['error without a code', answering('getblockchaininfo', { error: { code: { toString: 1 } as never, message: '' } })],
  ];
  const { db, drop } = await freshDatabase();
  open.push(drop);
  for (const [reason, lie] of lies) {
    const node = await nodeOf(lie);
    const condition = await node.condition();
    expect(condition).toMatchObject({ reason: expect.stringMatching(`^${node.name}: .*${reason}`) });
    expect(JSON.stringify(condition).length).toBeLessThan(2_000);
    await recordCondition(db, 'BTC', condition, Date.now());
  }
  // what only says less is left out
  const odd = await nodeOf(
    (call) =>
      info({ headers: 1e300, pruned: true, pruneheight: 1e300 })(call) ?? answering('getconnectioncount', { result: -1 })(call),
  );
  const condition = await odd.condition();
  expect(condition).toMatchObject({ state: 'ready', height: 120, peers: 0 });
  expect(condition).not.toHaveProperty('prunedBelow');
  await recordCondition(db, 'BTC', condition, Date.now());
});

test.each([
  ['of numbers', '1.5,'],
  ['of lists', '[],'],
  ['of openings', '['],
])('a flood %s where a few kilobytes are expected, or a list of hashes, is given up soon', async (_, part) => {
  let written = 0;
  const chunk = Buffer.from(part.repeat(100_000));
  const node = await nodeOf(
    () => null,
    (_methods, response) => {
      response.write('{"result":[');
      const more = (): void => {
        while (!response.destroyed && written < 12_000_000) {
          written += chunk.length;
          if (!response.write(chunk)) return void response.once('drain', more);
        }
        response.end('0],"error":null,"id":0}');
      };
      more();
      return true;
    },
  );
  const said: string[] = [];
  const beganMs = performance.now();
  expect(await node.condition()).toMatchObject({
    state: 'bad_answer',
    reason: expect.stringContaining('larger than 262144 bytes'),
  });
  await node.hashAt(5).catch((error: Error) => said.push(error.message));
  written = 0;
  await node.mempool().catch((error: Error) => said.push(error.message));
  expect(said).toEqual([
    expect.stringContaining('larger than'),
    expect.stringContaining('did not answer a list of transactions'),
  ]);
  expect(performance.now() - beganMs).toBeLessThan(5_000);
});

test('a mempool that has grown since is left out of the answer about the node, and listed by itself', async () => {
  const txids = Array.from({ length: 5_000 }, (_, n) => n.toString(16).padStart(64, '0'));
  const node = await nodeOf(answering('getrawmempool', { result: txids }));
  const condition = await node.condition({ mempool: true });
  expect(condition).toMatchObject({ state: 'ready', height: 120 });
  expect(condition).not.toHaveProperty('mempool');
  expect(await node.mempool()).toEqual(txids);
});

test('a node that claims blocks which it never has is in trouble; one that lost a block between two answers is not', async () => {
  let height = 100_000;
  const node = await nodeOf((call) => {
    if (call.method === 'getblockhash' && (call.params[0] as number) > 120 && call.params[0] !== height)
      return { error: { code: -8, message: 'Block height out of range' } };
    return info({ blocks: height, headers: height })(call);
  });
  expect(await node.condition()).toMatchObject({ state: 'ready', height: 100_000 });
  for (let look = 0; look < 3; look++) expect(await node.hashAt(121)).toBeNull();
  await expect(node.hashAt(121)).rejects.toThrow(
    /claims 100000 blocks, and 4 times in a row it said that it does not have block 121/,
  );
  height = 120;
  await node.condition();
  for (let look = 0; look < 9; look++) expect(await node.hashAt(121)).toBeNull();
});
