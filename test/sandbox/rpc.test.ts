// The simulated bitcoind's JSON-RPC: its HTTP manner, the shapes and numbers of its answers, the words of its refusals, and the troubles that
// /sandbox/node makes.
import { p2wpkh, Transaction as ScureTransaction } from '@scure/btc-signer';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { headerBytes } from '../../src/sandbox/utxo/block.ts';
import { tip } from '../../src/sandbox/utxo/chain-state.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';

const REGTEST = { bech32: 'bcrt', pubKeyHash: 0x6f, scriptHash: 0xc4, wif: 0xef };
const KEY = Uint8Array.from({ length: 32 }, (_, i) => i + 1);
const { secp256k1 } = await import('@noble/curves/secp256k1.js');
const OWN = p2wpkh(secp256k1.getPublicKey(KEY, true), REGTEST);
const script = (n: number): Buffer => Buffer.from(`0014${n.toString(16).padStart(2, '0').repeat(20)}`, 'hex');

let btc: ServedNode;
let ltc: ServedNode;
const now = () => 1_800_000_000_000;
beforeAll(async () => {
  btc = await createSimulatedNode({ currency: 'BTC', folder: null, now });
  ltc = await createSimulatedNode({ currency: 'LTC', folder: null, now });
});
afterAll(() => Promise.all([btc.stop(), ltc.stop()]));

function addressed(node: ServedNode): { readonly url: URL; readonly headers: { readonly authorization: string } } {
  const url = new URL(node.url);
  const authorization = `Basic ${Buffer.from(`${url.username}:${url.password}`).toString('base64')}`;
  url.username = '';
  url.password = '';
  return { url, headers: { authorization } };
}

async function post(node: ServedNode, body: string, authorization?: string): Promise<{ status: number; text: string }> {
  const { url, headers } = addressed(node);
  const answer = await fetch(url, { method: 'POST', headers: authorization === undefined ? headers : { authorization }, body });
  return { status: answer.status, text: await answer.text() };
}
type Answer = { result: never; error: { code: number; message: string } | null; id: unknown };
async function call(node: ServedNode, method: string, ...params: unknown[]): Promise<Answer & { status: number; text: string }> {
  const { status, text } = await post(node, JSON.stringify({ jsonrpc: '1.0', id: 7, method, params }));
  return { ...(JSON.parse(text) as Answer), status, text };
}
const refusal = async (node: ServedNode, method: string, ...params: unknown[]): Promise<[number, number, string]> => {
  const { status, error } = await call(node, method, ...params);
  return [status, error?.code ?? 0, error?.message ?? ''];
};

/** A transaction of one's own key, signed by another library, from an output that the faucet paid and a block holds. */
function fundOwn(node: ServedNode, minor: bigint): { txid: string; spend(outputMinor: bigint, sequence?: number): string } {
  const paid = node.pay([{ minor, script: Buffer.from(OWN.script) }]);
  node.mine(1);
  const txid = paid?.txid as string;
  return {
    txid,
    spend(outputMinor, sequence = 0xfffffffd) {
      const spending = new ScureTransaction();
      spending.addInput({ txid, index: 0, witnessUtxo: { script: OWN.script, amount: minor }, sequence });
      spending.addOutput({ script: script(9), amount: outputMinor });
      spending.sign(KEY);
      spending.finalize();
      return spending.hex;
    },
  };
}

describe('manner', () => {
  it('answers 1.0 calls with result, error and id', async () => {
    const { text, status } = await post(btc, '{"id":"x","method":"getblockcount"}');
    expect(status).toBe(200);
    expect(text).toBe(`{"result":${tip(btc.state).height},"error":null,"id":"x"}\n`);
  });
  it('wants the password', async () => {
    expect((await post(btc, '{}', 'Basic eDp5')).status).toBe(401);
    expect((await post(btc, '{}', 'Bearer x')).status).toBe(401);
  });
  it('takes POST only', async () => {
    const { url, headers } = addressed(btc);
    expect((await fetch(url, { headers })).status).toBe(405);
  });
  it('answers batches in order, with status 200', async () => {
    const { status, text } = await post(btc, '[{"id":1,"method":"getblockcount"},{"id":2,"method":"nosuch"},{"id":3}]');
    expect(status).toBe(200);
    expect((JSON.parse(text) as Answer[]).map(({ id, error }) => [id, error?.code ?? null])).toEqual([
      [1, null],
      [2, -32601],
      [3, -32600],
    ]);
  });
  it('says no with bitcoind statuses', async () => {
    expect(await refusal(btc, 'nosuch')).toEqual([404, -32601, 'Method not found']);
    expect(await refusal(btc, 'toString')).toEqual([404, -32601, 'Method not found']);
    expect((await post(btc, '{nonsense')).text).toContain('"code":-32700');
    expect((await post(btc, '{nonsense')).status).toBe(500);
    expect((await post(btc, '{"id":1}')).status).toBe(400);
  });
  it('speaks JSON-RPC 2.0 where the real node does', async () => {
    const request = '{"jsonrpc":"2.0","id":1,"method":"getblockhash","params":[99999]}';
    expect(await post(btc, request)).toEqual({
      status: 200,
      text: '{"jsonrpc":"2.0","error":{"code":-8,"message":"Block height out of range"},"id":1}\n',
    });
    expect((await post(ltc, request)).status).toBe(500);
  });
});

describe('reading', () => {
  it('refuses as bitcoind does', async () => {
    const none = '11'.repeat(32);
    expect(await refusal(btc, 'getblockhash', 99_999)).toEqual([500, -8, 'Block height out of range']);
    expect(await refusal(btc, 'getblockhash', -1)).toEqual([500, -8, 'Block height out of range']);
    expect((await refusal(btc, 'getblockhash', 'x'))[1]).toBe(-3);
    expect((await refusal(btc, 'getblockhash'))[1]).toBe(-1);
    expect(await refusal(btc, 'getblock', none)).toEqual([500, -5, 'Block not found']);
    expect(await refusal(btc, 'getblockheader', 'abc')).toEqual([500, -8, "blockhash must be of length 64 (not 3, for 'abc')"]);
    expect(await refusal(btc, 'getblock', 'z'.repeat(64))).toEqual([
      500,
      -8,
      `blockhash must be hexadecimal string (not '${'z'.repeat(64)}')`,
    ]);
    expect((await refusal(btc, 'getrawtransaction', none))[1]).toBe(-5);
    expect(await refusal(btc, 'getmempoolentry', none)).toEqual([500, -5, 'Transaction not in mempool']);
    expect((await call(btc, 'gettxout', none, 0)).result).toBeNull();
  });

  it.each([
    ['BTC', () => btc],
    ['LTC', () => ltc],
  ])('%s shows blocks and transactions with exact amounts', async (_, node) => {
    const paid = node().pay([{ minor: 1n, script: script(1) }]);
    const waiting = await call(node(), 'getrawtransaction', paid?.txid, 1);
    expect(waiting.result).not.toHaveProperty('confirmations');
    expect(waiting.text).toContain('"value":0.00000001,"n":0');
    expect((await call(node(), 'getrawmempool')).result).toEqual([paid?.txid]);
    const entry = (await call(node(), 'getmempoolentry', paid?.txid)).result as Record<string, unknown>;
    expect(entry).toMatchObject({ vsize: paid?.vsize, weight: paid?.weight, time: 1_800_000_000, 'bip125-replaceable': true });
    expect((await call(node(), 'getrawmempool', true)).result).toEqual({ [paid?.txid as string]: entry });
    const block = node().mine(1);
    const full = (await call(node(), 'getblock', block.hash, 2)).result as {
      tx: { txid: string; vout: { scriptPubKey: object }[] }[];
    };
    expect(full.tx.map((transaction) => transaction.txid)).toEqual(block.transactions.map((transaction) => transaction.txid));
    expect(full.tx[1]?.vout[0]?.scriptPubKey).toHaveProperty(node() === btc ? 'address' : 'addresses');
    expect(full).toMatchObject({ confirmations: 1, height: block.height, nTx: 2, previousblockhash: block.previousHash });
    expect((await call(node(), 'getblock', block.hash, 0)).text).toContain(paid?.raw.toString('hex'));
    expect((await call(node(), 'getblockheader', block.hash, false)).result).toBe(headerBytes(block).toString('hex'));
    expect((await call(node(), 'getrawtransaction', paid?.txid, true)).result).toMatchObject({
      blockhash: block.hash,
      confirmations: 1,
    });
    expect((await call(node(), 'gettxout', paid?.txid, 0)).text).toContain('"value":0.00000001');
  });

  it('keeps lost blocks, with confirmations -1', async () => {
    const lost = btc.mine(1);
    btc.reorg(1, { drop: false });
    expect((await call(btc, 'getblockheader', lost.hash)).result).toMatchObject({ confirmations: -1, height: lost.height });
    expect((await call(btc, 'getblockhash', lost.height)).result).not.toBe(lost.hash);
    const tips = (await call(btc, 'getchaintips')).result as { hash: string; status: string; branchlen: number }[];
    expect(tips.find((each) => each.hash === lost.hash)).toMatchObject({ status: 'valid-fork', branchlen: 1 });
  });

  it('shows the chain', async () => {
    const { height, hash } = tip(ltc.state);
    expect((await call(ltc, 'getblockchaininfo')).result).toMatchObject({
      chain: 'regtest',
      blocks: height,
      headers: height,
      bestblockhash: hash,
    });
    expect((await call(ltc, 'getbestblockhash')).result).toBe(hash);
    expect((await call(ltc, 'getnetworkinfo')).result).toMatchObject({ version: 210201, subversion: '/LitecoinCore:0.21.2.1/' });
    expect((await call(ltc, 'getzmqnotifications')).result).toEqual([]);
    expect((await call(ltc, 'estimatesmartfee', 6)).result).toMatchObject({ errors: ['Insufficient data or no feerate found'] });
  });
});

describe('sending', () => {
  it('takes what another library signed, and says what it already has', async () => {
    const own = fundOwn(btc, 100_000n);
    const raw = own.spend(99_000n);
    expect((await call(btc, 'testmempoolaccept', [raw])).result).toMatchObject([{ allowed: true }]);
    const { result } = await call(btc, 'sendrawtransaction', raw);
    expect((await call(btc, 'sendrawtransaction', raw)).result).toBe(result);
    expect((await call(btc, 'testmempoolaccept', [raw])).result).toMatchObject([
      { allowed: false, 'reject-reason': 'txn-already-in-mempool' },
    ]);
    expect((await call(btc, 'gettxout', own.txid, 0)).result).toBeNull();
    expect((await call(btc, 'gettxout', own.txid, 0, false)).result).not.toBeNull();
    btc.mine(1);
    expect(await refusal(btc, 'sendrawtransaction', raw)).toEqual([500, -27, 'Transaction outputs already in utxo set']);
    expect(await refusal(btc, 'sendrawtransaction', own.spend(98_000n))).toEqual([500, -25, 'bad-txns-inputs-missingorspent']);
  });

  it('refuses with the reasons of the real node', async () => {
    const own = fundOwn(btc, 100_000n);
    expect(await refusal(btc, 'sendrawtransaction', '00')).toEqual([
      500,
      -22,
      'TX decode failed. Make sure the tx has at least one input.',
    ]);
    expect((await refusal(btc, 'sendrawtransaction', own.spend(100_000n)))[2]).toMatch(/^min relay fee not met, 0 < 110$/);
    expect((await refusal(btc, 'sendrawtransaction', own.spend(293n))).slice(1)).toEqual([-26, 'dust']);
    const rich = fundOwn(btc, 2_0000_0000n);
    expect((await refusal(btc, 'sendrawtransaction', rich.spend(1_0000_0000n)))[1]).toBe(-25);
    const forged = own.spend(99_000n);
    const broken = forged.replace(/(3044|3045)(0220|0221)../, (head) => `${head.slice(0, -2)}01`);
    expect((await refusal(btc, 'sendrawtransaction', broken))[2]).toMatch(/^mandatory-script-verify-flag-failed|-22/);
  });

  it('replaces by fee on BTC only', async () => {
    const own = fundOwn(btc, 100_000n);
    const { result: first } = await call(btc, 'sendrawtransaction', own.spend(99_000n, 0xffffffff));
    expect((await refusal(btc, 'sendrawtransaction', own.spend(98_990n)))[2]).toMatch(/^insufficient fee, rejecting replacement/);
    const { result: second } = await call(btc, 'sendrawtransaction', own.spend(97_000n));
    expect(second).not.toBe(first);
    expect((await refusal(btc, 'getrawtransaction', first))[1]).toBe(-5);
    const other = fundOwn(ltc, 10_000_000n);
    await call(ltc, 'sendrawtransaction', other.spend(9_900_000n));
    expect(await refusal(ltc, 'sendrawtransaction', other.spend(9_800_000n))).toEqual([500, -26, 'txn-mempool-conflict']);
  });

  it('keeps coinbases until they are mature', async () => {
    const address = OWN.address as string;
    const [hash] = (await call(btc, 'generatetoaddress', 1, address)).result as string[];
    const block = btc.state.blocks.get(hash as string);
    const [coinbase] = block?.transactions ?? [];
    const spending = new ScureTransaction();
    const amount = coinbase?.outputs[0]?.minor as bigint;
    spending.addInput({ txid: coinbase?.txid as string, index: 0, witnessUtxo: { script: OWN.script, amount } });
    spending.addOutput({ script: script(9), amount: amount - 10_000n });
    spending.sign(KEY);
    spending.finalize();
    btc.mine(98);
    expect((await refusal(btc, 'sendrawtransaction', spending.hex))[2]).toBe('bad-txns-premature-spend-of-coinbase');
    btc.mine(1);
    expect((await call(btc, 'sendrawtransaction', spending.hex)).error).toBeNull();
    await call(btc, 'invalidateblock', tip(btc.state).hash);
    expect(btc.mine(1).transactions).toHaveLength(1);
    expect(btc.mine(1).transactions).toHaveLength(2);
  });
});

describe('trouble', () => {
  it('cuts only the connection while the node is down', async () => {
    btc.setTrouble({ down: true, fault: null, left: null });
    await expect(call(btc, 'getblockcount')).rejects.toThrow();
    const height = tip(btc.state).height;
    btc.mine(1);
    btc.setTrouble({ down: false, fault: null, left: null });
    expect((await call(btc, 'getblockcount')).result).toBe(height + 1);
  });

  it('hangs: it does what was asked and keeps the answer to itself', async () => {
    const own = fundOwn(btc, 100_000n);
    const raw = own.spend(90_000n);
    btc.setTrouble({ down: false, fault: 'hang', left: 1 });
    const { url, headers } = addressed(btc);
    const body = JSON.stringify({ id: 1, method: 'sendrawtransaction', params: [raw] });
    await expect(fetch(url, { method: 'POST', headers, body, signal: AbortSignal.timeout(300) })).rejects.toThrow(
      /abort|timeout/i,
    );
    expect((await call(btc, 'testmempoolaccept', [raw])).result).toMatchObject([{ 'reject-reason': 'txn-already-in-mempool' }]);
  });

  it('loses the answer of a sending that it has done', async () => {
    const own = fundOwn(btc, 100_000n);
    btc.setTrouble({ down: false, fault: 'lose_answers', left: 1 });
    expect((await call(btc, 'getblockcount')).error).toBeNull();
    const raw = own.spend(90_000n);
    await expect(call(btc, 'sendrawtransaction', raw)).rejects.toThrow();
    const { result } = await call(btc, 'sendrawtransaction', raw);
    expect((await call(btc, 'getrawmempool')).result).toContain(result);
  });

  it('refuses the next sendings only', async () => {
    const own = fundOwn(btc, 100_000n);
    btc.setTrouble({ down: false, fault: 'reject', left: 2 });
    const raw = own.spend(90_000n);
    expect((await refusal(btc, 'sendrawtransaction', raw))[1]).toBe(-26);
    expect((await refusal(btc, 'sendrawtransaction', raw))[1]).toBe(-26);
    expect((await call(btc, 'sendrawtransaction', raw)).error).toBeNull();
  });

  it('denies what it was sent, and mines it all the same', async () => {
    const own = fundOwn(btc, 100_000n);
    btc.setTrouble({ down: false, fault: 'forgets', left: 1 });
    const { result } = await call(btc, 'sendrawtransaction', own.spend(90_000n));
    expect((await refusal(btc, 'getrawtransaction', result))[1]).toBe(-5);
    expect((await call(btc, 'getrawmempool')).result).not.toContain(result);
    expect((await refusal(btc, 'getmempoolentry', result))[1]).toBe(-5);
    btc.mine(1);
    expect((await call(btc, 'getrawtransaction', result, 1)).result).toMatchObject({ confirmations: 1 });
  });
});
