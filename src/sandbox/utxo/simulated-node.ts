// One simulated currency: its chain, the journal that stores it, and its moves. Everything that a move changes is on disk before the move
// answers. rpc/server.ts serves its JSON-RPC.
import { join } from 'node:path';
import type { UtxoCode } from '../../core/currency.ts';
import type { Trouble } from '../trouble.ts';
import type { Block } from './block.ts';
import { applyEffect, type Effect } from './chain-effects.ts';
import {
  type Draft,
  doubleSpendAll,
  enter,
  evictAll,
  type MineOptions,
  mineBlock,
  mineFirstBlocks,
  pay,
  perform,
  reorganise,
  replace,
  returnAll,
} from './chain-moves.ts';
import { type ChainState, newChain, type Received, receivedBy } from './chain-state.ts';
import { DIALECTS, type Dialect } from './dialects.ts';
import { isOfMempool, type Journal, openJournal } from './journal.ts';
import type { Output, Transaction } from './transaction.ts';

export type NodeOptions = {
  readonly currency: UtxoCode;
  /** Where its journal is kept; null = only in memory. */
  readonly folder: string | null;
  /** Milliseconds on the sandbox's clock. */
  readonly now: () => number;
  /** Called when a move failed halfway: memory and disk may differ now, and the node must not be used any more. */
  readonly onBroken?: (error: Error) => void;
};

export type SimulatedNode = {
  readonly dialect: Dialect;
  /** For reading only. */
  readonly state: ChainState;
  /** Milliseconds on its clock. */
  readonly now: () => number;
  /** Pays these outputs from the faucet into the mempool; null when the faucet does not have enough. */
  pay(outputs: readonly Output[]): Transaction | null;
  /** Pays these outputs from the faucet and mines this many blocks, in one move. */
  fund(outputs: readonly Output[], blocks: number): void;
  /** Replaces a mempool transaction of the faucet, whatever the node's relay policy says; null when that is impossible. */
  replace(original: Transaction, outputs: readonly Output[]): Transaction | null;
  /** Puts a transaction that the caller has checked into the mempool; conflicting ones leave. */
  enter(transaction: Transaction, options: { readonly denied: boolean }): void;
  /** Makes the node deny a mempool transaction, or admit it again. */
  deny(transaction: Transaction, denied: boolean): void;
  /** Mines this many blocks; returns the last one. */
  mine(blocks: number, options?: MineOptions): Block;
  /** Replaces the top `depth` blocks (less than its height) by `depth + 1` empty ones; the new tip. */
  reorg(depth: number, options: { readonly drop: boolean }): Block;
  /** Removes the top `depth` blocks without a replacement (invalidateblock). */
  rewind(depth: number): void;
  /** Takes back the faucet's outputs that these mempool transactions spend; returns the conflicting transactions. */
  doubleSpend(originals: readonly Transaction[]): readonly Transaction[];
  /** Drops these from the mempool without a conflict, with what spends them; returns what was dropped. */
  evict(originals: readonly Transaction[]): readonly Transaction[];
  /** Sends these evicted transactions again; returns those that could come back. */
  sendAgain(evicted: readonly Transaction[]): readonly Transaction[];
  setTrouble(trouble: Trouble): void;
  /** The index of a new address of the outside world. */
  nextOutsideIndex(): number;
  received(script: string): readonly Received[];
  /** From now on it reports each move once that is in its journal, and gives this address as where it publishes. */
  announce(address: string, onMove: (effects: readonly Effect[]) => void): void;
  /** Where it publishes (`tcp://host:port`); null = nowhere. */
  publishesAt(): string | null;
  close(): void;
};

/** Opens a currency's chain, or creates it with its first blocks. */
export function openSimulatedNode(options: NodeOptions): SimulatedNode {
  const dialect = DIALECTS.get(options.currency);
  if (dialect === undefined) throw new Error(`no chain of ${options.currency} is simulated`);
  const state = newChain(dialect);
  const replay = (entry: unknown): void => {
    for (const effect of entry as readonly Effect[]) applyEffect(state, effect);
  };
  const journal = options.folder === null ? null : openJournal(join(options.folder, `${dialect.path}.journal`), replay);
  const node = movesOf(state, journal, options);
  if (state.active.length === 1) node.begin();
  return node;
}

function movesOf(state: ChainState, journal: Journal | null, { now, onBroken }: NodeOptions): SimulatedNode & { begin(): void } {
  let announced: { readonly address: string; readonly onMove: (effects: readonly Effect[]) => void } | null = null;
  const move = <T>(make: (draft: Draft) => T): T => {
    const draft: Draft = { state, nowSeconds: Math.floor(now() / 1000), effects: [] };
    try {
      const made = make(draft);
      if (draft.effects.length > 0) journal?.append(draft.effects, isOfMempool(draft.effects));
      announced?.onMove(draft.effects);
      return made;
    } catch (error) {
      onBroken?.(error as Error);
      throw error;
    }
  };
  return {
    dialect: state.dialect,
    state,
    now,
    begin: () => move(mineFirstBlocks),
    pay: (outputs) => move((draft) => pay(draft, outputs)),
    fund: (outputs, blocks) =>
      move((draft) => {
        pay(draft, outputs);
        for (let mined = 0; mined < blocks; mined++) mineBlock(draft);
      }),
    replace: (original, outputs) => move((draft) => replace(draft, original, outputs)),
    enter: (transaction, { denied }) =>
      move((draft) => {
        enter(draft, transaction);
        if (denied) perform(draft, ['deny', transaction.txid]);
      }),
    deny: ({ txid }, denied) =>
      move((draft) => {
        if (state.denied.has(txid) !== denied) perform(draft, [denied ? 'deny' : 'know', txid]);
      }),
    mine: (blocks, how) =>
      move((draft) => {
        let last = mineBlock(draft, how);
        for (let mined = 1; mined < blocks; mined++) last = mineBlock(draft, how);
        return last;
      }),
    reorg: (depth, { drop }) => move((draft) => reorganise(draft, depth, drop)),
    rewind: (depth) => move((draft) => perform(draft, ['rewind', depth, draft.nowSeconds])),
    doubleSpend: (originals) => move((draft) => doubleSpendAll(draft, originals)),
    evict: (originals) => move((draft) => evictAll(draft, originals)),
    sendAgain: (evicted) => move((draft) => returnAll(draft, evicted)),
    setTrouble: (trouble) => move((draft) => perform(draft, ['trouble', trouble])),
    nextOutsideIndex: () =>
      move((draft) => {
        perform(draft, ['addresses', state.addressesGiven + 1]);
        return state.addressesGiven;
      }),
    received: (script) => receivedBy(state, script),
    announce(address, onMove) {
      announced = { address, onMove };
    },
    publishesAt: () => announced?.address ?? null,
    close: () => journal?.close(),
  };
}
