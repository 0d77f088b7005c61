// What a simulated node knows: blocks (also of lost branches), the transactions of the best chain and of the mempool, and who spends what.
// A transaction is *alive* while it is in one of the two; alive transactions never contradict each other. Only chain-effects.ts changes it.
import { utxoRow } from '../../core/currency.ts';
import { minus, sum } from '../../core/money.ts';
import { NO_TROUBLE, type Trouble } from '../trouble.ts';
import { type Block, genesisBlock } from './block.ts';
import type { Dialect } from './dialects.ts';
import { faucetScript, minerScript } from './faucet-key.ts';
import { outpointKey, type Parts, type Transaction } from './transaction.ts';

export type Alive = {
  readonly transaction: Transaction;
  /** The block of the best chain with this transaction; null = mempool. */
  block: Block | null;
};
export type MempoolEntry = {
  readonly transaction: Transaction;
  /** Seconds since 1970 at which it entered. */
  readonly time: number;
  /** Height of the tip at that time. */
  readonly height: number;
};
export type ChainState = {
  readonly dialect: Dialect;
  /** Every block ever, by hash. */
  readonly blocks: Map<string, Block>;
  /** The best chain by height. */
  readonly active: Block[];
  readonly alive: Map<string, Alive>;
  /** Which alive transaction spends an outpoint. */
  readonly spenders: Map<string, string>;
  /** In an order where parents come before their children. */
  mempool: Map<string, MempoolEntry>;
  /** Transactions that ever paid a script (hex), except the faucet's and the miner's. */
  readonly byScript: Map<string, Set<string>>;
  /** The outputs that the faucet can spend, oldest first. */
  readonly faucetOutputs: Map<string, bigint>;
  /** Transactions that are in every other mempool but that this node denies (fault `forgets`). */
  readonly denied: Set<string>;
  /** Alive transactions that a quorum has locked (Dash). */
  readonly locked: Set<string>;
  /** Transactions that every mempool has dropped without a conflict, parents first; the faucet does not spend their inputs. */
  readonly evicted: Map<string, Transaction>;
  /** Height up to which the best chain is locked (Dash); −1 = not at all. */
  chainLock: number;
  trouble: Trouble;
  addressesGiven: number;
  /** Counts the branches that replaced another, so that their coinbases differ. */
  branches: number;
};

/** A chain with nothing but its genesis block, in the dialect of a currency. */
export function newChain(dialect: Dialect): ChainState {
  const genesis = genesisBlock(dialect);
  return {
    dialect,
    blocks: new Map([[genesis.hash, genesis]]),
    active: [genesis],
    alive: new Map(),
    spenders: new Map(),
    mempool: new Map(),
    byScript: new Map(),
    faucetOutputs: new Map(),
    denied: new Set(),
    locked: new Set(),
    evicted: new Map(),
    chainLock: -1,
    trouble: NO_TROUBLE,
    addressesGiven: 0,
    branches: 0,
  };
}

/** The newest block of the active chain. */
export const tip = (state: ChainState): Block => state.active[state.active.length - 1] as Block;
/** Whether a block is on the active chain, not on a branch that a reorganisation has left. */
export const isActive = (state: ChainState, block: Block): boolean => state.active[block.height] === block;
/** Confirmations of a block: 1 for the tip, −1 off the best chain. */
export const confirmationsOf = (state: ChainState, block: Block): number =>
  isActive(state, block) ? tip(state).height - block.height + 1 : -1;

/** Makes a transaction alive; its conflicts must be dead already. */
export function bringToLife(state: ChainState, transaction: Transaction, block: Block | null): void {
  state.alive.set(transaction.txid, block?.packed ? aloneIn(block) : { transaction, block });
  if (!transaction.coinbase) {
    for (const input of transaction.inputs) {
      state.spenders.set(outpointKey(input), transaction.txid);
      state.faucetOutputs.delete(outpointKey(input));
    }
  }
  transaction.outputs.forEach((output, vout) => {
    if (output.script.equals(faucetScript(state.dialect))) state.faucetOutputs.set(`${transaction.txid}:${vout}`, output.minor);
    else if (!output.script.equals(minerScript(state.dialect)) && output.minor > 0n)
      noteScript(state, output.script.toString('hex'), transaction.txid);
  });
}

/** The coinbase of a block with nothing else: the block keeps it, packed. */
const aloneIn = (block: Block): Alive => ({
  get transaction() {
    return block.transactions[0] as Transaction;
  },
  block,
});

function noteScript(state: ChainState, script: string, txid: string): void {
  const known = state.byScript.get(script);
  if (known === undefined) state.byScript.set(script, new Set([txid]));
  else known.add(txid);
}

/** Kills a transaction after everything that spends it. */
export function kill(state: ChainState, txid: string): void {
  const known = state.alive.get(txid);
  if (known === undefined) return;
  const { transaction } = known;
  transaction.outputs.forEach((_, vout) => {
    const spender = state.spenders.get(`${txid}:${vout}`);
    if (spender !== undefined) kill(state, spender);
    state.faucetOutputs.delete(`${txid}:${vout}`);
  });
  state.alive.delete(txid);
  state.mempool.delete(txid);
  state.denied.delete(txid);
  state.locked.delete(txid);
  if (transaction.coinbase) return;
  for (const input of transaction.inputs) {
    state.spenders.delete(outpointKey(input));
    const source = state.alive.get(input.txid)?.transaction.outputs[input.vout];
    if (source?.script.equals(faucetScript(state.dialect))) state.faucetOutputs.set(outpointKey(input), source.minor);
  }
}

/** The alive transactions that spend one of the same outputs, each once. */
export function conflictsOf(state: ChainState, transaction: Transaction): readonly string[] {
  const found = new Set<string>();
  for (const input of transaction.inputs) {
    const spender = state.spenders.get(outpointKey(input));
    if (spender !== undefined && spender !== transaction.txid) found.add(spender);
  }
  return [...found];
}

/** Inputs minus outputs; null when a source is not alive. */
export function feeOf(state: ChainState, transaction: Transaction): bigint | null {
  if (transaction.coinbase) return 0n;
  const sources: bigint[] = [];
  for (const input of transaction.inputs) {
    const source = state.alive.get(input.txid)?.transaction.outputs[input.vout];
    if (source === undefined) return null;
    sources.push(source.minor);
  }
  return minus(sum(sources), sum(transaction.outputs.map((output) => output.minor)));
}

/** Whether every coinbase that a transaction spends is deep enough for the next block. */
export function isMature(state: ChainState, transaction: Parts): boolean {
  const maturity = utxoRow(state.dialect.code).utxo.coinbaseMaturity;
  return transaction.inputs.every((input) => {
    const source = state.alive.get(input.txid);
    if (source === undefined || !source.transaction.coinbase) return true;
    return source.block !== null && tip(state).height + 1 - source.block.height >= maturity;
  });
}

export type Received = { readonly txid: string; readonly minor: bigint; readonly confirmations: number };

/** What alive transactions pay to a script (hex), one line per transaction, in the order of their first arrival. */
export function receivedBy(state: ChainState, script: string): readonly Received[] {
  const lines: Received[] = [];
  for (const txid of state.byScript.get(script) ?? []) {
    const known = state.alive.get(txid);
    if (known === undefined) continue;
    const minor = sum(
      known.transaction.outputs.filter((output) => output.script.toString('hex') === script).map((output) => output.minor),
    );
    lines.push({ txid, minor, confirmations: known.block === null ? 0 : confirmationsOf(state, known.block) });
  }
  return lines;
}
