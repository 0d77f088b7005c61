// Reading a block of each chain against a watch list of 100,000 scripts: 2,200 transactions with what the chain has besides plain ones, and
// Bitcoin Cash's largest block (32 MB). `node bench/currencies.ts` prints its figures.
import { randomBytes } from 'node:crypto';
import { CURRENCIES, type UtxoCode, utxoRow } from '../src/core/currency.ts';
import { readBlockBytes } from '../src/outside/utxo/block.ts';
import { createByteSet } from '../src/worker/chain/byte-set.ts';
import { p2pkh, p2wpkh, rawAuxPow, rawBlock, rawCoinbase, rawPayment, type Sealed } from '../test/support/raw-blocks.ts';
import { median } from './measure.ts';
import type { Figure } from './report.ts';

const TRANSACTIONS = 2_200;
const LARGEST_BYTES = 32_000_000;
const PAID = 44;

type Block = { readonly bytes: Buffer; readonly hash: string };

const WATCHED = 100_000;
const keyHashes: Buffer[] = [];
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

function measure(currency: UtxoCode, block: Block, goalMs: number, rounds: number): Figure {
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
  const times: { wallMs: number; cpuMs: number }[] = [];
  let facts = null;
  for (let round = 0; round < rounds; round++) {
    const [began, cpu] = [performance.now(), process.cpuUsage()];
    facts = readBlockBytes(block.bytes, block.hash, utxoRow(currency).utxo.blockFeatures, watch);
    const used = process.cpuUsage(cpu);
    times.push({ wallMs: performance.now() - began, cpuMs: (used.user + used.system) / 1000 });
  }
  if (facts === null || facts.touched.length < PAID) throw new Error(`${currency}: the scan missed something`);
  const wallMs = median(times, (one) => one.wallMs).wallMs;
  const cpuMs = median(times, (one) => one.cpuMs).cpuMs;
  const size = `${(block.bytes.length / 1e6).toFixed(1)} MB`;
  return {
    work: `${currency} block of ${facts.transactionCount.toLocaleString('en')} transactions, ${size}, parsed and matched`,
    measured: `${wallMs.toFixed(1)} ms (CPU ${cpuMs.toFixed(1)} ms); ${facts.touched.length} found`,
    goal: `≤ ${goalMs} ms`,
  };
}

/** @param options.quick without the largest block, and few rounds */
export function scanCurrencies(options: { readonly quick: boolean }): Figure[] {
  while (keyHashes.length < WATCHED) keyHashes.push(randomBytes(20));
  const rounds = options.quick ? 3 : 31;
  const currencies = (Object.keys(CURRENCIES) as UtxoCode[]).filter((code) => CURRENCIES[code].utxo !== null);
  const usual = currencies.map((code) => measure(code, makeBlock(code, payments(code, TRANSACTIONS)), 25, rounds));
  if (options.quick) return usual;
  const each = rawPayment(false, p2pkh(randomBytes(20))).bytes.length;
  const largest = makeBlock('BCH', payments('BCH', Math.floor(LARGEST_BYTES / (each + 4))));
  return [...usual, measure('BCH', largest, 400, 7)];
}

if (import.meta.main)
  for (const { work, measured, goal } of scanCurrencies({ quick: false })) console.log(`${work}: ${measured} (goal ${goal})`);
