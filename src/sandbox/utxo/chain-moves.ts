// The moves on a simulated chain: pay, mine, reorganise, double-spend. A move works on a draft: every effect is applied at once, and all
// effects of one move are written to the journal as one line.
import { utxoRow } from '../../core/currency.ts';
import { plus, sum } from '../../core/money.ts';
import { type Block, blockHash, coinbase, headerBytes, median, mineHeader } from './block.ts';
import { applyEffect, type Effect } from './chain-effects.ts';
import { type ChainState, conflictsOf, feeOf, isMature, tip } from './chain-state.ts';
import { doubleSpend, isFromFaucet, payment, replacement } from './faucet.ts';
import { faucetScript, minerScript } from './faucet-key.ts';
import type { Output, Transaction } from './transaction.ts';

export type Draft = {
  readonly state: ChainState;
  readonly nowSeconds: number;
  /** The effects of the move so far. */
  readonly effects: Effect[];
};

const BLOCK_WEIGHT = 4_000_000 - 8_000;
/** How many blocks a new chain has beyond those that make the faucet's outputs in block 1 mature. */
const SPARE_BLOCKS = 10;

/** Applies an effect to a draft and keeps it, so that it is written when the move has succeeded. */
export function perform(draft: Draft, effect: Effect): void {
  applyEffect(draft.state, effect);
  draft.effects.push(effect);
}

function subsidy(state: ChainState, height: number): bigint {
  const halvings = Math.floor(height / state.dialect.halvingBlocks);
  return halvings >= 64 ? 0n : state.dialect.subsidyMinor >> BigInt(halvings);
}

/** The mempool transactions that a block can include, parents first. */
function minable(state: ChainState): readonly Transaction[] {
  const chosen: Transaction[] = [];
  const left = new Set<string>();
  let weight = 0;
  for (const { transaction } of state.mempool.values()) {
    const orphaned = transaction.inputs.some((input) => left.has(input.txid));
    if (orphaned || weight + transaction.weight > BLOCK_WEIGHT || !isMature(state, transaction)) {
      left.add(transaction.txid);
      continue;
    }
    weight += transaction.weight;
    chosen.push(transaction);
  }
  return chosen;
}

export type MineOptions = {
  /** What to mine: the whole mempool, or exactly these transactions of it. */
  readonly transactions?: readonly Transaction[];
  /** Outputs of the coinbase; by default subsidy and fees to the miner. */
  readonly outputs?: readonly Output[];
  /** The script that gets subsidy and fees. */
  readonly script?: Buffer;
  /** Seconds; not before what the chain's rule allows. */
  readonly time?: number;
};

const inOrderOfIds = (transactions: readonly Transaction[]): readonly Transaction[] =>
  [...transactions].sort((a, b) => (a.txid < b.txid ? -1 : 1));

/** Mines one block on the tip. */
export function mineBlock(draft: Draft, options: MineOptions = {}): Block {
  const { state } = draft;
  const chosen = options.transactions ?? minable(state);
  const transactions = state.dialect.ordered ? inOrderOfIds(chosen) : chosen;
  const height = state.active.length;
  const previous = state.active.slice(Math.max(0, height - 11)).map((block) => block.time);
  const time = Math.max(median(previous) + 1, options.time ?? draft.nowSeconds);
  const fees = sum(transactions.map((transaction) => feeOf(state, transaction) ?? 0n));
  const outputs = options.outputs ?? [
    { minor: plus(subsidy(state, height), fees), script: options.script ?? minerScript(state.dialect) },
  ];
  const first = coinbase(state.dialect, { height, fork: state.branches, outputs, transactions });
  const header = mineHeader(state.dialect, { previousHash: tip(state).hash, time }, [first, ...transactions]);
  const txids = transactions.map((transaction) => transaction.txid);
  const parts = [headerBytes(header).toString('hex'), first.raw.toString('hex'), txids] as const;
  const isDear = state.dialect.headerHash === 'x11';
  perform(draft, isDear ? ['block', ...parts, blockHash(state.dialect, header)] : ['block', ...parts]);
  return tip(state);
}

/** The blocks that every new chain starts with: the faucet's outputs in block 1, then enough to make them mature. */
export function mineFirstBlocks(draft: Draft): void {
  const { faucet } = draft.state.dialect;
  const hoard = Array.from({ length: faucet.outputs }, () => ({
    minor: faucet.eachMinor,
    script: faucetScript(draft.state.dialect),
  }));
  const last = utxoRow(draft.state.dialect.code).utxo.coinbaseMaturity + SPARE_BLOCKS;
  for (let height = 1; height <= last; height++) {
    const time = draft.nowSeconds - (last - height);
    mineBlock(draft, height === 1 ? { outputs: hoard, time } : { time });
  }
}

/** Puts a transaction into the mempool; conflicting ones leave. */
export function enter(draft: Draft, transaction: Transaction): void {
  perform(draft, ['tx', transaction.raw.toString('hex'), draft.nowSeconds]);
}

/** Pays these outputs; null when the faucet does not have enough. */
export function pay(draft: Draft, outputs: readonly Output[]): Transaction | null {
  const transaction = payment(draft.state, outputs);
  if (transaction !== null) enter(draft, transaction);
  return transaction;
}

/** Replaces a mempool transaction of the faucet by one that pays these outputs; null when that is impossible. */
export function replace(draft: Draft, original: Transaction, outputs: readonly Output[]): Transaction | null {
  const transaction = replacement(draft.state, original, outputs);
  if (transaction !== null) enter(draft, transaction);
  return transaction;
}

/**
 * Conflicts with each of these that is still in the mempool and comes from the faucet; returns the conflicting transactions. A transaction
 * that spent an output of an earlier original has already left the mempool with it.
 */
export function doubleSpendAll(draft: Draft, originals: readonly Transaction[]): readonly Transaction[] {
  const made: Transaction[] = [];
  for (const original of originals) {
    if (!draft.state.mempool.has(original.txid)) continue;
    const conflict = doubleSpend(draft.state, original);
    if (conflict === null) continue;
    enter(draft, conflict);
    made.push(conflict);
  }
  return made.filter((conflict) => draft.state.mempool.has(conflict.txid));
}

/** Drops these from the mempool, with what spends them, as nodes do that are short of memory; returns what was dropped. */
export function evictAll(draft: Draft, originals: readonly Transaction[]): readonly Transaction[] {
  const before = new Set(draft.state.evicted.keys());
  for (const { txid } of originals) if (draft.state.mempool.has(txid)) perform(draft, ['evict', txid]);
  return [...draft.state.evicted.values()].filter(({ txid }) => !before.has(txid));
}

/** Sends evicted transactions again, parents first; those whose inputs still exist unspent. */
export function returnAll(draft: Draft, evicted: readonly Transaction[]): readonly Transaction[] {
  const returned = evicted.filter((transaction) => {
    const isPossible = feeOf(draft.state, transaction) !== null && conflictsOf(draft.state, transaction).length === 0;
    if (isPossible) enter(draft, transaction);
    return isPossible;
  });
  return returned;
}

/**
 * Replaces the top `depth` blocks by `depth + 1` empty ones; their transactions go back to the mempool.
 * @param drop double-spends those from the faucet in the first block of the new branch
 */
export function reorganise(draft: Draft, depth: number, drop: boolean): Block {
  const { state } = draft;
  const lost = state.active.slice(-depth).flatMap((block) => block.transactions.filter((transaction) => !transaction.coinbase));
  const incoming = lost.filter((transaction) => isFromFaucet(state, transaction));
  perform(draft, ['rewind', depth, draft.nowSeconds]);
  const conflicts = drop ? doubleSpendAll(draft, incoming) : [];
  mineBlock(draft, { transactions: conflicts });
  for (let mined = 0; mined < depth; mined++) mineBlock(draft, { transactions: [] });
  return tip(state);
}
