// Answers of a node about blocks and transactions that are wrong, large or precise: a wrong one is refused, and the others are read whole.
import { setTimeout as pause } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { createRpc } from '../../src/outside/utxo/node/rpc.ts';
import { badNode, closeAfterEach, fromTable, nothing, opened, type Reply, TIP } from './bad-node.ts';

closeAfterEach();

describe('what it says of blocks and transactions', () => {
  test.each<[string, RegExp, Reply]>([
    ['a block that does not hash to its name', /the header hashes to/, fromTable({ getblock: '00'.repeat(200) })],
    ['a block that is no hex', /without JSON|hex/, fromTable({ getblock: 'zz'.repeat(100) })],
    ['a block as an object', /hex/, fromTable({ getblock: { hash: TIP } })],
    ['a block that is cut off', /cut off|missing/, fromTable({ getblock: '00'.repeat(79) })],
    [
      'no such block',
      /Block not found/,
      (_, __, r) => r.writeHead(500).end('{"result":null,"error":{"code":-5,"message":"Block not found"},"id":0}'),
    ],
  ])('%s: told, with the reason, nothing read', async (_, reason, reply) => {
    const node = await badNode(reply);
    await expect(node.readBlock(TIP, nothing)).rejects.toMatchObject({
      name: 'NodeTrouble',
      state: 'bad_answer',
      message: expect.stringMatching(reason),
    });
  });

  test('a mempool of something else, and a transaction under another name', async () => {
    await expect((await badNode(fromTable({ getrawmempool: ['x'] }))).mempool()).rejects.toMatchObject({ state: 'bad_answer' });
    const raw = `01000000${'01'}${'07'.repeat(36)}00ffffffff01${'0000000000000000'}015100000000`;
    const node = await badNode(fromTable({ getrawtransaction: raw }));
    // it is reported and requested again, and holds up nothing
    expect(await node.readMempoolTransactions([TIP], nothing)).toMatchObject({
      touched: [],
      missing: [],
      unread: [
        {
          txid: TIP,
          reason: expect.stringMatching(/cannot be read: the transaction hashes to [0-9a-f]{64}; from its decoded answer: /),
        },
      ],
    });
  });

  test('a large answer through a thin line arrives', async () => {
    const part = 'ab'.repeat(32 * 1024);
    const node = await badNode(async (_, __, r) => {
      r.write('{"id":0,"error":null,"result":"');
      for (let i = 0; i < 25; i++) {
        r.write(part);
        await pause(100);
      }
      r.end('"}');
    });
    const rpc = createRpc({ url: node.url, silenceMs: 500, connections: 1 });
    opened.push(() => rpc.close());
    const beganMs = Date.now();
    expect(await rpc.call('getblock')).toHaveLength(25 * part.length);
    expect(Date.now() - beganMs).toBeGreaterThan(2_000);
  });

  test('numbers come without loss', async () => {
    const node = await badNode((_, __, r) =>
      r.end('{"id":0,"error":null,"result":{"amount":20999999.97690000,"big":90071992547409931,"height":7}}'),
    );
    const rpc = createRpc({ url: node.url, silenceMs: 500, connections: 1 });
    opened.push(() => rpc.close());
    expect(await rpc.call('x')).toEqual({ amount: '20999999.97690000', big: '90071992547409931', height: 7 });
  });
});
