// What the simulated Ethereum chain knows: blocks of the best chain and of lost branches, the accounts after the tip, and the pool. Everything
// that changes it is an effect, which the journal stores and plays again.

import { NO_TROUBLE, type Trouble } from '../trouble.ts';
import { type Accounts, type Executed, ether, execute, FAKE_TOKEN, paidBy, TOKEN, tokens } from './contracts.ts';
import { type EvmTransaction, keccak, TIP } from './transaction.ts';

export type EvmBlock = {
  readonly number: number;
  readonly hash: string;
  readonly parentHash: string;
  /** Seconds since 1970. */
  readonly timestamp: number;
  readonly transactions: readonly EvmTransaction[];
  readonly executed: readonly Executed[];
  /** What the accounts were before it. */
  readonly undo: ReadonlyMap<string, bigint>;
};

export type EvmState = {
  readonly blocks: Map<string, EvmBlock>;
  /** The best chain by height. */
  readonly active: EvmBlock[];
  readonly accounts: Map<string, bigint>;
  /** Waiting transactions by hash, in the order in which they came; one for each sender and nonce. */
  readonly pool: Map<string, EvmTransaction>;
  /** Those that our node says it does not have; the others have them. */
  readonly denied: Set<string>;
  /** Those that every pool has dropped. */
  readonly evicted: Map<string, EvmTransaction>;
  /** Where each transaction of the best chain is. */
  readonly places: Map<string, { readonly block: EvmBlock; readonly at: number }>;
  /** The transactions that ever paid an address, by `currency:address`. */
  readonly payers: Map<string, Set<string>>;
  readonly known: Map<string, EvmTransaction>;
  /** The name of the key of each sender that the sandbox made. */
  readonly senders: Map<string, string>;
  trouble: Trouble;
  addressesGiven: number;
  branches: number;
};

/** A transaction as the journal stores it: amounts as text. */
export type StoredTransaction = Omit<EvmTransaction, 'value' | 'maxFee' | 'tip'> & {
  readonly value: string;
  readonly maxFee: string;
  /** Absent in journals of earlier versions. */
  readonly tip?: string;
};
export type Effect =
  | readonly ['sender', name: string, address: string, hasTokens: boolean]
  | readonly ['tx', transaction: StoredTransaction]
  | readonly ['evict', hash: string]
  | readonly ['deny', hash: string]
  | readonly ['block', timestamp: number, hashes: readonly string[]]
  | readonly ['rewind', depth: number]
  | readonly ['trouble', trouble: Trouble]
  | readonly ['addresses', count: number];

/** What each sender of the sandbox has at first: ether and tokens without end, as far as any test goes. */
export const SENDER_ETHER = 1_000_000n * 10n ** 18n;
export const SENDER_TOKENS = 1_000_000_000n * 10n ** 6n;
const GENESIS_SECONDS = 1_438_269_973;
export const BASE_FEE = 1_000_000_000n;
export const PLAIN_GAS = 21_000;
export const CALL_GAS = 65_000;

/** What a transaction uses of its gas, and what it pays for it (EIP-1559). */
export const gasUsedBy = ({ gas, input }: Pick<EvmTransaction, 'gas' | 'input'>): number =>
  Math.min(gas, input === '0x' ? PLAIN_GAS : CALL_GAS);
/** What a transaction pays for each unit of gas, in wei (EIP-1559): base fee and tip, at most its own limit. */
export const gasPriceOf = ({ maxFee, tip: priority }: Pick<EvmTransaction, 'maxFee' | 'tip'>): bigint =>
  maxFee < BASE_FEE + priority ? maxFee : BASE_FEE + priority;
/** What a transaction costs its sender in all, in wei. */
export const feeOf = (transaction: EvmTransaction): bigint => BigInt(gasUsedBy(transaction)) * gasPriceOf(transaction);

/** The key of {@link Accounts} under which an address has its next nonce. */
export const nonce = (address: string): string => `nonce:${address}`;
/** The newest block of the active chain. */
export const tip = (state: EvmState): EvmBlock => state.active[state.active.length - 1] as EvmBlock;

/** A chain with nothing but its genesis block. */
export function newEvmState(): EvmState {
  const genesis: EvmBlock = {
    number: 0,
    hash: keccak('bursar sandbox ethereum genesis'),
    parentHash: `0x${'0'.repeat(64)}`,
    timestamp: GENESIS_SECONDS,
    transactions: [],
    executed: [],
    undo: new Map(),
  };
  return {
    blocks: new Map([[genesis.hash, genesis]]),
    active: [genesis],
    accounts: new Map(),
    pool: new Map(),
    denied: new Set(),
    evicted: new Map(),
    places: new Map(),
    payers: new Map(),
    known: new Map(),
    senders: new Map(),
    trouble: NO_TROUBLE,
    addressesGiven: 0,
    branches: 0,
  };
}

/** The accounts as contracts read and change them; what was never set is 0. */
export function accountsOf({ accounts }: EvmState): Accounts {
  return { get: (key) => accounts.get(key) ?? 0n, set: (key, value) => void accounts.set(key, value) };
}

/** The accounts after a block of the best chain: what later blocks changed is undone. */
export function accountsAfter(state: EvmState, number: number): Pick<Accounts, 'get'> {
  const later = state.active.slice(number + 1);
  return { get: (key) => later.find(({ undo }) => undo.has(key))?.undo.get(key) ?? state.accounts.get(key) ?? 0n };
}

/** A transaction as the journal has it: JSON has no bigint, so wei are decimal strings. */
export const stored = (transaction: EvmTransaction): StoredTransaction => ({
  ...transaction,
  value: String(transaction.value),
  maxFee: String(transaction.maxFee),
  tip: String(transaction.tip),
});
const restored = (transaction: StoredTransaction): EvmTransaction => ({
  ...transaction,
  value: BigInt(transaction.value),
  maxFee: BigInt(transaction.maxFee),
  tip: BigInt(transaction.tip ?? TIP),
});

/** The waiting transaction with this sender and nonce. */
export function rivalOf(
  { pool }: EvmState,
  { from, nonce: number }: Pick<EvmTransaction, 'from' | 'nonce'>,
): EvmTransaction | null {
  for (const one of pool.values()) if (one.from === from && one.nonce === number) return one;
  return null;
}

/** Changes the state by one line of the journal. It refuses nothing: what is written was checked before. */
export function applyEffect(state: EvmState, effect: Effect): void {
  switch (effect[0]) {
    case 'sender':
      state.senders.set(effect[2], effect[1]);
      state.accounts.set(ether(effect[2]), SENDER_ETHER);
      if (effect[3]) for (const contract of [TOKEN, FAKE_TOKEN]) state.accounts.set(tokens(contract, effect[2]), SENDER_TOKENS);
      return;
    case 'tx':
      enter(state, restored(effect[1]));
      return;
    case 'evict': {
      const gone = state.pool.get(effect[1]);
      if (gone !== undefined) state.evicted.set(gone.hash, gone);
      state.pool.delete(effect[1]);
      return;
    }
    case 'deny':
      state.denied.add(effect[1]);
      return;
    case 'block':
      connect(state, effect[1], effect[2]);
      return;
    case 'rewind':
      rewind(state, effect[1]);
      return;
    case 'trouble':
      state.trouble = effect[1];
      return;
    case 'addresses':
      state.addressesGiven = effect[1];
  }
}

function enter(state: EvmState, transaction: EvmTransaction): void {
  const rival = rivalOf(state, transaction);
  if (rival !== null) state.pool.delete(rival.hash);
  state.evicted.delete(transaction.hash);
  state.pool.set(transaction.hash, transaction);
  state.known.set(transaction.hash, transaction);
  for (const { currency, to } of paidBy(transaction)) {
    const key = `${currency}:${to}`;
    state.payers.set(key, (state.payers.get(key) ?? new Set()).add(transaction.hash));
  }
}

function connect(state: EvmState, timestamp: number, hashes: readonly string[]): void {
  const parent = tip(state);
  const undo = new Map<string, bigint>();
  const accounts: Accounts = {
    get: (key) => state.accounts.get(key) ?? 0n,
    set(key, value) {
      if (!undo.has(key)) undo.set(key, state.accounts.get(key) ?? 0n);
      state.accounts.set(key, value);
    },
  };
  const transactions = hashes.map((hash) => state.known.get(hash) as EvmTransaction);
  const executed = transactions.map((transaction) => {
    const { from } = transaction;
    accounts.set(nonce(from), accounts.get(nonce(from)) + 1n);
    accounts.set(ether(from), accounts.get(ether(from)) - feeOf(transaction));
    return execute(accounts, transaction);
  });
  const number = parent.number + 1;
  const hash = keccak(JSON.stringify([parent.hash, number, timestamp, state.branches, hashes]));
  const block: EvmBlock = { number, hash, parentHash: parent.hash, timestamp, transactions, executed, undo };
  state.blocks.set(hash, block);
  state.active.push(block);
  for (const [at, transaction] of transactions.entries()) {
    state.places.set(transaction.hash, { block, at });
    const rival = rivalOf(state, transaction);
    if (rival !== null) state.pool.delete(rival.hash);
    state.evicted.delete(transaction.hash);
  }
}

/** Removes the top blocks; their transactions wait again, before those that came later. */
function rewind(state: EvmState, depth: number): void {
  const lost = state.active.splice(state.active.length - depth);
  for (const block of lost.toReversed()) for (const [key, value] of block.undo) state.accounts.set(key, value);
  const waiting = [...state.pool.values()];
  state.pool.clear();
  for (const transaction of [...lost.flatMap((block) => block.transactions), ...waiting]) {
    state.places.delete(transaction.hash);
    if (rivalOf(state, transaction) === null) state.pool.set(transaction.hash, transaction);
  }
  state.branches += 1;
}
