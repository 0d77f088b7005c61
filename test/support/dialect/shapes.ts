// The answers of the bitcoind below in the form of the currency's node: no segwit fields, `addresses` instead of `address`, and for Dash the locks.
import type { DialectCurrency } from './currencies.ts';
import type { Locks } from './locks.ts';
import { minorOf, numberOf } from './lossless.ts';

type Fields = Record<string, unknown>;

/** Changes an output, or an answer of gettxout, in place. */
export function shapeOutput(currency: DialectCurrency, output: Fields): void {
  const script = output.scriptPubKey as Fields | undefined;
  if (script === undefined) return;
  delete script.desc;
  if (script.address !== undefined) {
    script.reqSigs = 1;
    script.addresses = [script.address];
    if (currency === 'DOGE') delete script.address;
  }
  if (currency === 'DASH' && output.n !== undefined) output.valueSat = Number(minorOf(output.value));
}

/** Changes a transaction in place. @param height of its block; undefined = in the mempool */
export function shapeTransaction(currency: DialectCurrency, transaction: Fields, locks: Locks, height: number | undefined): void {
  for (const output of (transaction.vout ?? []) as Fields[]) shapeOutput(currency, output);
  for (const input of (transaction.vin ?? []) as Fields[]) delete input.txinwitness;
  delete transaction.weight;
  delete transaction.hash;
  delete transaction.vsize;
  if (currency === 'DOGE') {
    delete transaction.fee;
    return;
  }
  const own = locks.has(transaction.txid as string);
  const block = height !== undefined && height <= locks.chainLock;
  Object.assign(transaction, {
    type: 0,
    height: height ?? -1,
    instantlock: own || block,
    instantlock_internal: own,
    chainlock: block,
  });
  transaction.confirmations ??= 0;
}

/** Changes an answer of getblock in place. */
export function shapeBlock(currency: DialectCurrency, block: Fields, locks: Locks, blockVersion: number | null): void {
  shapeHeader(block, blockVersion);
  delete block.weight;
  delete block.strippedsize;
  const height = numberOf(block.height);
  for (const one of block.tx as (string | Fields)[]) if (typeof one !== 'string') shapeTransaction(currency, one, locks, height);
  if (currency === 'DASH') block.chainlock = height <= locks.chainLock;
}

export function shapeHeader(header: Fields, blockVersion: number | null): void {
  if (blockVersion === null) return;
  header.version = blockVersion;
  header.versionHex = blockVersion.toString(16).padStart(8, '0');
}
