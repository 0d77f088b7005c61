// A simulated chain as the controls use it, one for each currency: chains of all families do the same things in their own way.
import type { CurrencyCode } from '../core/currency.ts';
import type { Trouble } from './trouble.ts';

export const PAY_KINDS = ['coinbase', 'token_fake', 'token_failed', 'internal', 'internal_reverted'] as const;
export type PayKind = (typeof PAY_KINDS)[number];

/** A payment to one address: the whole, and in how many outputs it is paid. */
export type WantedPayment = { readonly script: Buffer; readonly total: bigint; readonly parts: number };
export type Arrived = { readonly txid: string; readonly minor: bigint; readonly confirmations: number };
type Tip = { readonly height: number; readonly hash: string };

export type ControlledNode = {
  readonly code: CurrencyCode;
  /** The currencies on its chain: what is mined concerns them all. */
  readonly currencies: readonly CurrencyCode[];
  readonly kinds: readonly PayKind[];
  /** Its quorums lock transactions (Dash). */
  readonly hasQuorums: boolean;
  trouble(): Trouble;
  setTrouble(trouble: Trouble): void;
  /** Whether an address with this output script exists on its chain. */
  knows(script: string): boolean;
  /** What the best chain and the pool show at an output script (hex). */
  received(script: string): readonly Arrived[];
  /** The output script (hex) of an address; null for what is none of its network. */
  scriptOf(address: string): string | null;
  /** An address of the outside world that nobody got before. */
  outsideAddress(): string;
  /** Pays, into the pool or as its kind says; returns the txid, or null when there is less to give. */
  pay(wanted: WantedPayment, kind: PayKind | null): string | null;
  /** What a waiting payment to this script pays. @throws ControlRefusal when it cannot be replaced */
  replaceable(txid: string, script: Buffer): bigint;
  replace(txid: string, wanted: WantedPayment): string | null;
  mine(blocks: number): Tip;
  /** How many of its blocks can be replaced. */
  deepestReorg(): number;
  reorg(depth: number, drop: boolean): Tip;
  /** Each applies to the waiting (or evicted) payments to a script; returns the txids that it moved or made. */
  doubleSpend(script: string): readonly string[];
  evict(script: string): readonly string[];
  sendAgain(script: string): readonly string[];
};
