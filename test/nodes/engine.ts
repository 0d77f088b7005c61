// What the conformance suite needs of a chain: the actions of customer and miners, the same on every engine. The product reads the chain
// through its own adapter.
import { createHash } from 'node:crypto';
import { bech32, createBase58check } from '@scure/base';
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { UnspentOutput } from '../support/cash-wallet.ts';

export type Paid = { readonly script: Buffer; readonly minor: bigint };

export type Engine = {
  /** What it is, with its version. */
  readonly name: string;
  readonly currency: CurrencyCode;
  readonly url: string;
  /** Of a token: its contract. */
  readonly contract?: string | null;
  /** The suite's amounts times this are above the currency's dust. */
  readonly unit: bigint;
  /** One transaction into the mempool with these outputs (and change). */
  pay(outputs: readonly Paid[]): Promise<string>;
  /** Replaces an unconfirmed transaction made by `pay` by one that spends the same output to these outputs instead. */
  replace(txid: string, outputs: readonly Paid[]): Promise<string>;
  /** Mines the mempool; the hashes. */
  mine(blocks: number): Promise<void>;
  /** Takes the top blocks away and puts nothing in their place. */
  rewind(depth: number): Promise<void>;
  /** Replaces the top blocks by one more, empty ones; `drop`: these spend the unspent of what was paid there to somebody else. */
  reorg(depth: number, options?: { readonly drop?: boolean }): Promise<void>;
  height(): Promise<number>;
  /** DASH: what the quorums do. */
  readonly quorums?: { lock(txid: string): Promise<void>; lockChain(height: number): Promise<void> };
  /** Whether it can be stopped and started; a daemon that the environment names cannot. */
  readonly foreign?: boolean;
  /** False where no rival can be got into its mempool. */
  readonly replaces?: boolean;
  stop(): Promise<void>;
  start(): Promise<void>;
  remove(): Promise<void>;
};

/** Outputs in decimal, as the daemons take amounts. */
export const decimal = (minor: bigint): string => `${minor / 100_000_000n}.${(minor % 100_000_000n).toString().padStart(8, '0')}`;

/** An output worth at least ten out of what a wallet lists as unspent; `used` keeps those that were given out, and takes this one. */
export function freeUnspentOutput(
  unspent: readonly { txid: string; vout: number; amount: number }[],
  used: Set<string>,
): UnspentOutput {
  const free = unspent.find((one) => !used.has(`${one.txid}:${one.vout}`) && one.amount >= 10);
  if (free === undefined) throw new Error('the wallet has no output left');
  used.add(`${free.txid}:${free.vout}`);
  return { txid: free.txid, vout: free.vout, minor: BigInt(Math.round(free.amount * 1e8)) };
}

/** The address of a P2WPKH script. */
export function segwitAddress(prefix: string, script: Buffer): string {
  return bech32.encode(prefix, [0, ...bech32.toWords(script.subarray(2))]);
}

const base58check = createBase58check((bytes: Uint8Array) => createHash('sha256').update(bytes).digest());
const PUB_KEY_HASH = { DOGE: 0x6f, DASH: 0x8c };

/** The address of a P2PKH script on regtest. */
export function keyHashAddress(currency: 'DOGE' | 'DASH', script: Buffer): string {
  return base58check.encode(Uint8Array.of(PUB_KEY_HASH[currency], ...script.subarray(3, 23)));
}
