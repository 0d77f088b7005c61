// One simulated Ethereum chain: its state, the journal that stores it, and its moves. Everything that a move changes is on disk before the
// move answers. evm-rpc.ts serves its JSON-RPC.
import { join } from 'node:path';
import type { Trouble } from '../trouble.ts';
import { isOfMempool, type Journal, openJournal } from '../utxo/journal.ts';
import {
  accountsOf,
  applyEffect,
  BASE_FEE,
  type Effect,
  type EvmBlock,
  type EvmState,
  newEvmState,
  nonce,
  PLAIN_GAS,
  rivalOf,
  SENDER_ETHER,
  SENDER_TOKENS,
  stored,
  tip,
} from './chain-state.ts';
import { ether, FAKE_TOKEN, FORWARDER, forwardCall, paidBy, type Share, TOKEN, transferCall } from './contracts.ts';
import { readRaw } from './raw-transaction.ts';
import { addressOf, type EvmTransaction, secretOf, signTransaction, TIP, type Unsigned } from './transaction.ts';

export type EvmCurrency = 'ETH' | 'USDT';
/** What a payment is made by; `null`: the plain way. */
export type PayKind = 'token_fake' | 'token_failed' | 'internal' | 'internal_reverted' | null;
export type Received = { readonly txid: string; readonly minor: bigint; readonly confirmations: number };

export type SimulatedEvm = {
  /** For reading only. */
  readonly state: EvmState;
  /** Puts a payment of these shares into the pool; null when no sender has enough. */
  pay(currency: EvmCurrency, shares: readonly Share[], kind: PayKind): EvmTransaction | null;
  /** Replaces a waiting transaction by one of the same sender and nonce with a higher fee; null when its sender does not have enough. */
  replace(original: EvmTransaction, currency: EvmCurrency, shares: readonly Share[]): EvmTransaction | null;
  /** Mines this many blocks, the first of all that waits; returns the last one. */
  mine(blocks: number): EvmBlock;
  /**
   * Replaces the top `depth` blocks (less than its height) by `depth + 1` empty ones; the new tip.
   * @param drop the sandbox's transactions in them are spent elsewhere in the new branch
   */
  reorg(depth: number, drop: boolean): EvmBlock;
  /** Removes the top `depth` blocks without a replacement. */
  rewind(depth: number): void;
  /** Replaces these waiting transactions by ones that pay somebody else; returns those. */
  doubleSpend(originals: readonly EvmTransaction[]): readonly EvmTransaction[];
  evict(originals: readonly EvmTransaction[]): void;
  /** Sends evicted transactions again; returns those whose nonce is still free. */
  sendAgain(evicted: readonly EvmTransaction[]): readonly EvmTransaction[];
  /**
   * Takes the bytes of a signed transaction from outside into the pool.
   * @param denied our node says afterwards that it does not have it
   * @returns its hash, or why it is refused, in geth's words
   */
  send(raw: string, denied: boolean): { readonly hash: string } | { readonly refused: string };
  setTrouble(trouble: Trouble): void;
  /** An address of the outside world that nobody got before. */
  nextOutsideAddress(): string;
  received(currency: EvmCurrency, address: string): readonly Received[];
  close(): void;
};

const FIRST_BLOCKS = 100;
/** What the sandbox's own senders allow a call. */
const GAS_LIMIT = 90_000;

/** @param options.folder where its journal is kept; null = only in memory */
export function openSimulatedEvm(options: {
  readonly folder: string | null;
  /** Milliseconds on the sandbox's clock. */
  readonly now: () => number;
  /** Called when a move failed halfway: memory and disk may differ now. */
  readonly onBroken?: (error: Error) => void;
}): SimulatedEvm {
  const state = newEvmState();
  const replay = (entry: unknown): void => {
    for (const effect of entry as readonly Effect[]) applyEffect(state, effect);
  };
  const journal = options.folder === null ? null : openJournal(join(options.folder, 'eth.journal'), replay);
  const chain = movesOf(state, journal, options);
  if (state.active.length === 1) chain.mine(FIRST_BLOCKS);
  return chain;
}

type Draft = { readonly state: EvmState; readonly effects: Effect[]; readonly nowSeconds: number };

function perform(draft: Draft, effect: Effect): void {
  applyEffect(draft.state, effect);
  draft.effects.push(effect);
}

function movesOf(
  state: EvmState,
  journal: Journal | null,
  { now, onBroken }: Pick<Parameters<typeof openSimulatedEvm>[0], 'now' | 'onBroken'>,
): SimulatedEvm {
  const move = <T>(make: (draft: Draft) => T): T => {
    const draft: Draft = { state, nowSeconds: Math.floor(now() / 1000), effects: [] };
    try {
      const made = make(draft);
      if (draft.effects.length > 0) journal?.append(draft.effects, isOfMempool(draft.effects));
      return made;
    } catch (error) {
      onBroken?.(error as Error);
      throw error;
    }
  };
  return {
    state,
    pay: (currency, shares, kind) => move((draft) => pay(draft, currency, shares, kind)),
    replace: (original, currency, shares) =>
      move((draft) => (isAffordable(currency, shares) ? resign(draft, original, callFor(currency, shares, null)) : null)),
    mine: (blocks) =>
      move((draft) => {
        for (let mined = 0; mined < blocks; mined++) mineBlock(draft, mined === 0 ? executable(state) : []);
        return tip(state);
      }),
    reorg: (depth, drop) => move((draft) => reorganise(draft, depth, drop)),
    rewind: (depth) => move((draft) => perform(draft, ['rewind', depth])),
    doubleSpend: (originals) => move((draft) => spendElsewhere(draft, originals)),
    evict: (originals) =>
      move((draft) => {
        for (const { hash } of originals) perform(draft, ['evict', hash]);
      }),
    sendAgain: (evicted) =>
      move((draft) => {
        const back = evicted.filter((one) => accountsOf(state).get(nonce(one.from)) === BigInt(one.nonce));
        for (const one of back) perform(draft, ['tx', stored(one)]);
        return back;
      }),
    send: (raw, denied) => move((draft) => sendRaw(draft, raw, denied)),
    setTrouble: (trouble) => move((draft) => perform(draft, ['trouble', trouble])),
    nextOutsideAddress: () =>
      move((draft) => {
        perform(draft, ['addresses', state.addressesGiven + 1]);
        return addressOf(secretOf(`outside ETH ${state.addressesGiven}`));
      }),
    received: (currency, address) => receivedBy(state, currency, address),
    close: () => journal?.close(),
  };
}

type Call = Pick<Unsigned, 'to' | 'value' | 'input'>;

function callFor(currency: EvmCurrency, shares: readonly Share[], kind: PayKind): Call {
  const total = shares.reduce((sum, { minor }) => sum + minor, 0n);
  const [only] = shares as readonly [Share];
  if (kind === 'internal_reverted') return { to: FORWARDER, value: total, input: forwardCall(shares, 'reverted') };
  if (currency === 'ETH')
    return kind === 'internal' || shares.length > 1
      ? { to: FORWARDER, value: total, input: forwardCall(shares, 'ether') }
      : { to: only.to, value: total, input: '0x' };
  const token = kind === 'token_fake' ? FAKE_TOKEN : TOKEN;
  return shares.length > 1
    ? { to: FORWARDER, value: 0n, input: forwardCall(shares, 'tokens') }
    : { to: token, value: 0n, input: transferCall(only.to, total) };
}

function isAffordable(currency: EvmCurrency, shares: readonly Share[]): boolean {
  const total = shares.reduce((sum, { minor }) => sum + minor, 0n);
  return total <= (currency === 'ETH' ? SENDER_ETHER - 10n ** 18n : SENDER_TOKENS);
}

/** Each payment has a sender of its own, so that none waits for the nonce of another. */
function pay(draft: Draft, currency: EvmCurrency, shares: readonly Share[], kind: PayKind): EvmTransaction | null {
  if (!isAffordable(currency, shares)) return null;
  const name = `payer ${draft.state.senders.size}`;
  const secret = secretOf(name);
  perform(draft, ['sender', name, addressOf(secret), kind !== 'token_failed']);
  const call = callFor(currency, shares, kind);
  const gas = call.input === '0x' ? PLAIN_GAS : GAS_LIMIT;
  const made = signTransaction({ ...call, nonce: 0, maxFee: 2n * BASE_FEE + TIP, tip: TIP, gas }, secret);
  perform(draft, ['tx', stored(made)]);
  return made;
}

/** The same sender and nonce with another call, for at least an eighth more: what nodes ask of a replacement. */
function resign(draft: Draft, original: EvmTransaction, call: Call): EvmTransaction {
  const secret = secretOf(draft.state.senders.get(original.from) as string);
  const gas = call.input === '0x' ? PLAIN_GAS : GAS_LIMIT;
  const made = signTransaction(
    { ...call, nonce: original.nonce, maxFee: (original.maxFee * 9n + 7n) / 8n, tip: (original.tip * 9n + 7n) / 8n, gas },
    secret,
  );
  perform(draft, ['tx', stored(made)]);
  return made;
}

/** What geth's pool asks of a transaction; a replacement pays a tenth more of both fees. */
function sendRaw(draft: Draft, raw: string, denied: boolean): { readonly hash: string } | { readonly refused: string } {
  const { state } = draft;
  const made = readRaw(raw);
  if (made === null) return { refused: 'rlp: input is no transaction of this chain' };
  const accounts = accountsOf(state);
  const isKnown = state.pool.has(made.hash);
  if (!isKnown && accounts.get(nonce(made.from)) > BigInt(made.nonce))
    return { refused: `nonce too low: next nonce ${accounts.get(nonce(made.from))}, tx nonce ${made.nonce}` };
  if (made.gas < PLAIN_GAS) return { refused: 'intrinsic gas too low' };
  if (accounts.get(ether(made.from)) < made.value + made.maxFee * BigInt(made.gas))
    return { refused: 'insufficient funds for gas * price + value' };
  const rival = rivalOf(state, made);
  const isMore = (one: bigint, other: bigint): boolean => one * 10n >= other * 11n;
  if (!isKnown && rival !== null && !(isMore(made.maxFee, rival.maxFee) && isMore(made.tip, rival.tip)))
    return { refused: 'replacement transaction underpriced' };
  if (!isKnown) perform(draft, ['tx', stored(made)]);
  if (denied && !state.denied.has(made.hash)) perform(draft, ['deny', made.hash]);
  return isKnown && !denied ? { refused: 'already known' } : { hash: made.hash };
}

function spendElsewhere(draft: Draft, originals: readonly EvmTransaction[]): readonly EvmTransaction[] {
  // what came from outside is not the sandbox's to spend
  const own = originals.filter(({ from }) => draft.state.senders.has(from));
  return own.map((original) => resign(draft, original, { to: addressOf(secretOf('elsewhere')), value: 1n, input: '0x' }));
}

/** What of the pool a block can take: the next nonces of its senders, as far as these have ether. What was replaced, or came back, came later. */
function executable(state: EvmState): readonly string[] {
  const accounts = accountsOf(state);
  const next = new Map<string, bigint>();
  const hashes: string[] = [];
  for (const { hash, from, nonce: number, value, maxFee, gas } of [...state.pool.values()].sort((a, b) => a.nonce - b.nonce)) {
    const expected = next.get(from) ?? accounts.get(nonce(from));
    if (BigInt(number) !== expected || maxFee < BASE_FEE || accounts.get(ether(from)) < value + maxFee * BigInt(gas)) continue;
    next.set(from, expected + 1n);
    hashes.push(hash);
  }
  return hashes;
}

function mineBlock(draft: Draft, hashes: readonly string[]): void {
  perform(draft, ['block', Math.max(draft.nowSeconds, tip(draft.state).timestamp), hashes]);
}

function reorganise(draft: Draft, depth: number, drop: boolean): EvmBlock {
  const { state } = draft;
  const lost = state.active.slice(-depth).flatMap((block) => block.transactions);
  perform(draft, ['rewind', depth]);
  const rivals = drop ? spendElsewhere(draft, lost) : [];
  mineBlock(
    draft,
    rivals.map(({ hash }) => hash),
  );
  for (let mined = 0; mined < depth; mined++) mineBlock(draft, []);
  return tip(state);
}

function receivedBy(state: EvmState, currency: EvmCurrency, address: string): readonly Received[] {
  const height = tip(state).number;
  return [...(state.payers.get(`${currency}:${address}`) ?? [])].flatMap((hash) => {
    const place = state.places.get(hash);
    const transaction = state.known.get(hash) as EvmTransaction;
    if (place === undefined ? !state.pool.has(hash) : !place.block.executed[place.at]?.succeeded) return [];
    const minor = paidBy(transaction).reduce(
      (sum, one) => sum + (one.currency === currency && one.to === address ? one.minor : 0n),
      0n,
    );
    return [{ txid: hash, minor, confirmations: place === undefined ? 0 : height - place.block.number + 1 }];
  });
}
