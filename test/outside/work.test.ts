// The proof of work of real headers (the first blocks of four chains) and of merge-mined blocks made for the test.
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test } from 'vitest';
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { Malformed } from '../../src/outside/utxo/bytes.ts';
import { createNodeGroup } from '../../src/outside/utxo/node/group.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import { checkWork, targetOf } from '../../src/outside/utxo/work.ts';
import { rawAuxPow, rawBlock, rawCoinbase, someScript } from '../support/raw-blocks.ts';
import { i32, reversed, u32 } from '../support/raw-bytes.ts';

const ANYTHING = 1n << 256n;
const FIRST: readonly (readonly [UtxoCode, string, number, number, number])[] = [
  ['BTC', '4a5e1e4baab89f3a32518a88c31bc87f618f76673e2cc77ab2127b7afdeda33b', 1231006505, 0x1d00ffff, 2083236893],
  ['LTC', '97ddfbbae6be97fd6cdf3e7ca13232a3afff2353e29badfab7f73011edd4ced9', 1317972665, 0x1e0ffff0, 2084524493],
  ['DOGE', '5b2a3f53f605d62c53e62932dac6925e3d74afa5a4b459745c36d42d0ed26a69', 1386325540, 0x1e0ffff0, 99943],
  ['DASH', 'e0028eb9648db56b1ac77cf090b99048a8007e2bb64b68f092c03c7f56a662c7', 1390095618, 0x1e0ffff0, 28917698],
];
const firstHeader = (merkle: string, time: number, bits: number, nonce: number): Buffer =>
  Buffer.concat([i32(1), Buffer.alloc(32), reversed(merkle), u32(time), u32(bits), u32(nonce)]);

describe('work', () => {
  test.each(FIRST)(
    'of the first block of %s is proven, and of another header is not',
    async (code, merkle, time, bits, nonce) => {
      const { genesis, work } = utxoRow(code).utxo;
      const limit = targetOf(work.limitBits);
      await checkWork(firstHeader(merkle, time, bits, nonce), genesis.mainnet, work, limit);
      await expect(checkWork(firstHeader(merkle, time, bits, nonce), genesis.mainnet, work, targetOf(bits) - 1n)).rejects.toThrow(
        /too easy/,
      );
      await expect(checkWork(firstHeader(merkle, time, bits, nonce + 1), 'ff'.repeat(32), work, limit)).rejects.toThrow(
        /no work was done/,
      );
    },
  );

  test('of a merge-mined block is its parent’s, which commits to this block and no other', async () => {
    const { work } = utxoRow('DOGE').utxo;
    const coinbase = rawCoinbase([{ minor: 1n, script: someScript('miner') }]);
    const options = { version: 0x00620104 };
    const results = new Set<string>();
    for (let n = 0; n < 20; n++) {
      const block = rawBlock([coinbase], { ...options, auxpow: (hash) => rawAuxPow(hash) });
      await checkWork(block.bytes, block.hash, work, ANYTHING).then(
        () => results.add('proven'),
        (error: Error) => results.add(error.message),
      );
      const stolen = rawBlock([coinbase], { ...options, auxpow: () => rawAuxPow(Buffer.alloc(32, 7)) });
      await expect(checkWork(stolen.bytes, stolen.hash, work, ANYTHING)).rejects.toThrow(/for another block/);
    }
    // its target is met by every second hash
    expect([...results].sort()).toEqual([expect.stringContaining('no work was done'), 'proven']);
    const placed = rawBlock([coinbase], {
      ...options,
      auxpow: (hash) => rawAuxPow(hash, { chainBranch: [Buffer.alloc(32, 1)], chainIndex: 1 }),
    });
    const other = rawBlock([coinbase], {
      ...options,
      auxpow: (hash) => rawAuxPow(hash, { chainBranch: [Buffer.alloc(32, 1)], chainIndex: 0 }),
    });
    const said = await Promise.all(
      [placed, other].map((one) => checkWork(one.bytes, one.hash, work, ANYTHING).catch((error: Error) => error.message)),
    );
    expect(said.filter((one) => one?.includes('not at the place'))).toHaveLength(1);
  });

  test('a target that is none is refused', () => {
    for (const bits of [0, 0x1d800001, 0x2200ffff, 0x23000001, 0x01003456]) expect(() => targetOf(bits)).toThrow(Malformed);
    expect(targetOf(0x1d00ffff)).toBe(0xffffn << 208n);
    expect(targetOf(0x0200ff00)).toBe(0xffn);
  });
});

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A node of mainnet at the top of these blocks (hash and bytes), the lowest at height 700,000. */
async function nodeWith(
  blocks: readonly { readonly hash: string; readonly bytes: Buffer }[],
  claimed = 700_000 + blocks.length - 1,
) {
  const { genesis, splits } = utxoRow('BTC').utxo as unknown as {
    genesis: { mainnet: string };
    splits: { height: number; hash: string }[];
  };
  const tip = blocks.at(-1)?.hash as string;
  function result({ method, params }: Call): unknown {
    const [first, raw] = params;
    if (method === 'getblockchaininfo') return { blocks: claimed, headers: claimed, bestblockhash: tip };
    if (method === 'getblockhash' && first === 0) return genesis.mainnet;
    if (method === 'getblockhash' && first === claimed) return tip;
    if (method === 'getblockhash')
      return splits.find(({ height }) => height === first)?.hash ?? blocks[(first as number) - 700_000]?.hash;
    const bytes = blocks.find(({ hash }) => hash === first)?.bytes as Buffer;
    if (method === 'getblockheader')
      return raw === false ? bytes.toString('hex', 0, 80) : { time: Math.floor(Date.now() / 1000) };
    return method === 'getblock' ? bytes.toString('hex') : 8;
  }
  const refused = { code: -8, message: 'Block height out of range' };
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const parts: Buffer[] = [];
    for await (const part of request) parts.push(part as Buffer);
    const asked = JSON.parse(Buffer.concat(parts).toString()) as Call | Call[];
    const answer = (call: Call) => {
      const said = result(call);
      return said === undefined ? { result: null, error: refused, id: call.id } : { result: said, error: null, id: call.id };
    };
    response.end(JSON.stringify(Array.isArray(asked) ? asked.map(answer) : answer(asked)));
  }
  const server = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = createUtxoNode({ currency: 'BTC', url, network: 'mainnet', clock: { now: () => Date.now() } });
  open.push(async () => {
    await node.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return node;
}

describe('of two nodes', () => {
  const coinbase = () => rawCoinbase([{ minor: 1n, script: someScript('miner') }]);
  function chainOf(count: number): { hash: string; bytes: Buffer }[] {
    const blocks: { hash: string; bytes: Buffer }[] = [];
    for (let n = 0; n < count; n++) blocks.push(rawBlock([coinbase()], { previousHash: blocks.at(-1)?.hash ?? '11'.repeat(32) }));
    return blocks;
  }

  test.each([
    ['invents blocks without work', 0, /block [0-9a-f]{64}: its target is too easy/],
    ['claims blocks that it does not have', 100_000, /it claims 800007 blocks and has no block 700012/],
  ])('one that %s is never chosen, and named', async (_, more, fault) => {
    const blocks = chainOf(20);
    const honest = await nodeWith(blocks.slice(0, 12));
    const liar = await nodeWith(more === 0 ? blocks : blocks.slice(0, 12), 700_019 + (more === 0 ? 0 : more - 12));
    const group = createNodeGroup([honest, liar], { clock: { now: () => Date.now() } });
    for (let look = 0; look < 2; look++) {
      const condition = await group.condition();
      expect(condition).toMatchObject({ state: 'ready', node: honest.name, height: 700_011 });
      expect(condition).toMatchObject({ others: [expect.stringMatching(`^failed: ${liar.name}: `)] });
      if (condition.state === 'ready') expect(condition.others?.[0]).toMatch(fault);
    }
  });
});
