// The answers of the bitcoind below in the form of the coin's node: no segwit fields, `addresses` instead of `address`, and for Dash the locks.
import type { DialectCoin } from './coins.ts';
import type { Locks } from './locks.ts';
import { minorOf, numberOf } from './lossless.ts';

type Fields = Record<string, unknown>;

/** Changes an output, or an answer of gettxout, in place. */
export function shapeOutput(coin: DialectCoin, output: Fields): void {
  const script = output.scriptPubKey as Fields | undefined;
  if (script === undefined) return;
  delete script.desc;
  if (script.address !== undefined) {
    script.reqSigs = 1;
    script.addresses = [script.address];
    if (coin === 'DOGE') delete script.address;
  }
  if (coin === 'DASH' && output.n !== undefined) output.valueSat = Number(minorOf(output.value));
}

/** Changes a transaction in place. @param height of its block; undefined = in the mempool */
export function shapeTransaction(coin: DialectCoin, transaction: Fields, locks: Locks, height: number | undefined): void {
  for (const output of (transaction.vout ?? []) as Fields[]) shapeOutput(coin, output);
  for (const input of (transaction.vin ?? []) as Fields[]) delete input.txinwitness;
  delete transaction.weight;
  delete transaction.hash;
  delete transaction.vsize;
  if (coin === 'DOGE') {
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
export function shapeBlock(coin: DialectCoin, block: Fields, locks: Locks, blockVersion: number | null): void {
  shapeHeader(block, blockVersion);
  delete block.weight;
  delete block.strippedsize;
  const height = numberOf(block.height);
  for (const one of block.tx as (string | Fields)[]) if (typeof one !== 'string') shapeTransaction(coin, one, locks, height);
  if (coin === 'DASH') block.chainlock = height <= locks.chainLock;
}

export function shapeHeader(header: Fields, blockVersion: number | null): void {
  if (blockVersion === null) return;
  header.version = blockVersion;
  header.versionHex = blockVersion.toString(16).padStart(8, '0');
}
