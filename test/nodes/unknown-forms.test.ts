// Transactions and proofs in a form that nobody knows yet: they are read from the node's decoded answer, as far as it proves itself.
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, describe, expect, test, vi } from 'vitest';
import type { UtxoCode } from '../../src/core/currency.ts';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node/node.ts';
import { p2pkh, rawBlock, rawPayment, type Sealed } from '../support/raw-blocks.ts';
import { hash256, i32, i64, reversed, u32, varBytes } from '../support/raw-bytes.ts';
import { CODES, coinbase, features, ours, watch } from './watched-forms.ts';

vi.setConfig({ testTimeout: 60_000 });
type Call = { readonly id: number; readonly method: string; readonly params: readonly unknown[] };
const open: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of open.splice(0)) await close();
});
async function nodeOf(currency: UtxoCode, result: (call: Call) => unknown): Promise<UtxoNode> {
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const calls = JSON.parse(Buffer.concat(parts).toString()) as Call | Call[];
      const one = (call: Call) => {
        const said = result(call);
        const refusal = { result: null, error: { code: -5, message: 'none' }, id: call.id };
        return said === undefined ? refusal : { result: said, error: null, id: call.id };
      };
      response.end(JSON.stringify(Array.isArray(calls) ? calls.map(one) : one(calls)));
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
  return node;
}

/** A payment in a future form: marked by unknown flags, with more after its outputs. Its txid leaves both out, as BIP141's does. */
function unknownForm(script: Buffer): Sealed & { readonly words: Record<string, unknown> } {
  const [txid, unlock] = [randomBytes(32).toString('hex'), randomBytes(30)];
  const plain = Buffer.concat([
    Buffer.of(1),
    reversed(txid),
    u32(3),
    varBytes(unlock),
    u32(5),
    Buffer.of(1),
    i64(38_462n),
    varBytes(script),
  ]);
  const name = hash256(Buffer.concat([i32(2), plain, u32(9)]))
    .reverse()
    .toString('hex');
  return {
    bytes: Buffer.concat([i32(2), Buffer.of(0, 0x42), plain, randomBytes(50), u32(9)]),
    txid: name,
    words: {
      txid: name,
      version: 2,
      locktime: 9,
      vin: [{ txid, vout: 3, scriptSig: { hex: unlock.toString('hex') }, sequence: 5 }],
      vout: [{ n: 0, value: 0.00038462, scriptPubKey: { hex: script.toString('hex') } }],
    },
  };
}

describe.each(CODES)('a form that nobody knows yet (%s)', (code) => {
  const block = (transactions: readonly Sealed[]) =>
    rawBlock([coinbase(), ...transactions], { headerHash: features(code).headerHash });
  const telling = (made: { bytes: Buffer }, all: readonly (Sealed & { words?: object })[], first: Sealed) => (call: Call) => {
    if (call.method === 'getblock') {
      if (call.params[1] === 0 || call.params[1] === false) return made.bytes.toString('hex');
      return { tx: [first, ...all].map(({ txid }) => txid) };
    }
    const one = [first, ...all].find(({ txid }) => txid === call.params[0]) as (Sealed & { words?: object }) | undefined;
    return call.params[1] === undefined || call.params[1] === false || call.params[1] === 0
      ? one?.bytes.toString('hex')
      : one?.words;
  };

  test('is read from the node’s decoded answer in a block, beside what is read from its bytes', async () => {
    const [strange, stranger, plain, first] = [
      unknownForm(ours),
      unknownForm(p2pkh(randomBytes(20))),
      rawPayment(false, ours),
      coinbase(),
    ];
    const all = [stranger, plain, strange];
    const made = rawBlock([first, ...all], { headerHash: features(code).headerHash });
    const node = await nodeOf(code, telling(made, all, first));
    const { touched, transactionCount } = await node.readBlock(made.hash, watch);
    expect(transactionCount).toBe(4);
    expect(touched.map((one) => one.txid)).toEqual([plain.txid, strange.txid]);
    expect(touched[1]?.outputs).toEqual([{ vout: 0, script: ours.toString('hex'), amountMinor: 38_462n }]);
  });

  test.each([
    ['the amount', { vout: [{ n: 0, value: 9, scriptPubKey: { hex: ours.toString('hex') } }] }],
    ['the lock time', { locktime: 10 }],
  ])('lets the chain wait when the txid does not prove %s that the node gives', async (_, lie) => {
    const [strange, first] = [unknownForm(ours), coinbase()];
    const lying = { ...strange, words: { ...strange.words, ...lie } };
    const made = rawBlock([first, lying], { headerHash: features(code).headerHash });
    const node = await nodeOf(code, telling(made, [lying], first));
    await expect(node.readBlock(made.hash, watch)).rejects.toMatchObject({
      state: 'bad_answer',
      message: expect.stringMatching(/block [0-9a-f]{64} cannot be read: .*from its decoded answer: the transaction hashes to/),
    });
  });

  test('lets the chain wait when the node lists other transactions', async () => {
    const [strange, first] = [unknownForm(ours), coinbase()];
    const made = block([strange]);
    const node = await nodeOf(code, telling(made, [strange], first));
    await expect(node.readBlock(made.hash, watch)).rejects.toThrow(/do not fit the Merkle root/);
  });

  test('is read in the mempool, and stops nothing where it cannot be', async () => {
    const [strange, hidden, plain] = [unknownForm(ours), unknownForm(ours), rawPayment(false, ours)];
    const all: (Sealed & { words?: object })[] = [strange, { bytes: hidden.bytes, txid: hidden.txid }, plain];
    const node = await nodeOf(code, telling({ bytes: Buffer.alloc(0) }, all, coinbase()));
    const { touched, missing, unread } = await node.readMempoolTransactions(
      all.map((one) => one.txid),
      watch,
    );
    expect(touched.map((one) => one.txid)).toEqual([strange.txid, plain.txid]);
    expect(missing).toEqual([]);
    expect(unread).toMatchObject([{ txid: hidden.txid, reason: expect.stringContaining('cannot be read') }]);
    expect(node.readRaw(strange.bytes, watch)).toBeNull();
  });
});

test('a proof of merged mining in a form that nobody knows is moved over', async () => {
  const [first, paid] = [coinbase(), rawPayment(false, ours)];
  const made = rawBlock([first, paid], {
    version: 0x00620104,
    auxpow: () => Buffer.concat([Buffer.alloc(4), Buffer.of(0xff), randomBytes(500)]),
  });
  const node = await nodeOf('DOGE', ({ method, params }) => {
    if (method === 'getblock') return params[1] === false ? made.bytes.toString('hex') : { tx: [first.txid, paid.txid] };
    const one = [first, paid].find(({ txid }) => txid === params[0]) as Sealed;
    const words = { txid: one.txid, version: 2, locktime: 0, vin: [{ coinbase: 'aa', sequence: 0 }], vout: [] };
    return params[1] === false || params[1] === 0 ? one.bytes.toString('hex') : words;
  });
  expect(await node.readBlock(made.hash, watch)).toMatchObject({ transactionCount: 2, touched: [{ txid: paid.txid }] });
});
