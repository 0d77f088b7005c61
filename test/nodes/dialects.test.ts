// The Dogecoin and Dash dialects over a real bitcoind refuse what the real nodes refuse, in their words, so that a test which passes here
// was checked against those rules. And bchd behaves as our client expects.
import { HDKey } from '@scure/bip32';
import * as scure from '@scure/btc-signer';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { utxoRow } from '../../src/core/currency.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import { type Bchd, payFrom, startBchd } from '../support/bchd.ts';
import { type DialectNode, startDialect } from '../support/dialect/dialect.ts';

const clock = { now: () => Date.now() };
const nothing = { hasScript: () => false, hasOutpoint: () => false, fresh: async () => undefined };
const refusal = (call: Promise<unknown>): Promise<string> =>
  call.then(
    () => 'no refusal',
    (error: Error) => error.message,
  );

describe.each([
  { currency: 'DOGE', maturity: 240, fee: 2_000_000n, code: (n: number) => `${n}: `, dust: 100_000n },
  { currency: 'DASH', maturity: 100, fee: 2_000n, code: () => '', dust: 546n },
] as const)('$currency', ({ currency, maturity, fee, code, dust }) => {
  let node: DialectNode;
  const parameters = utxoRow(currency).utxo.address.regtest;
  const network = { bech32: 'none', pubKeyHash: parameters.pubKeyHash, scriptHash: parameters.scriptHash, wif: parameters.wif };
  const key = HDKey.fromMasterSeed(new Uint8Array(32).fill(9));
  const mine = scure.p2pkh(key.publicKey as Uint8Array, network);
  let nextCurrency = 1;

  type Spend = { outputs: readonly [Uint8Array, bigint][]; height?: number; sequence?: number };
  async function spend({ outputs, height = nextCurrency++, sequence = 0xffffffff }: Spend): Promise<string> {
    const block = await node.rpc<{ tx: string[] }>('getblock', await node.rpc('getblockhash', height), true);
    const source = await node.rpc<string>('getrawtransaction', block.tx[0]);
    const tx = new scure.Transaction({ version: 1, allowUnknownOutputs: true, disableScriptCheck: true });
    tx.addInput({ txid: block.tx[0] as string, index: 0, nonWitnessUtxo: Uint8Array.from(Buffer.from(source, 'hex')), sequence });
    for (const [script, amount] of outputs) tx.addOutput({ script, amount });
    tx.sign(key.privateKey as Uint8Array);
    tx.finalize();
    return tx.hex;
  }
  const send = (hex: string): Promise<string> => node.rpc('sendrawtransaction', hex);
  const whole = 50_0000_0000n;

  beforeAll(async () => {
    node = await startDialect(currency);
    await node.rpc('generatetoaddress', 30, mine.address);
    await node.rpc('generatetoaddress', maturity, await node.rpc('getnewaddress'));
  });
  afterAll(() => node?.remove());

  test('checks signatures, and gives the txid that we compute', async () => {
    const good = await spend({ outputs: [[mine.script, whole - fee]] });
    expect(await send(good)).toBe(scure.Transaction.fromRaw(Uint8Array.from(Buffer.from(good, 'hex'))).id);
    expect(await send(good)).toMatch(/^[0-9a-f]{64}$/);
    const bad = Buffer.from(await spend({ outputs: [[mine.script, whole - fee]] }), 'hex');
    bad[70] = (bad[70] as number) ^ 1;
    expect(await refusal(send(bad.toString('hex')))).toContain(`${code(16)}mandatory-script-verify-flag-failed`);
    expect(await refusal(send('zz'))).toContain('TX decode failed (-22)');
    expect(await refusal(send(`02000000000101${'00'.repeat(60)}`))).toContain('TX decode failed (-22)');
  });

  test('refuses witness programs, dust, and too low a fee', async () => {
    const witness = Uint8Array.from([0, 20, ...new Uint8Array(20)]);
    expect(await refusal(send(await spend({ outputs: [[witness, whole - fee]] })))).toBe(
      `sendrawtransaction: ${code(64)}scriptpubkey (-26)`,
    );
    const small = await spend({
      outputs: [
        [mine.script, dust - 1n],
        [mine.script, whole - fee - dust],
      ],
    });
    expect(await refusal(send(small))).toBe(`sendrawtransaction: ${code(64)}dust (-26)`);
    expect(await refusal(send(await spend({ outputs: [[mine.script, whole - 100n]] })))).toBe(
      `sendrawtransaction: ${code(66)}min relay fee not met (-26)`,
    );
  });

  test('does not let a coinbase be spent before its time', async () => {
    await node.rpc('generatetoaddress', 1, mine.address);
    const block = await node.rpc<number>('getblockcount');
    expect(await refusal(send(await spend({ outputs: [[mine.script, 1_0000_0000n]], height: block })))).toContain(
      `${code(16)}bad-txns-premature-spend-of-coinbase`,
    );
  });

  test('lets a rival in as the currency does', async () => {
    const height = nextCurrency++;
    const first = await spend({ outputs: [[mine.script, whole - fee]], height, sequence: 0xfffffffd });
    const rival = await spend({ outputs: [[mine.script, whole - 20n * fee]], height });
    await send(first);
    const answer = await send(rival).catch((error: Error) => error.message);
    if (currency === 'DOGE') {
      expect(answer).toMatch(/^[0-9a-f]{64}$/);
      expect(await refusal(send(first))).toBe('sendrawtransaction: 18: txn-mempool-conflict (-26)');
      return;
    }
    expect(answer).toBe('sendrawtransaction: txn-mempool-conflict (-26)');
    await node.lockTransaction(scure.Transaction.fromRaw(Uint8Array.from(Buffer.from(first, 'hex'))).id);
    expect(await refusal(send(rival))).toBe('sendrawtransaction: tx-txlock-conflict (-26)');
    await expect(node.mineExactly([rival])).rejects.toThrow('conflict-tx-lock');
  });

  test('says what was mined already, and what is spent', async () => {
    const height = nextCurrency++;
    const one = await spend({ outputs: [[mine.script, whole - fee]], height });
    await send(one);
    await node.mine(1);
    const other = await spend({ outputs: [[mine.script, whole - 2n * fee]], height });
    expect(await refusal(send(one))).toMatch(/ransaction already in block chain \(-27\)$/);
    expect(await refusal(send(other))).toBe(
      currency === 'DOGE'
        ? 'sendrawtransaction: Missing inputs (-25)'
        : 'sendrawtransaction: bad-txns-inputs-missingorspent (-25)',
    );
  });

  test('names its blocks as the currency does, from its own genesis on', async () => {
    expect(await node.rpc('getblockhash', 0)).toBe(utxoRow(currency).utxo.genesis.regtest);
    const hash = await node.rpc<string>('getblockhash', 5);
    const block = await node.rpc<{ previousblockhash: string; tx: string[] }>('getblock', hash, true);
    expect(block.previousblockhash).toBe(await node.rpc('getblockhash', 4));
    const port = createUtxoNode({ currency: currency, url: node.url, network: 'regtest', clock });
    expect(await port.readBlock(hash, nothing)).toMatchObject({ hash, previousHash: block.previousblockhash });
    await port.close();
  });

  test('writes amounts with eight decimals and its own addresses', async () => {
    const answer = await fetch(new URL(node.url).origin, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from('user:pa%ss').toString('base64')}` },
      body: JSON.stringify({ id: 1, method: 'getblock', params: [await node.rpc('getblockhash', 1), true] }),
    });
    const { tx } = ((await answer.json()) as { result: { tx: string[] } }).result;
    const raw = JSON.stringify(await node.rpc('getrawtransaction', tx[0], 1));
    expect(raw).toContain(mine.address as string);
    expect(raw.includes('valueSat')).toBe(currency === 'DASH');
    expect(raw.includes('"address":')).toBe(currency === 'DASH');
  });

  test('has the methods of its node and no others', async () => {
    const absent = currency === 'DOGE' ? ['getblockstats', 'createwallet', 'getzmqnotifications'] : ['bumpfee', 'submitpackage'];
    for (const method of absent) expect(await refusal(node.rpc(method))).toContain('(-32601)');
    if (currency === 'DOGE') {
      const hash = await node.rpc('getblockhash', 1);
      expect(await refusal(node.rpc('getblock', hash, 2))).toBe('getblock: JSON value is not a boolean as expected (-1)');
      expect(await node.rpc('estimatesmartfee', 6)).toEqual({ feerate: -1, blocks: 6 });
      return;
    }
    expect(await refusal(node.rpc('getbestchainlock'))).toContain('Unable to find any ChainLock (-32603)');
    node.lockChain(3);
    expect(await node.rpc('getbestchainlock')).toMatchObject({ height: 3, blockhash: await node.rpc('getblockhash', 3) });
    expect(await node.rpc('getislocks', ['11'.repeat(32)])).toEqual(['None']);
  });
});

describe('bchd', () => {
  let node: Bchd;
  beforeAll(async () => {
    node = await startBchd();
    await node.rpc('generate', 110);
  });
  afterAll(() => node?.remove());

  test('refuses with HTTP 200, and says -1 beyond its tip', async () => {
    const { origin, username, password } = new URL(node.url);
    const answer = await fetch(origin, {
      method: 'POST',
      headers: { authorization: `Basic ${Buffer.from(`${username}:${decodeURIComponent(password)}`).toString('base64')}` },
      body: JSON.stringify({ jsonrpc: '1.0', id: 1, method: 'getblockhash', params: [9999] }),
    });
    expect([answer.status, ((await answer.json()) as { error: { code: number } }).error.code]).toEqual([200, -1]);
    const port = createUtxoNode({ currency: 'BCH', url: node.url, network: 'regtest', clock });
    expect(await port.hashAt(9999)).toBeNull();
    expect(await port.condition()).toMatchObject({ state: 'ready', height: 110 });
    expect(await port.subscribe({ onHint: () => undefined, onTransactions: () => undefined })).toBeNull();
    await port.close();
  });

  test('reports neither when it saw a transaction nor proofs of double spends, and we go on without', async () => {
    const port = createUtxoNode({ currency: 'BCH', url: node.url, network: 'regtest', clock });
    const { hex, txid } = payFrom(node, await node.coinbaseOf(1), [{ script: node.key.script, minor: 1_000n }], 1_000n);
    await node.rpc('sendrawtransaction', hex);
    expect(await port.mempoolEntries([txid])).toEqual(new Map());
    expect(await port.doubleSpendProofs?.([txid])).toEqual(new Set());
    expect(await port.mempool()).toEqual([txid]);
    await port.close();
  });

  test('shows the bytes of a transaction in the block that is named, though its getrawtransaction takes none', async () => {
    const port = createUtxoNode({ currency: 'BCH', url: node.url, network: 'regtest', clock });
    const hash = await node.rpc<string>('getblockhash', 2);
    const { tx } = await node.rpc<{ tx: readonly [string] }>('getblock', hash, 1);
    expect(await refusal(node.rpc('getrawtransaction', tx[0], false, hash))).toContain('wrong number of params');
    const raw = Buffer.from((await port.rawTransaction(tx[0], hash)) ?? []);
    expect(raw.toString('hex')).toBe(await node.rpc('getrawtransaction', tx[0], 0));
    expect(await port.rawTransaction(tx[0], await node.rpc<string>('getblockhash', 3))).toBeNull();
    await port.close();
  });

  test('gives a block that lost a reorganisation as bytes, and refuses its header', async () => {
    const port = createUtxoNode({ currency: 'BCH', url: node.url, network: 'regtest', clock });
    const lost = await node.rpc<string>('getblockhash', 110);
    await node.mineOn(await node.mineOn(109, []), []);
    expect(await refusal(node.rpc('getblockheader', lost))).toMatch(/not in the main chain \(-32603\)/);
    expect(await port.readBlock(lost, nothing)).toMatchObject({ hash: lost });
    expect(await port.condition()).toMatchObject({ state: 'ready', height: 111 });
    await port.close();
  });
});
