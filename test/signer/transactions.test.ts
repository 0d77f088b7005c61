// The transactions that the signer makes, judged by others: the sandbox's own verifier for every currency, a real bitcoind for P2WPKH and
// P2PKH with their replacements, and a real bchd.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { UTXO_CODES, type UtxoCode } from '../../src/core/currency.ts';
import { virtualBytes } from '../../src/core/payouts/outgoing-fees.ts';
import type { TransactionToSign } from '../../src/core/signer-wire.ts';
import { createDestinations } from '../../src/outside/destinations.ts';
import { DIALECTS, type Dialect } from '../../src/sandbox/utxo/dialects.ts';
import { isSigned } from '../../src/sandbox/utxo/sighash.ts';
import { RBF_SEQUENCE, readTransaction, type Transaction } from '../../src/sandbox/utxo/transaction.ts';
import type { Signing } from '../../src/signer/signing.ts';
import { payFrom, startBchd } from '../support/bchd.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import type { CoreDaemon } from '../support/core-daemon.ts';
import { openTestSigner, publicKeyOf, requestFor, type TestSigner, type Wanted, WHOLE } from './setup.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });
let at: TestSigner;
let signing: Signing;
beforeAll(async () => {
  at = await openTestSigner();
  signing = await at.start();
});
afterAll(() => at.close());

type Input = TransactionToSign['inputs'][number];

const output = (...given: Parameters<TestSigner['madeOutput']>) => at.madeOutput(...given);
const keyHashOf = (script: string): Buffer =>
  Buffer.from(script, 'hex')
    .subarray(script.startsWith('0014') ? 2 : 3)
    .subarray(0, 20);

function expectSigned(dialect: Dialect, made: Transaction, inputs: readonly Input[], currency: UtxoCode): void {
  for (const [index, input] of inputs.entries()) {
    const script = at.script(currency, input.chain, input.index);
    const spent = { keyHash: keyHashOf(script), minor: BigInt(input.amount) };
    expect(isSigned(dialect, made, index, spent, script.startsWith('0014'))).toBe(true);
  }
}

describe.each(UTXO_CODES)('a transaction in %s', (currency) => {
  const dialect = DIALECTS.get(currency) as Dialect;

  it('spends keys of both chains, pays in the order that was asked for, and sends the rest to the change key', async () => {
    const batchId = await at.batch({ currency });
    const script = at.script(currency, 0, 999).replace(/[0-9a-f]{2}(88ac)?$/, '77$1');
    const payouts = [
      await at.payout({ batchId, currency, script }),
      await at.payout({ batchId, currency, script, merchantId: 2n }),
    ];
    const outputs = [
      output(currency, WHOLE, { chain: 0, index: 0 }),
      output(currency, WHOLE / 3n, { chain: 1, index: 2_000_000_000 }),
    ];
    const inputs = outputs.map((one) => one.input);
    const previous = outputs.map((one) => one.previous);
    // what is paid out of another currency than BTC is a reimbursement, and pays the fee out of its amount
    const [each, left] =
      currency === 'BTC'
        ? [WHOLE / 10n, WHOLE + WHOLE / 3n - WHOLE / 5n - 3_000n]
        : [WHOLE / 10n - 1_500n, WHOLE + WHOLE / 3n - WHOLE / 5n];
    const request = requestFor(payouts, inputs, { fee: 3_000n, previous });
    const signed = await signing.sign({ ...request, change: { index: 12, amount: left.toString() } });
    const made = readTransaction(signed.raw) as Transaction;
    expect(made).toMatchObject({ txid: signed.txid, vsize: signed.vbytes, version: 2, lockTime: 0 });
    expect(made.inputs.map((input) => [input.txid, input.vout, input.sequence])).toEqual(
      inputs.map((input) => [input.txid, input.vout, RBF_SEQUENCE]),
    );
    expect(made.outputs.map((output) => [output.script.toString('hex'), output.minor])).toEqual([
      [script, each],
      [script, each],
      [at.script(currency, 1, 12), left],
    ]);
    expectSigned(dialect, made, inputs, currency);
    expect(signed.fee).toBe('3000');
    const kind = dialect.segwit ? 'p2wpkh' : 'p2pkh';
    const most = virtualBytes(
      [kind, kind],
      made.outputs.map((output) => output.script.length),
    );
    expect(signed.vbytes).toBeLessThanOrEqual(most);
    expect(signed.vbytes).toBeGreaterThanOrEqual(most - 6);
    // the key is the one that the account's public key gives
    const pushed = made.inputs[0]?.witness[1] ?? made.inputs[0]?.scriptSig.subarray(-33);
    expect(pushed?.toString('hex')).toBe(Buffer.from(publicKeyOf(at.xpubOf(currency), 'regtest', 0, 0)).toString('hex'));
  });

  it('has the same bytes however often it is made, with low R and low S', async () => {
    const batchId = await at.batch({ currency });
    const payout = await at.payout({ batchId, currency });
    const outputs = Array.from({ length: 12 }, (_, index) => output(currency, WHOLE, { chain: 0, index }));
    const request = requestFor(
      [payout],
      outputs.map((one) => one.input),
      { previous: outputs.map((one) => one.previous) },
    );
    const first = await signing.sign(request);
    // DER: 30 len 02 20 R 02 20 S, never 21: neither is above half of its range
    for (const input of (readTransaction(first.raw) as Transaction).inputs) {
      const signature = input.witness[0] ?? input.scriptSig.subarray(1);
      expect(signature[3]).toBeLessThanOrEqual(32);
      expect(signature[5 + (signature[3] as number)]).toBeLessThanOrEqual(32);
    }
    // a signer that has forgotten it signs the same again
    await at.forget();
    signing = await at.start();
    expect((await signing.sign(request)).raw).toBe(first.raw);
  });
});

describe('a real bitcoind', () => {
  let daemon: CoreDaemon;
  beforeAll(async () => {
    daemon = await startBitcoind();
    await daemon.mine(110);
    console.log(`signer: ${daemon.version}`);
  });
  afterAll(() => daemon?.remove());

  /** An output of one of the signer's keys on the node's chain. */
  async function mined(currency: UtxoCode, key: { chain: 0 | 1; index: number }): Promise<{ input: Input; previous: string }> {
    const script = at.script(currency, key.chain, key.index);
    const { address } = await daemon.rpc<{ address: string }>('decodescript', script);
    const txid = await daemon.pay(address, '1');
    const previous = await daemon.rpc<string>('getrawtransaction', txid);
    const { vout } = await daemon.rpc<{ vout: { n: number; scriptPubKey: { hex: string } }[] }>('decoderawtransaction', previous);
    await daemon.mine(1);
    return {
      input: at.input(WHOLE, { currency, txid, vout: vout.find((one) => one.scriptPubKey.hex === script)?.n ?? -1, ...key }),
      previous,
    };
  }

  // Dash and Dogecoin sign P2PKH as Bitcoin does; bitcoind's wallet gives a transaction with a witness, whose txid is of its bytes without
  it.each(['BTC', 'LTC'] as const)('takes P2WPKH of %s, its replacement at a higher fee, and mines it', async (currency) => {
    const batchId = await at.batch({ currency });
    const payouts: Wanted[] = [];
    for (let i = 0; i < 3; i++) payouts.push(await at.payout({ batchId, currency }));
    const outputs = [await mined(currency, { chain: 0, index: 21 }), await mined(currency, { chain: 1, index: 22 })];
    const inputs = outputs.map((one) => one.input);
    const first = await signing.sign(requestFor(payouts, inputs, { fee: 1_000n }));
    expect(await daemon.rpc('sendrawtransaction', first.raw)).toBe(first.txid);
    const second = await signing.sign(requestFor(payouts, inputs, { number: 2, fee: 9_000n }));
    expect(await daemon.rpc('sendrawtransaction', second.raw)).toBe(second.txid);
    expect(await daemon.rpc('getrawmempool')).toEqual([second.txid]);
    await daemon.mine(1);
    expect(await daemon.rpc('gettransaction', first.txid).catch(() => null)).toBeNull();
    for (const [vout, { amount }] of second.request.outputs.entries()) {
      expect(await daemon.rpc('gettxout', second.txid, vout)).toMatchObject({ value: Number(amount) / 1e8, confirmations: 1 });
    }
  });

  it('pays every kind of its addresses exactly where it reads them', async () => {
    const destinations = createDestinations('regtest');
    const addresses = await Promise.all(
      ['legacy', 'p2sh-segwit', 'bech32', 'bech32m'].map((kind) => daemon.rpc<string>('getnewaddress', '', kind)),
    );
    const { segwit } = await daemon.rpc<{ segwit: { address: string } }>('decodescript', '51');
    addresses.push(segwit.address);
    const batchId = await at.batch();
    const payouts: Wanted[] = [];
    for (const address of addresses) {
      expect(destinations.problem('bitcoin', address)).toBeNull();
      const script = Buffer.from(destinations.outputScript('BTC', address)).toString('hex');
      payouts.push(await at.payout({ batchId, script }));
    }
    const { input } = await mined('BTC', { chain: 0, index: 23 });
    const { raw, txid } = await signing.sign(requestFor(payouts, [input]));
    expect(await daemon.rpc('sendrawtransaction', raw)).toBe(txid);
    const { vout } = await daemon.rpc<{ vout: { scriptPubKey: { address: string } }[] }>('decoderawtransaction', raw);
    expect(vout.slice(0, addresses.length).map(({ scriptPubKey }) => scriptPubKey.address)).toEqual(addresses);
    await daemon.mine(1);
    expect(await daemon.rpc('gettxout', txid, 4)).toMatchObject({ confirmations: 1 });
  });

  it.each(['DASH', 'DOGE'] as const)('takes P2PKH as %s signs it, and its replacement', async (currency) => {
    const batchId = await at.batch({ currency });
    const payouts = [await at.payout({ batchId, currency }), await at.payout({ batchId, currency })];
    const outputs = [await mined(currency, { chain: 0, index: 31 }), await mined(currency, { chain: 1, index: 32 })];
    // without their witnesses, which neither currency has
    const previous = outputs.map((one) => stripped(readTransaction(one.previous) as Transaction));
    const inputs = outputs.map((one) => one.input);
    const first = await signing.sign(requestFor(payouts, inputs, { fee: 1_000n, previous }));
    expect(await daemon.rpc('sendrawtransaction', first.raw)).toBe(first.txid);
    const second = await signing.sign(requestFor(payouts, inputs, { number: 2, fee: 9_000n, previous }));
    expect(await daemon.rpc('sendrawtransaction', second.raw)).toBe(second.txid);
    await daemon.mine(1);
    expect(await daemon.rpc('gettxout', second.txid, 0)).toMatchObject({ confirmations: 1 });
  });
});

/** The bytes that the txid is of. */
function stripped(made: Transaction): string {
  const { raw, inputs } = made;
  const witness = inputs.reduce((size, input) => size + 1 + input.witness.reduce((sum, item) => sum + 1 + item.length, 0), 0);
  const isSegwit = raw.readUInt16BE(4) === 1;
  if (!isSegwit) return raw.toString('hex');
  return Buffer.concat([raw.subarray(0, 4), raw.subarray(6, raw.length - 4 - witness), raw.subarray(-4)]).toString('hex');
}

describe('a real bchd', () => {
  it('takes a transaction of Bitcoin Cash (FORKID)', async () => {
    const node = await startBchd();
    try {
      await node.rpc('generate', 101);
      const script = Buffer.from(at.script('BCH', 0, 41), 'hex');
      const paid = payFrom(node, await node.coinbaseOf(1), [{ script, minor: WHOLE }], 10_000n);
      await node.rpc('sendrawtransaction', paid.hex);
      await node.rpc('generate', 1);
      const payout = await at.payout({
        batchId: await at.batch({ currency: 'BCH' }),
        currency: 'BCH',
        script: `76a914${'ab'.repeat(20)}88ac`,
      });
      const input = at.input(WHOLE, { currency: 'BCH', txid: paid.txid, vout: 0, chain: 0, index: 41 });
      const signed = await signing.sign(requestFor([payout], [input]));
      expect(await node.rpc('sendrawtransaction', signed.raw)).toBe(signed.txid);
      await node.rpc('generate', 1);
      expect(await node.rpc('gettxout', signed.txid, 0)).toMatchObject({ value: 0.09999, confirmations: 1 });
    } finally {
      await node.remove();
    }
  });
});
