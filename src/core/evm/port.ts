// What payouts need of an Ethereum node, beyond what every chain's port has.
import type { BlockRef } from '../block-ref.ts';
import type { EvmCode } from '../currency.ts';
import type { ChainPort, PayingPort, TransactionFacts } from '../ports.ts';

/** A transaction of an account in a block of the node's best chain, by its receipt. */
export type MinedTransaction = {
  readonly height: number;
  readonly blockHash: string;
};
/** The same with what it pays by itself, and how it ended; what contracts have sent on is not in it. */
export type EndedTransaction = MinedTransaction & { readonly facts: TransactionFacts };
/**
 * What nodes show of a transaction in a block: what two of them show alike (the only one, where there is one), or null; whether as many of them
 * call its block final; and what each says, one sentence each.
 */
export type EndedByWord = {
  readonly ended: EndedTransaction | null;
  readonly isFinal: boolean;
  readonly said: readonly string[];
};
/** One transaction's place among those of an account. */
export type Nonce = { readonly address: string; readonly nonce: number };
/**
 * What nodes say of transactions of ours that share a nonce: one that has succeeded, or null; whether one says that nothing has used the nonce,
 * so that they can be mined yet; whether two of them (the only one, where there is one) say that none has paid and none can be mined any more,
 * because of a block that they call final;
 * and why some of them say nothing, or cannot know, one sentence each.
 */
export type PaidByWord = {
  readonly paid: (MinedTransaction & { readonly txid: string }) | null;
  readonly isUnused: boolean;
  readonly isDenied: boolean;
  readonly silent: readonly string[];
};
/**
 * What two nodes say alike (the only one, where there is one), or null; the most that one of them says, what waits for a block included; and what
 * each says, one sentence each.
 */
export type SentByWord = { readonly nonce: number | null; readonly most: number; readonly said: readonly string[] };
/**
 * What nodes say that an account holds after a final block, and how many transactions it had sent by then: what two of them say alike (the only one,
 * where there is one), or null; the most units that one of them says, null where none does; and what each says, one sentence each.
 */
export type HeldByWord = {
  readonly held: { readonly nonce: number; readonly units: bigint } | null;
  readonly most: bigint | null;
  readonly said: readonly string[];
};
/** What one node says that an address holds, in minor units. */
export type SaidByOne = { readonly amount: bigint; readonly by: string };
/** What nodes say that an address holds: the most that one of them says, and, where another one says less, the least. */
export type SaidToHold = { readonly most: bigint; readonly less: SaidByOne | null };
/**
 * What nodes show of what an account has signed with a nonce and somebody else has sent (EIP-7702): the transaction that carries it, with what the account
 * has sent in it, as two of them show it alike (the only one, where there is one), or null; whether as many say that it has used the nonce, or that it has
 * not; and what each says, one sentence each.
 */
export type AuthorizedByWord = {
  readonly carried: EndedTransaction | null;
  readonly isUsed: boolean;
  readonly isDenied: boolean;
  readonly said: readonly string[];
};
/** The most addresses whose ether a node is asked for at once: six calls. */
export const MOST_ADDRESSES = 4_200;
/** Amounts in wei, addresses 0x and 40 digits. */
export type EvmSending = Pick<PayingPort, 'send'> & {
  /** Of the newest block, and what is offered to its proposer, for each unit of gas. `cheapest`: whose word is the least, where nodes differ in that. */
  gasFees(): Promise<{ readonly base: bigint; readonly tip: bigint; readonly cheapest?: string }>;
  /** An account after a block: how many transactions it has sent, its ether, and its units of this port's currency. */
  account(address: string, height: number): Promise<{ readonly nonce: number; readonly ether: bigint; readonly units: bigint }>;
  /** How many transactions an account has sent by now, by the word of all nodes: a nonce above that is never mined, nor any after it. */
  sentBy(address: string): Promise<SentByWord>;
  /** The units that an account has after a block, by the word of all nodes that answer. */
  unitsOf(address: string, height: number): Promise<SaidToHold>;
  /** The same as the node says that says least; of several nodes two must answer. */
  leastUnits(address: string, height: number): Promise<bigint>;
  /** What an account holds of this port's currency after a block, by the word of all nodes. */
  heldBy(address: string, block: BlockRef): Promise<HeldByWord>;
  /** The ether that addresses (at most {@link MOST_ADDRESSES}) hold after a block, in their order; null where no node can say of so many at once. */
  etherOf(addresses: readonly string[], block: BlockRef): Promise<readonly SaidToHold[] | null>;
  /** Whether there is code at an address now: what it does with ether nobody knows before a block holds the transaction. */
  isContract(address: string): Promise<boolean>;
  /** What a call would use now, or why it would fail, also for want of gas where a most is given; `lacksFunds`: the sender has too little now. */
  gasOf(call: {
    readonly from: string;
    readonly to: string;
    readonly value: bigint;
    readonly input: string;
    readonly gas?: number;
    /** The most that any node says counts: with too little it would fail, and what it does not use costs nothing. */
    readonly asksAll?: boolean;
  }): Promise<{ readonly gas: number } | { readonly refused: string; readonly lacksFunds: boolean }>;
  /**
   * Why the token cannot be sent to an address now; null when nothing is known against it.
   * @param from our own address; null = it is not asked about
   */
  payeeProblem(from: string | null, to: string): Promise<{ readonly what: string; readonly isPayee: boolean } | null>;
  /**
   * Whether any of these transactions is in a block and succeeded in it, by the word of any node.
   * @param of.height a node that has not read so far says nothing
   * @param of.sender whose nonce they all have
   * @param of.rival the transaction that is said to have used their nonce in their place, which a node must show to deny; null: a block held one
   *   of them, and a node without its receipt does not know how it ended
   */
  succeeded(
    txids: readonly string[],
    of: { readonly height: number; readonly sender: Nonce; readonly rival: string | null },
  ): Promise<PaidByWord>;
  /** How a transaction ended, by the word of all nodes: a receipt is a node's word, as what a block pays is. */
  ended(txid: string): Promise<EndedByWord>;
  /** The transaction of a block that carries what an account has signed with a nonce (EIP-7702); null: none does. */
  carrierIn(blockHash: string, signer: Nonce): Promise<string | null>;
  /** Who has signed what a transaction carries so. */
  signersIn(txid: string): Promise<readonly Nonce[]>;
  /** Whether such a transaction has used the nonce of an account, by the word of all nodes. */
  authorized(txid: string, signer: Nonce): Promise<AuthorizedByWord>;
  /** Null when no block of the node's best chain holds it. */
  mined(txid: string): Promise<MinedTransaction | null>;
};
/** Ether or a token, in which payouts can be made. */
export type EvmPort = ChainPort & EvmSending & { readonly currency: EvmCode; finalized(): Promise<BlockRef | null> };
