// The port to a Lightning node that receives: invoices by their payment hash, and what the node says of them. Every call may throw
// NodeTrouble (the node as a whole cannot be used), and none is made inside a database transaction.
import type { NodeTroubleState } from '../node-states.ts';

export type LightningCondition =
  | {
      readonly state: 'ready';
      /** Height of its chain. */
      readonly height: number;
      /** The node's public key: with another key it is another node, and nothing that was read from the old one holds. */
      readonly identity: string;
      readonly version: string;
    }
  | { readonly state: NodeTroubleState; readonly reason: string };

export type NewInvoice = {
  /** 32 bytes that nobody else knows; its SHA-256 is the payment hash. */
  readonly preimage: Uint8Array;
  readonly amountMsat: bigint;
  readonly expirySeconds: number;
  /** What the payer's wallet shows. */
  readonly description: string;
};

export type InvoiceState = 'open' | 'accepted' | 'settled' | 'cancelled';

/** What the node says of one invoice. */
export type InvoiceFacts = {
  /** 64 hex digits. */
  readonly paymentHash: string;
  readonly state: InvoiceState;
  /** What was paid, which may be more than was asked for; 0 until it is settled. */
  readonly paidMsat: bigint;
  /** When the node was told of it, and when it was paid (null until then): both by the node's clock, in whole seconds. */
  readonly addedAtMs: number;
  readonly settledAtMs: number | null;
  /** Its place among all settled invoices of the node, from 1; 0 until it is settled. */
  readonly settleIndex: bigint;
  /** Its place among all invoices of the node, from 1. */
  readonly addIndex: bigint;
  /** BOLT11. */
  readonly paymentRequest: string;
};

/** What a node has of its own. Satoshis. */
export type NodeHoldings = {
  /** In its open channels, rounded up in each of them and in each HTLC: it may be as many satoshis less as these are. */
  readonly inChannels: bigint;
  readonly roundedUp: number;
  /** In its wallet on the chain, in blocks. */
  readonly inWallet: bigint;
  /**
   * A payment of its own, a channel that it opens or that closes, or a transaction of its own is under way: what is between two places is in none of these.
   * What others send through it, and has neither arrived nor come back, changes nothing of that, however long somebody holds it.
   */
  readonly isMoving: boolean;
};

/** A payment of others that the node has passed on. */
export type Forwarded = { readonly atNs: bigint; readonly feeMsat: bigint };

/** A transaction of the node's wallet in a block; none that brings back what was in a channel. Satoshis. */
export type WalletTransaction = {
  readonly txid: string;
  /** The block that it is in. */
  readonly height: number;
  /** What the wallet has more after it; what it costs is in it. */
  readonly amount: bigint;
  /** What the chain takes for it, where the node knows. */
  readonly fee: bigint;
  /** What of it is ours in the channels that it opens. */
  readonly intoChannels: bigint;
};

export type NodeChainEvents = {
  readonly transactions: readonly WalletTransaction[];
  /** Channels whose money has all come back, or is lost; with the block that has closed each. */
  readonly closed: readonly { readonly channelPoint: string; readonly height: number }[];
};

export type SettlementEvents = {
  readonly onSettled: (invoice: InvoiceFacts) => void;
  /** The subscription has ended, whatever the reason: what is settled from now on is not announced. */
  readonly onEnd: (reason: string) => void;
};

/** Channels, each by the output that it spends. */
export type KnownChannels = { readonly had: readonly string[]; readonly closedBefore: readonly string[] };

/** `hasRunOn`: a node has neither been started nor put back with its memory within a time; `areMet`: a channel that it calls usable is so. */
export type RunWithin = { readonly hasRunOn: boolean; readonly areMet: boolean };

export type LightningPort = {
  condition(): Promise<LightningCondition>;
  /** What the node's usable channels can receive now, together. */
  receivableMsat(): Promise<bigint>;
  holdings(): Promise<NodeHoldings>;
  /** Whether a channel is being closed otherwise than by agreement, as far as is known: what was under way in it is decided on the chain. */
  isClosing(): Promise<boolean>;
  /** Whether a channel holds something of a payment of the node's own. */
  holds(paymentHash: string): Promise<boolean>;
  /**
   * Resolves once the node has had its turn to write, and changes nothing: what it had begun to write before is there for whoever reads from then on. One whose
   * disk or database stands still answers what it reads all the same, as it was.
   */
  writes(): Promise<void>;
  /**
   * Whether a channel shows that the node may have been put back to an older state within a time: the other side knows more of it, or it is being closed
   * by force, or was. A node that has forgotten a payment of which a channel held something shows that as soon as the other side has been met again:
   * `not_met` where it is not there, and the node has not run since well before that time.
   * @param known which channels it had open within that time, as far as is known, and which were closed before it and say nothing
   * @param run what is known of how long it has been running; nothing when it is left out
   */
  mayBeOlder(withinMs: number, known?: KnownChannels, run?: RunWithin): Promise<'no' | 'yes' | 'not_met'>;
  /** What it has forwarded after a time of its own clock, in nanoseconds, oldest first: the next of it, and none when there is no more. */
  forwarded(afterNs: bigint): Promise<readonly Forwarded[]>;
  /** When it has forwarded something last, by its own clock; null when it never has. */
  lastForwardedNs(): Promise<bigint | null>;
  /** What the blocks from one height to another have done to its wallet and its channels. */
  chainEvents(fromHeight: number, toHeight: number): Promise<NodeChainEvents>;
  /**
   * Makes an invoice; the same preimage again gives the same invoice.
   * @returns its BOLT11 text
   */
  addInvoice(invoice: NewInvoice): Promise<string>;
  /** What the node says of an invoice; null when it has none of this hash. */
  invoice(paymentHash: string): Promise<InvoiceFacts | null>;
  /** Cancels an invoice, which may have been done before. `settled`: it is paid, and cannot be cancelled. `unknown`: the node has none. */
  cancelInvoice(paymentHash: string): Promise<'cancelled' | 'settled' | 'unknown'>;
  /**
   * The invoices in the order in which they were made, a page at a time.
   * @param afterIndex the `addIndex` after which the page begins
   * @param options.openOnly only those that are neither settled nor cancelled
   */
  invoices(afterIndex: bigint, options: { readonly openOnly: boolean }): Promise<readonly InvoiceFacts[]>;
  /**
   * Announces settlements, first those after `afterIndex`, in their order. With 0 a node announces only new ones, so whoever begins looks the
   * open invoices up too. Nothing tells that it has begun.
   */
  subscribe(afterIndex: bigint, events: SettlementEvents): { close(): void };
  close(): void;
};
