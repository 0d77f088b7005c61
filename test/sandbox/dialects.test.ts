// The simulated nodes of Bitcoin Cash, Dash and Dogecoin: what each does that the others do not, with transactions signed by other libraries.
import { HDKey } from '@scure/bip32';
import * as scure from '@scure/btc-signer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type UtxoCode, utxoRow } from '../../src/core/currency.ts';
import { decodeAddress } from '../../src/outside/utxo/address.ts';
import { createUtxoNode, type UtxoNode } from '../../src/outside/utxo/node/node.ts';
import { createRpc, type Rpc } from '../../src/outside/utxo/node/rpc.ts';
import { RpcRefusal } from '../../src/outside/utxo/node/trouble.ts';
import { cashAddress, readCashAddress } from '../../src/sandbox/utxo/cashaddr.ts';
import { addressOf } from '../../src/sandbox/utxo/scripts.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { cashKey, signedPayment } from '../support/cash-wallet.ts';
import { p2pkh } from '../support/raw-blocks.ts';

const everything = { hasScript: () => true, hasOutpoint: () => false, fresh: async () => undefined };

type Opened = { readonly node: ServedNode; readonly rpc: Rpc; readonly port: UtxoNode; close(): Promise<void> };
async function open(currency: UtxoCode): Promise<Opened> {
  const node = await createSimulatedNode({ currency, folder: null, now: () => Date.now() });
  const rpc = createRpc({ url: node.url, silenceMs: 5_000, connections: 1 });
  const port = createUtxoNode({ currency, url: node.url, network: 'sandbox', clock: { now: () => Date.now() } });
  return { node, rpc, port, close: async () => void (await Promise.all([rpc.close(), port.close(), node.stop()])) };
}
/** The code and text of a refusal. */
async function refusal(call: Promise<unknown>): Promise<[number, string]> {
  const error = await call.then(
    () => null,
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof RpcRefusal)) throw new Error(`no refusal: ${String(error)}`);
  return [error.code, error.message.slice(error.method.length + 2, error.message.lastIndexOf(' ('))];
}

function openedFor(currency: UtxoCode): { readonly it: Opened } {
  const held: { it: Opened } = { it: undefined as unknown as Opened };
  beforeAll(async () => {
    held.it = await open(currency);
  });
  afterAll(() => held.it.close());
  return held;
}

describe('Dash', () => {
  const dash = openedFor('DASH');

  it('locks each transaction and each block at once', async () => {
    const { node, rpc, port } = dash.it;
    const paid = node.pay([{ minor: 100_000n, script: p2pkh(Buffer.alloc(20, 1)) }]);
    const txid = paid?.txid as string;
    expect(await rpc.call('getrawtransaction', [txid, 1])).toMatchObject({
      type: 0,
      height: -1,
      confirmations: 0,
      instantlock: true,
      instantlock_internal: true,
      chainlock: false,
    });
    expect(await port.locks([txid])).toEqual(new Map([[txid, 'instantsend']]));
    const { hash, height } = node.mine(1);
    expect(await rpc.call('getbestchainlock')).toMatchObject({ blockhash: hash, height });
    expect(await rpc.call('getblock', [hash])).toMatchObject({ chainlock: true });
    expect(await port.locks([txid, '11'.repeat(32)])).toEqual(new Map([[txid, 'chainlock']]));
    expect(await rpc.call('getislocks', [[txid, '11'.repeat(32)]])).toMatchObject([{ txid }, 'None']);
  });

  it('locks nothing while the fault no_locks is there, and the chain again with the first block after it', async () => {
    const { node, port } = dash.it;
    node.setTrouble({ down: false, fault: 'no_locks', left: null });
    const txid = node.pay([{ minor: 100_000n, script: p2pkh(Buffer.alloc(20, 2)) }])?.txid as string;
    node.mine(2);
    expect(await port.locks([txid])).toEqual(new Map());
    node.setTrouble({ down: false, fault: null, left: null });
    expect(await port.locks([txid])).toEqual(new Map());
    node.mine(1);
    expect(await port.locks([txid])).toEqual(new Map([[txid, 'chainlock']]));
  });

  it('refuses the rival of a locked transaction', async () => {
    const { node, rpc } = dash.it;
    const paid = node.pay([{ minor: 100_000n, script: p2pkh(Buffer.alloc(20, 3)) }]);
    const rival = { ...paid, outputs: [{ minor: 50_000n, script: p2pkh(Buffer.alloc(20, 4)) }] } as NonNullable<typeof paid>;
    const { transactionBytes } = await import('../../src/sandbox/utxo/transaction.ts');
    expect(await refusal(rpc.call('sendrawtransaction', [transactionBytes(rival, false).toString('hex')]))).toEqual([
      -26,
      'tx-txlock-conflict',
    ]);
  });

  it('names its blocks by X11, and writes its own addresses and units', async () => {
    const { node, rpc, port } = dash.it;
    const hash = node.state.active.at(-1)?.hash as string;
    expect((await port.readBlock(hash, everything)).hash).toBe(hash);
    const script = p2pkh(Buffer.alloc(20, 1));
    const address = addressOf(script, utxoRow('DASH').utxo.address.regtest) as string;
    expect(decodeAddress('DASH', 'sandbox', address)).toMatchObject({ kind: 'p2pkh' });
    const paid = node.pay([{ minor: 100_001n, script }]);
    expect(await rpc.call('getrawtransaction', [paid?.txid, 1])).toMatchObject({
      vout: [{ value: '0.00100001', valueSat: 100_001, scriptPubKey: { addresses: [address] } }, {}],
    });
  });
});

describe('Dogecoin', () => {
  const doge = openedFor('DOGE');

  it('takes a boolean for getblock and nothing else', async () => {
    const { node, rpc } = doge.it;
    const { hash } = node.mine(1);
    expect(await refusal(rpc.call('getblock', [hash, 0]))).toEqual([-1, 'JSON value is not a boolean as expected']);
    expect(await rpc.call('getblock', [hash, true])).toMatchObject({ hash, version: 0x00620104 });
  });

  it('puts the proof of the parent chain behind every header but the first', async () => {
    const { node, rpc, port } = doge.it;
    const paid = node.pay([{ minor: 500_000_000n, script: p2pkh(Buffer.alloc(20, 5)) }]);
    const { hash } = node.mine(1);
    const facts = await port.readBlock(hash, everything);
    expect(facts.touched.map((one) => one.txid)).toContain(paid?.txid);
    expect(((await rpc.call('getblockheader', [hash, false])) as string).length).toBeGreaterThan(160);
    const first = node.state.active[0]?.hash as string;
    expect((await rpc.call('getblockheader', [first, false])) as string).toHaveLength(160);
  });

  it('has the methods of its age', async () => {
    const { rpc } = doge.it;
    for (const method of ['getzmqnotifications', 'testmempoolaccept', 'getindexinfo', 'getdsproof', 'getbestchainlock'])
      expect((await refusal(rpc.call(method)))[0]).toBe(-32601);
    expect(await rpc.call('getinfo')).toMatchObject({ version: 1140900 });
    expect(await rpc.call('estimatesmartfee', [6])).toEqual({ feerate: -1, blocks: 6 });
  });
});

describe.each(['DOGE', 'DASH'] as const)('a transaction of %s signed by another library', (currency) => {
  const held = openedFor(currency);
  const parameters = utxoRow(currency).utxo.address.regtest;
  const network = { bech32: 'none', pubKeyHash: parameters.pubKeyHash, scriptHash: parameters.scriptHash, wif: parameters.wif };
  const key = HDKey.fromMasterSeed(new Uint8Array(32).fill(7));
  const mine = scure.p2pkh(key.publicKey as Uint8Array, network);
  const fee = currency === 'DOGE' ? 2_000_000n : 2_000n;

  function spend(outputs: readonly [Uint8Array, bigint][], mutate: (tx: scure.Transaction) => void = () => undefined): string {
    const { node } = held.it;
    const source = node.pay([{ minor: 10_0000_0000n, script: Buffer.from(mine.script) }]);
    const tx = new scure.Transaction({ version: 1, allowUnknownOutputs: true, disableScriptCheck: true });
    tx.addInput({ txid: source?.txid as string, index: 0, nonWitnessUtxo: source?.raw as Uint8Array });
    for (const [script, amount] of outputs) tx.addOutput({ script, amount });
    tx.sign(key.privateKey as Uint8Array);
    tx.finalize();
    mutate(tx);
    return tx.hex;
  }

  it('is taken, and one with a spoiled signature is not', async () => {
    const { rpc, node } = held.it;
    const good = spend([[mine.script, 10_0000_0000n - fee]]);
    const txid = (await rpc.call('sendrawtransaction', [good])) as string;
    expect(node.state.mempool.has(txid)).toBe(true);
    const bad = Buffer.from(spend([[mine.script, 10_0000_0000n - fee]]), 'hex');
    bad[70] = (bad[70] as number) ^ 1;
    const [code, message] = await refusal(rpc.call('sendrawtransaction', [bad.toString('hex')]));
    expect([code, message.includes('mandatory-script-verify-flag')]).toEqual([-26, true]);
  });

  it('pays no witness program, no dust, and its fee', async () => {
    const { rpc } = held.it;
    const prefix = (code: number): string => (currency === 'DOGE' ? `${code}: ` : '');
    const witness = Uint8Array.from([0, 20, ...new Uint8Array(20)]);
    const send = (outputs: readonly [Uint8Array, bigint][]) => refusal(rpc.call('sendrawtransaction', [spend(outputs)]));
    expect(await send([[witness, 9_0000_0000n]])).toEqual([-26, `${prefix(64)}scriptpubkey`]);
    const dust = currency === 'DOGE' ? 99_999n : 545n;
    expect(await send([[mine.script, dust]])).toEqual([-26, `${prefix(64)}dust`]);
    expect((await send([[mine.script, 10_0000_0000n - 100n]]))[1]).toMatch(/min relay fee not met/);
    // Dogecoin: a small output costs as much again as it is small
    if (currency === 'DOGE')
      expect(
        await send([
          [mine.script, 999_999n],
          [mine.script, 10_0000_0000n - 999_999n - 500_000n],
        ]),
      ).toEqual([-26, '66: min relay fee not met']);
  });

  it('is refused in the form that has a witness', async () => {
    const form = `02000000000101${'00'.repeat(60)}`;
    expect((await refusal(held.it.rpc.call('sendrawtransaction', [form])))[0]).toBe(-22);
  });
});

describe('Bitcoin Cash', () => {
  const cash = openedFor('BCH');
  const key = cashKey(3);

  it('takes a Schnorr signature of another library, and not a spoiled one', async () => {
    const { node, rpc } = cash.it;
    const source = node.pay([{ minor: 1_000_000n, script: key.script }]);
    const output = { txid: source?.txid as string, vout: 0, minor: 1_000_000n };
    const { hex, txid } = signedPayment(key, [output], [{ script: key.script, minor: 999_000n }]);
    const bad = Buffer.from(hex, 'hex');
    bad[70] = (bad[70] as number) ^ 1;
    expect((await refusal(rpc.call('sendrawtransaction', [bad.toString('hex')])))[1]).toMatch(/script-verify-flag.* \(code 16\)/);
    expect(await rpc.call('sendrawtransaction', [hex])).toBe(txid);
  });

  it('does not let a rival replace what is in its mempool', async () => {
    const { node, rpc } = cash.it;
    const source = node.pay([{ minor: 1_000_000n, script: key.script }]);
    const output = { txid: source?.txid as string, vout: 0, minor: 1_000_000n };
    await rpc.call('sendrawtransaction', [signedPayment(key, [output], [{ script: key.script, minor: 999_000n }]).hex]);
    const rival = signedPayment(key, [output], [{ script: key.script, minor: 900_000n }]);
    expect(await refusal(rpc.call('sendrawtransaction', [rival.hex]))).toEqual([-26, 'txn-mempool-conflict (code 18)']);
  });

  it('orders a block by ids, and gives it back to the mempool with parents before their children', async () => {
    const { node, port } = cash.it;
    let output = { txid: node.pay([{ minor: 10_000_000n, script: key.script }])?.txid as string, vout: 0, minor: 10_000_000n };
    for (let i = 0; i < 12; i++) {
      const next = signedPayment(key, [output], [{ script: key.script, minor: output.minor - 1_000n }]);
      await cash.it.rpc.call('sendrawtransaction', [next.hex]);
      output = { txid: next.txid, vout: 0, minor: output.minor - 1_000n };
    }
    const block = node.mine(1);
    const ids = block.transactions.slice(1).map((one) => one.txid);
    expect(ids.length).toBeGreaterThan(12);
    expect(ids).toEqual([...ids].sort());
    expect((await port.readBlock(block.hash, everything)).transactionCount).toBe(ids.length + 1);
    node.rewind(1);
    const seen = new Set<string>();
    for (const { transaction } of node.state.mempool.values()) {
      for (const input of transaction.inputs) if (ids.includes(input.txid)) expect(seen.has(input.txid)).toBe(true);
      seen.add(transaction.txid);
    }
    expect(node.mine(1).transactions).toHaveLength(ids.length + 1);
  });

  it('knows no double-spend proof, and no block beyond its tip', async () => {
    const { node, port } = cash.it;
    expect(await port.hashAt(1_000_000)).toBeNull();
    const txid = node.pay([{ minor: 5_000n, script: key.script }])?.txid as string;
    expect(await port.doubleSpendProofs?.([txid])).toEqual(new Set());
  });

  it('writes and reads cash addresses as the production code does', () => {
    const hash = Buffer.from('76a04053bda0a88bda5177b86a15c3b29f559873', 'hex');
    expect(cashAddress('bitcoincash', 'pubkeyhash', hash)).toBe('bitcoincash:qpm2qsznhks23z7629mms6s4cwef74vcwvy22gdx6a');
    expect(cashAddress('bitcoincash', 'scripthash', hash)).toBe('bitcoincash:ppm2qsznhks23z7629mms6s4cwef74vcwvn0h829pq');
    const { address } = key;
    for (const text of [address, address.slice('bchreg:'.length), address.toUpperCase()])
      expect(readCashAddress('bchreg', text)).toEqual({ kind: 'pubkeyhash', hash: key.script.subarray(3, 23) });
    for (const text of ['', 'bchreg:', `${address}q`, address.replace('bchreg', 'bchtest'), address.replace(/.$/, 'b')])
      expect(readCashAddress('bchreg', text)).toBeNull();
  });
});
