// The few things that can happen to a simulated chain. Each is applied to the state and written to the journal in the same form, so that
// reading the journal again gives the same state.

import type { Trouble } from '../trouble.ts';
import { type Block, blockHash, blockOf, median, readHeader } from './block.ts';
import { bringToLife, type ChainState, conflictsOf, kill, type MempoolEntry, tip } from './chain-state.ts';
import { outpointKey, readTransaction, type Transaction } from './transaction.ts';

export type Effect =
  /** A transaction enters the mempool (hex, seconds); conflicting ones leave. */
  | readonly ['tx', string, number]
  /** A mempool transaction and what spends it are dropped without a conflict. */
  | readonly ['evict', string]
  /**
   * A block on the tip: header, coinbase (hex), ids of the mempool transactions that it mines, and its hash where that is expensive to
   * compute.
   */
  | readonly ['block', string, string, readonly string[], string?]
  /** The top n blocks leave the best chain; their transactions return to the mempool (seconds). */
  | readonly ['rewind', number, number]
  /** The node denies a mempool transaction, or admits it again. */
  | readonly ['deny', string]
  | readonly ['know', string]
  | readonly ['trouble', Trouble]
  /** How many outside addresses have been given out. */
  | readonly ['addresses', number];

/** Changes the state by one line of the journal. It refuses nothing: what is written was checked before. */
export function applyEffect(state: ChainState, effect: Effect): void {
  switch (effect[0]) {
    case 'tx':
      enterMempool(state, transactionOf(effect[1]), effect[2]);
      break;
    case 'evict':
      evict(state, effect[1]);
      break;
    case 'block':
      connect(state, effect);
      break;
    case 'rewind':
      rewind(state, effect[1], effect[2]);
      break;
    case 'deny':
      state.denied.add(effect[1]);
      break;
    case 'know':
      state.denied.delete(effect[1]);
      break;
    case 'trouble':
      state.trouble = effect[1];
      break;
    case 'addresses':
      state.addressesGiven = effect[1];
      break;
  }
}

function transactionOf(hex: string): Transaction {
  const transaction = readTransaction(hex);
  if (transaction === null) throw new Error('the journal holds something that is not a transaction');
  return transaction;
}

function enterMempool(state: ChainState, transaction: Transaction, time: number): void {
  for (const txid of conflictsOf(state, transaction)) kill(state, txid);
  state.evicted.delete(transaction.txid);
  bringToLife(state, transaction, null);
  state.mempool.set(transaction.txid, { transaction, time, height: tip(state).height });
  if (state.dialect.quorums && state.trouble.fault !== 'no_locks') state.locked.add(transaction.txid);
}

function evict(state: ChainState, txid: string): void {
  const before = [...state.mempool.values()];
  kill(state, txid);
  const dropped = before.map((entry) => entry.transaction).filter((transaction) => !state.mempool.has(transaction.txid));
  for (const transaction of dropped) {
    state.evicted.set(transaction.txid, transaction);
    for (const input of transaction.inputs) state.faucetOutputs.delete(outpointKey(input));
  }
}

function connect(state: ChainState, [, headerHex, coinbaseHex, txids, hash]: Extract<Effect, { 0: 'block' }>): void {
  const read = readHeader(Buffer.from(headerHex, 'hex'));
  const fromMempool = txids.map((txid) => {
    const known = state.alive.get(txid);
    if (known === undefined) throw new Error(`the journal mines ${txid}, which is not in the mempool`);
    return known.transaction;
  });
  const transactions = [transactionOf(coinbaseHex), ...fromMempool];
  const height = state.active.length;
  const previous = tip(state);
  if (read.previousHash !== previous.hash) throw new Error(`a block of the journal at height ${height} does not fit the tip`);
  const header = { ...read, previousHash: previous.hash };
  const times = [...state.active.slice(Math.max(0, height - 10)).map((block) => block.time), header.time];
  const place = { height, medianTime: median(times), hash: hash ?? blockHash(state.dialect, header) };
  const block = blockOf(header, place, transactions);
  state.active.push(block);
  state.blocks.set(block.hash, block);
  for (const transaction of transactions) {
    state.mempool.delete(transaction.txid);
    state.denied.delete(transaction.txid);
    const known = state.alive.get(transaction.txid);
    if (known === undefined) bringToLife(state, transaction, block);
    else known.block = block;
  }
  if (state.dialect.quorums && state.trouble.fault !== 'no_locks') state.chainLock = height;
}

function rewind(state: ChainState, count: number, time: number): void {
  const lost: Block[] = state.active.splice(state.active.length - count, count);
  const height = tip(state).height;
  state.chainLock = Math.min(state.chainLock, height);
  const returned = new Map<string, MempoolEntry>();
  for (const block of lost) {
    for (const transaction of parentsFirst(block.transactions)) {
      if (transaction.coinbase) continue;
      (state.alive.get(transaction.txid) as { block: Block | null }).block = null;
      returned.set(transaction.txid, { transaction, time, height });
    }
  }
  state.mempool = new Map([...returned, ...state.mempool]);
  state.branches += 1;
  for (const block of lost.reverse()) kill(state, (block.transactions[0] as Transaction).txid);
}

/** The transactions of a block, each after those of the same block that it spends. */
function parentsFirst(transactions: readonly Transaction[]): readonly Transaction[] {
  const waiting = new Map(transactions.map((transaction) => [transaction.txid, transaction]));
  const sorted: Transaction[] = [];
  const place = (transaction: Transaction): void => {
    waiting.delete(transaction.txid);
    for (const input of transaction.inputs) {
      const parent = waiting.get(input.txid);
      if (parent !== undefined) place(parent);
    }
    sorted.push(transaction);
  };
  for (const transaction of transactions) if (waiting.has(transaction.txid)) place(transaction);
  return sorted;
}
