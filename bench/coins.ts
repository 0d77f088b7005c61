// Reading a block of each chain against a watch list of 100,000 scripts: 2,200 transactions with what the chain has besides the plain ones,
// and Bitcoin Cash's largest block (32 MB). Prints one line each. `node bench/coins.ts`
import { randomBytes } from 'node:crypto';
import { CURRENCIES, type UtxoCode, utxoRow } from '../src/core/currency.ts';
import { readBlockBytes } from '../src/outside/utxo-block.ts';
import { createByteSet } from '../src/worker/byte-set.ts';
import { p2pkh, p2wpkh, rawAuxPow, rawBlock, rawCoinbase, rawPayment, type Sealed } from '../test/support/raw-blocks.ts';

const TRANSACTIONS = 2_200;
const LARGEST_BYTES = 32_000_000;
const PAID = 44;

type Block = { readonly bytes: Buffer; readonly hash: string };

const keyHashes = Array.from({ length: 100_000 }, () => randomBytes(20));
const token = Buffer.concat([Buffer.from([0xef]), randomBytes(32), Buffer.from([0x10, 5])]);

function payments(currency: UtxoCode, count: number): Sealed[] {
  const { segwit, specialTransactions, tokens } = utxoRow(currency).utxo.blockFeatures;
  const made: Sealed[] = [];
  for (let i = 0; i < count; i++) {
    const keyHash = i % Math.floor(count / PAID) === 0 ? (keyHashes[i % keyHashes.length] as Buffer) : randomBytes(20);
    const special = specialTransactions && i % 100 === 1 ? { version: 0x00010003, payload: randomBytes(300) } : {};
    const withToken = tokens && i % 10 === 3 ? { token } : {};
    made.push(rawPayment(segwit, segwit ? p2wpkh(keyHash) : p2pkh(keyHash), { ...special, ...withToken }));
  }
  return made;
}

function makeBlock(currency: UtxoCode, transactions: readonly Sealed[]): Block {
  const { auxpow, headerHash } = utxoRow(currency).utxo.blockFeatures;
  const coinbase = rawCoinbase([{ minor: 1n, script: p2pkh(randomBytes(20)) }]);
  const proof = auxpow ? { version: 0x00620104, auxpow: (hash: Buffer) => rawAuxPow(hash) } : {};
  return rawBlock([coinbase, ...transactions], { headerHash, ...proof });
}

function measure(currency: UtxoCode, block: Block, goalMs: number, rounds: number): string {
  const { segwit } = utxoRow(currency).utxo.blockFeatures;
  const scripts = createByteSet();
  for (const keyHash of keyHashes) {
    const script = segwit ? p2wpkh(keyHash) : p2pkh(keyHash);
    scripts.add(script, 0, script.length);
  }
  const watch = {
    hasScript: (bytes: Uint8Array, start: number, end: number) => scripts.has(bytes, start, end),
    hasOutpoint: () => false,
  };
  const times: number[] = [];
  let facts = null;
  for (let round = 0; round < rounds; round++) {
    const began = performance.now();
    facts = readBlockBytes(block.bytes, block.hash, utxoRow(currency).utxo.blockFeatures, watch);
    times.push(performance.now() - began);
  }
  if (facts === null || facts.touched.length < PAID) throw new Error(`${currency}: the scan missed something`);
  const middle = times.sort((a, b) => a - b)[rounds >> 1] as number;
  const size = `${(block.bytes.length / 1e6).toFixed(1)} MB`;
  return `${currency.padEnd(5)}${facts.transactionCount.toLocaleString('en').padStart(8)} transactions, ${size.padStart(7)}: ${middle.toFixed(1)} ms (goal ≤ ${goalMs} ms), ${facts.touched.length} found`;
}

const coins = (Object.keys(CURRENCIES) as UtxoCode[]).filter((code) => CURRENCIES[code].utxo !== null);
for (const currency of coins) console.log(measure(currency, makeBlock(currency, payments(currency, TRANSACTIONS)), 25, 31));
const each = rawPayment(false, p2pkh(randomBytes(20))).bytes.length;
console.log(measure('BCH', makeBlock('BCH', payments('BCH', Math.floor(LARGEST_BYTES / (each + 4)))), 400, 7));
