// The bytes of the simulated chains against independent oracles: published genesis hashes, @scure/btc-signer, and the production scanner.
import { createVirtualMachineBCH, decodeTransactionCommon } from '@bitauth/libauth';
import { secp256k1 } from '@noble/curves/secp256k1.js';
import { hex } from '@scure/base';
import { OutScript, RawTx, Transaction as ScureTransaction } from '@scure/btc-signer';
import { describe, expect, it } from 'vitest';
import { utxoRow } from '../../src/core/currency.ts';
import { readBlockBytes } from '../../src/outside/utxo/block.ts';
import { blockBytes, blockHash, genesisBlock, merkleRoot } from '../../src/sandbox/utxo/block.ts';
import { hash256, shown, wire } from '../../src/sandbox/utxo/bytes.ts';
import { DIALECTS } from '../../src/sandbox/utxo/dialects.ts';
import { faucetScript, nativeSigner, nobleSigner } from '../../src/sandbox/utxo/faucet-key.ts';
import { openSimulatedNode } from '../../src/sandbox/utxo/simulated-node.ts';
import { readTransaction } from '../../src/sandbox/utxo/transaction.ts';

/** P2PKH: the one kind of script that a key controls on every chain. */
const SCRIPT = Buffer.from(`76a914${'07'.repeat(20)}88ac`, 'hex');
const AT_MS = Date.UTC(2026, 0, 1);
const nothingWatched = { hasScript: () => false, hasOutpoint: () => false };
const scripted = {
  hasScript: (bytes: Uint8Array, start: number, end: number) => SCRIPT.equals(bytes.subarray(start, end)),
  hasOutpoint: () => false,
};

describe.each([...DIALECTS.values()])('$code', (dialect) => {
  const node = openSimulatedNode({ currency: dialect.code, folder: null, now: () => AT_MS });
  const features = utxoRow(dialect.code).utxo.blockFeatures;
  const paid = node.pay([
    { minor: 123_456n, script: SCRIPT },
    { minor: 1n, script: SCRIPT },
  ]);
  if (paid === null) throw new Error('the faucet is empty');
  const second = node.pay([{ minor: 5_000n, script: SCRIPT }]);
  const block = node.mine(1);

  it('begins with the real genesis block of regtest', () => {
    expect(genesisBlock(dialect).hash).toBe(utxoRow(dialect.code).utxo.genesis.regtest);
  });

  it('gives a transaction the id that another library computes', () => {
    for (const transaction of block.transactions.slice(1)) {
      const other = ScureTransaction.fromRaw(transaction.raw, { allowUnknownOutputs: true, disableScriptCheck: true });
      expect(other.id).toBe(transaction.txid);
      expect(shown(hash256(other.toBytes(true, true)))).toBe(transaction.wtxid);
      expect(other.vsize).toBe(transaction.vsize);
      expect(hex.encode(other.toBytes(true, true))).toBe(transaction.raw.toString('hex'));
    }
    expect(block.transactions.slice(1).map((each) => each.txid)).toContain(second?.txid);
  });

  it('decodes to the parts that another library reads', () => {
    const other = RawTx.decode(paid.raw);
    expect(other.outputs.map((output) => [output.amount, hex.encode(output.script)])).toEqual(
      paid.outputs.map((output) => [output.minor, output.script.toString('hex')]),
    );
    expect(other.inputs.map((input) => [hex.encode(input.txid), input.index, input.sequence])).toEqual(
      paid.inputs.map((input) => [input.txid, input.vout, input.sequence]),
    );
    expect(readTransaction(paid.raw.toString('hex'))).toEqual(paid);
  });

  it.runIf(dialect.segwit)('signs the faucet outputs as BIP143 asks', () => {
    const other = ScureTransaction.fromRaw(paid.raw, { allowUnknownOutputs: true, disableScriptCheck: true });
    const spent = node.state.alive.get(paid.inputs[0]?.txid as string)?.transaction.outputs[paid.inputs[0]?.vout as number];
    const [der, key] = (paid.inputs[0]?.witness ?? []) as [Buffer, Buffer];
    const code = OutScript.encode({ type: 'pkh', hash: faucetScript(dialect).subarray(2) });
    const digest = other.preimageWitnessV0(0, code, 1, spent?.minor as bigint);
    expect(secp256k1.verify(der.subarray(0, -1), digest, key, { prehash: false, format: 'der' })).toBe(true);
  });

  it.runIf(!dialect.segwit)('signs the faucet outputs as the currency asks, by the rules of another library', () => {
    const [input] = paid.inputs;
    const source = node.state.alive.get(input?.txid as string)?.transaction.outputs[input?.vout as number];
    if (input === undefined || source === undefined) throw new Error('a payment without a source');
    expect(input.scriptSig.length).toBeGreaterThan(100);
    if (dialect.sighash === 'forkid') {
      const spent = { lockingBytecode: Uint8Array.from(source.script), valueSatoshis: source.minor };
      const transaction = decodeTransactionCommon(Uint8Array.from(paid.raw));
      if (typeof transaction === 'string') throw new Error(transaction);
      expect(createVirtualMachineBCH(false).verify({ sourceOutputs: [spent], transaction })).toBe(true);
      return;
    }
    const other = ScureTransaction.fromRaw(paid.raw, { allowUnknownOutputs: true, disableScriptCheck: true });
    const length = input.scriptSig[0] as number;
    const [der, key] = [input.scriptSig.subarray(1, length), input.scriptSig.subarray(length + 2)];
    const digest = (
      other as unknown as { preimageLegacy(i: number, script: Uint8Array, type: number): Uint8Array }
    ).preimageLegacy(0, Uint8Array.from(source.script), 1);
    expect(secp256k1.verify(der, digest, key, { prehash: false, format: 'der' })).toBe(true);
  });

  it('makes blocks whose header, Merkle root and coinbase hold', () => {
    expect(blockHash(dialect, block)).toBe(block.hash);
    const [a, b, c] = block.transactions.map((transaction) => wire(transaction.txid)) as [Buffer, Buffer, Buffer];
    const pair = (left: Buffer, right: Buffer): Buffer => hash256(Buffer.concat([left, right]));
    expect(block.merkleRoot).toBe(shown(pair(pair(a, b), pair(c, c))));
    if (dialect.ordered) expect(b.reverse().compare(c.reverse())).toBe(-1);
    if (dialect.workIsBlockHash) expect(Number.parseInt(block.hash.slice(0, 2), 16)).toBeLessThan(0x80);
    const coinbase = block.transactions[0];
    const height = Buffer.from(dialect.code === 'DOGE' ? [2, 251, 0] : [1, 0x6f]);
    expect(coinbase?.inputs[0]?.scriptSig.subarray(0, height.length)).toEqual(height);
    if (!dialect.segwit) return expect(coinbase?.outputs).toHaveLength(1);
    const commitment = coinbase?.outputs.at(-1)?.script.toString('hex');
    const wtxids = [Buffer.alloc(32), ...block.transactions.slice(1).map((transaction) => wire(transaction.wtxid))];
    const witnessRoot = hash256(Buffer.concat([merkleRoot(wtxids), Buffer.alloc(32)]));
    expect(commitment).toBe(`6a24aa21a9ed${witnessRoot.toString('hex')}`);
  });

  it('is read by the production scanner, every block of it', () => {
    for (const each of node.state.active) {
      const facts = readBlockBytes(blockBytes(dialect, each), each.hash, features, nothingWatched);
      expect(facts.transactionCount).toBe(each.transactions.length);
    }
    const facts = readBlockBytes(blockBytes(dialect, block), block.hash, features, scripted);
    expect(
      Object.fromEntries(facts.touched.map(({ txid, outputs }) => [txid, outputs.map((output) => output.amountMinor)])),
    ).toEqual({
      [paid.txid]: [123_456n, 1n],
      [second?.txid as string]: [5_000n],
    });
  });

  it('gives the same chain for the same calls at the same times', () => {
    const again = openSimulatedNode({ currency: dialect.code, folder: null, now: () => AT_MS });
    again.pay([
      { minor: 123_456n, script: SCRIPT },
      { minor: 1n, script: SCRIPT },
    ]);
    again.pay([{ minor: 5_000n, script: SCRIPT }]);
    expect(again.mine(1).hash).toBe(block.hash);
  });
});

describe('reading a transaction', () => {
  it.each(['', '00', 'zz', '0200000000', '01000000000100'])('refuses %j', (text) => {
    expect(readTransaction(text)).toBeNull();
  });

  it('refuses left-over and missing bytes', () => {
    const node = openSimulatedNode({ currency: 'BTC', folder: null, now: () => AT_MS });
    const raw = node.pay([{ minor: 1000n, script: SCRIPT }])?.raw.toString('hex') as string;
    expect(readTransaction(raw)).not.toBeNull();
    expect(readTransaction(`${raw}00`)).toBeNull();
    expect(readTransaction(raw.slice(0, -2))).toBeNull();
  });
});

it('signs with the addon as without it, byte for byte', () => {
  const native = nativeSigner();
  expect(native).not.toBeNull();
  for (let n = 0; n < 50; n++) {
    const [digest, secret] = [hash256(Buffer.from(`digest ${n}`)), hash256(Buffer.from(`secret ${n}`))];
    expect(Buffer.from(native?.sign(digest, secret) ?? []).toString('hex')).toBe(hex.encode(nobleSigner.sign(digest, secret)));
  }
});
