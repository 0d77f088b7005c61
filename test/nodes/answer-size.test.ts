// The largest answers that a node can be made to give: many large transactions in a mempool, locks in decoded answers, a list of a million,
// blocks above 32 MB. Each is read, in parts where possible, and none is held whole unless necessary.
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import fc from 'fast-check';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node/node.ts';
import { hexSink } from '../../src/outside/utxo/node/rpc-body.ts';
import { rawBlock, rawCoinbase, rawPayment, rawTransaction, type Sealed, someScript } from '../support/raw-blocks.ts';

vi.setConfig({ testTimeout: 60_000 });

type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
const MiB = 1024 * 1024;
const nothing = { hasScript: () => false, hasOutpoint: () => false, fresh: async () => undefined };
const ours = someScript('ours');
const watch = {
  ...nothing,
  hasScript: (bytes: Uint8Array, start: number, end: number) => ours.equals(bytes.subarray(start, end)),
};
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});

/** A node whose every answer is a result, and what it was asked: how many calls at once, and how large the answer was. */
async function nodeOf(
  currency: UtxoCode,
  result: (call: Call) => unknown,
): Promise<{ node: UtxoNode; asked: { calls: number; bytes: number }[] }> {
  const asked: { calls: number; bytes: number }[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const calls = JSON.parse(Buffer.concat(parts).toString()) as Call | Call[];
      const one = (call: Call) => ({ result: result(call), error: null, id: call.id });
      const text = Buffer.from(JSON.stringify(Array.isArray(calls) ? calls.map(one) : one(calls)));
      asked.push({ calls: Array.isArray(calls) ? calls.length : 1, bytes: text.length });
      response.setHeader('content-length', text.length).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`;
  const node = createUtxoNode({ currency, url, network: 'regtest', clock: { now: () => Date.now() } });
  open.push(async () => {
    await node.close();
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { node, asked };
}

/** As large as policy lets one be: 4 × 110 + 390,000 bytes of witness. */
function largeTransaction(n: number, script: Buffer): Sealed {
  const witness = [Buffer.alloc(390_000, 0x51)];
  return rawTransaction({
    inputs: [{ txid: n.toString(16).padStart(64, '0'), vout: 0, witness }],
    outputs: [{ minor: 1_000n, script }],
  });
}

describe('a mempool', () => {
  test.each([
    ['of nothing but the largest transactions', 0],
    ['that begins with small ones', 400],
  ])('%s is read in requests that stay small', async (_, small) => {
    const all = [
      ...Array.from({ length: small }, () => rawPayment(true, someScript('another'))),
      ...Array.from({ length: 130 }, (_, n) => largeTransaction(n, n % 10 === 0 ? ours : someScript('another'))),
    ];
    const byTxid = new Map(all.map((one) => [one.txid, one.bytes.toString('hex')]));
    const { node, asked } = await nodeOf('BTC', ({ params }) => byTxid.get(params[0] as string));
    const read = await node.readMempoolTransactions([...byTxid.keys()], watch);
    expect(read.missing).toEqual([]);
    expect(read.touched).toHaveLength(13);
    expect(Math.max(...asked.map(({ calls }) => calls))).toBeLessThanOrEqual(100);
    const [least] = [all.reduce((sum, one) => sum + one.bytes.length * 2, 0)];
    // what was answered in vain is a small part of the whole
    expect(asked.reduce((sum, one) => sum + one.bytes, 0)).toBeLessThan(least * 2);
    const again = asked.length;
    await node.readMempoolTransactions([...byTxid.keys()].slice(small), watch);
    expect(asked.slice(again).every(({ bytes }) => bytes <= 16 * MiB)).toBe(true);
  });

  test('of more than a million transactions is listed', async () => {
    const txids = Array.from({ length: 1_300_000 }, (_, n) => n.toString(16).padStart(64, '0'));
    const { node } = await nodeOf('DOGE', () => txids);
    expect(await node.mempool()).toHaveLength(txids.length);
  });

  test('with one transaction that is too large to be held is reported with its size', async () => {
    const server = createServer((_, response) => {
      response.setHeader('content-length', 4_000 * MiB).write('[{"result":"00');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://u:p@127.0.0.1:${(server.address() as AddressInfo).port}`;
    const node = createUtxoNode({ currency: 'BTC', url, network: 'regtest', clock: { now: () => Date.now() } });
    open.push(async () => {
      await node.close();
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    });
    await expect(node.readMempoolTransactions(['ab'.repeat(32)], nothing)).rejects.toMatchObject({
      state: 'bad_answer',
      message: expect.stringMatching(/an answer is larger than \d+ bytes/),
    });
  });
});

test('locks of payments are read from answers of a megabyte each', async () => {
  const txids = Array.from({ length: 120 }, (_, n) => (n + 1).toString(16).padStart(64, '0'));
  const words = 'x'.repeat(MiB);
  const { node, asked } = await nodeOf('DASH', ({ params }) => ({
    txid: params[0],
    hex: words,
    chainlock: false,
    instantlock: true,
    instantlock_internal: params[0] !== txids[0],
  }));
  expect([...(await node.locks(txids)).keys()]).toEqual(txids.slice(1));
  // an answer that is parsed at once holds up everything else of this process
  expect(asked.filter(({ bytes }) => bytes > 4 * MiB)).toHaveLength(1);
});

test('a block that has grown above 32 MB is read', async () => {
  const data = Buffer.alloc(1_000_000, 0x6a);
  const filler = Array.from({ length: 45 }, (_, n) =>
    rawTransaction({
      inputs: [{ txid: (n + 1).toString(16).padStart(64, '0'), vout: 0 }],
      outputs: [{ minor: 0n, script: data }],
    }),
  );
  const block = rawBlock([rawCoinbase([{ minor: 1n, script: someScript('miner') }]), ...filler, rawPayment(false, ours)]);
  const { node, asked } = await nodeOf('BCH', () => block.bytes.toString('hex'));
  const { touched, transactionCount } = await node.readBlock(block.hash, watch);
  expect([touched.length, transactionCount]).toEqual([1, 47]);
  expect(asked[0]?.bytes).toBeGreaterThan(85 * MiB);
});

describe('hex is decoded on its way', () => {
  const forms = [
    (hex: string) => `{"result":"${hex}","error":null,"id":0}`,
    (hex: string) => `{"jsonrpc":"2.0","result":"${hex}","id":0}\n`,
    (hex: string) => `{ "id": 0, "error": null, "result": "${hex}" }`,
  ];
  test('in whatever pieces it comes', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...forms),
        fc.uint8Array({ minLength: 1, maxLength: 500 }),
        fc.array(fc.integer({ min: 1, max: 200 }), { minLength: 1 }),
        (form, bytes, sizes) => {
          const text = Buffer.from(form(Buffer.from(bytes).toString('hex')));
          const sink = hexSink(1 << 20);
          for (let at = 0, n = 0; at < text.length; n++) {
            const end = at + (sizes[n % sizes.length] as number);
            sink.take(text.subarray(at, end));
            at = end;
          }
          expect(sink.decoded()?.equals(Buffer.from(bytes))).toBe(true);
          expect(JSON.parse(sink.bytes().toString())).toMatchObject({ result: '' });
        },
      ),
      { numRuns: 300 },
    );
  });

  test.each([
    ['an odd number of digits', '{"result":"abc","error":null}'],
    ['something that is no hex', '{"result":"abxz","error":null}'],
    ['nothing', '{"result":"","error":null}'],
    ['no string', '{"result":null,"error":{"code":-5}}'],
    ['another answer', '[1,2]'],
  ])('and %s is none', (_, text) => {
    for (const size of [1, 3, 1000]) {
      const sink = hexSink(1 << 20);
      for (let at = 0; at < text.length; at += size) sink.take(Buffer.from(text.slice(at, at + size)));
      expect(sink.decoded()).toBeNull();
    }
  });
});
