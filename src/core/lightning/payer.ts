// The port to a Lightning node that pays: only the signer's process has it, and the worker asks the signer. A payment is known by its payment
// hash; the node pays each hash at most once at a time, and again only after it has failed. Amounts are whole numbers as text, so that they
// cross the signer's socket as they are.

/** BOLT11 as it was decoded. */
export type Invoice = {
  /** 64 hex digits. */
  readonly paymentHash: string;
  /** Null: the payer chooses. */
  readonly amountMsat: bigint | null;
  readonly expiresAtMs: number;
  /** The public key of the node that is paid. */
  readonly payee: string;
  /** SHA-256 of what is paid for, where the invoice commits to it. */
  readonly descriptionHash: string | null;
};

/** What the node says of a payment. */
export type PaymentFacts = {
  readonly paymentHash: string;
  readonly status: 'in_flight' | 'succeeded' | 'failed';
  /** msat. */
  readonly amountMsat: string;
  readonly feeMsat: string;
  /** Hex; null until a part of it has been taken, and where it has failed. */
  readonly preimage: string | null;
  /** What its parts that were taken have brought, msat; left out where the node does not list them. One that has succeeded may have brought less than its amount. */
  readonly takenMsat?: string;
  /** Why it failed, in the node's words. */
  readonly failure: string | null;
  /** Its place among all payments of the node, from 1. */
  readonly paymentIndex: string;
  /** One of its parts has neither arrived nor come back. */
  readonly isPartOpen: boolean;
};

export type PaymentOrder = {
  readonly paymentRequest: string;
  /** Satoshis; only for an invoice without an amount. */
  readonly amount: bigint | null;
  /** Satoshis. */
  readonly feeLimit: bigint;
  /** From then on the node refuses this request. */
  readonly notAfterMs: number;
};

/**
 * `taken`: the node has answered with the payment. `known`: it had it before. `refused`: it did not take this request, which proves nothing
 * about an earlier one. `never`: it did not, and never takes one for this invoice. `unanswered`: the request may still arrive, until its `notAfterMs`.
 */
export type SendAnswer =
  | { readonly state: 'taken'; readonly payment: PaymentFacts }
  | { readonly state: 'known' }
  | { readonly state: 'refused' | 'never' | 'unanswered'; readonly reason: string };

/** How far the node's clock may be behind ours where it does not tell it, and what it has begun may take. */
export const CLOCKS_DIFFER_MS = 60_000;
/** By its own clock: what the node took at the end of a request may take this long until it says that it has it. */
const BEGUN_MS = 10_000;

/**
 * Whether a request to pay that was not answered may still arrive at the node.
 * @param of.unansweredUntilMs up to when the node takes it, by its clock; null = each was answered
 * @param saidAtMs the node's clock when it said last what it has; absent: it was not asked, or does not tell
 */
export const mayStillArrive = (
  { unansweredUntilMs }: { readonly unansweredUntilMs: number | null },
  nowMs: number,
  saidAtMs = Number.POSITIVE_INFINITY,
): boolean =>
  unansweredUntilMs !== null && (nowMs <= unansweredUntilMs + CLOCKS_DIFFER_MS || saidAtMs <= unansweredUntilMs + BEGUN_MS);

/** Why a request may still arrive though our clock says that it cannot. */
export const clockBehind = (nowMs: number, saidAtMs: number): string =>
  `the Lightning node's clock is ${Math.round((nowMs - saidAtMs) / 1_000)} seconds behind this server's: by it, a request that was not answered may still arrive`;

export type PayingNode = {
  /** Its public key. */
  readonly identity: string;
  /** The highest place that it has given to a payment; 0 = none yet. */
  readonly paymentIndex: string;
  /** What it has on its side of its usable channels, in satoshis. */
  readonly spendable: string;
  /** How many HTLCs more its usable channels can have on their way out. */
  readonly freeSlots: number;
  /** Its open channels, each by the output that it spends; also those that cannot be used now. With for how many milliseconds it has counted each, from its own start or from when it was opened. */
  readonly channels: readonly { readonly point: string; readonly countedMs: number }[];
};

/**
 * What the node says of one payment: null = it was never asked for it; `isPending`: a channel holds an HTLC of this hash, or one has left whose other side has
 * not said that it has it, and may arrive up to the block `arrivesUntil`; `saidAtMs`: its own clock when it said so, absent where it does not tell.
 */
export type TrackedPayment = {
  readonly payment: PaymentFacts | null;
  readonly isPending: boolean;
  readonly arrivesUntil?: number;
  readonly saidAtMs?: number;
};

/** Every call may throw NodeTrouble: the node as a whole cannot be used, and has said nothing. */
export type LightningPayer = {
  node(): Promise<PayingNode>;
  /** Its public key alone, as it said it within the last second. */
  identity(): Promise<string>;
  /** An invoice as the node itself reads it, or why it cannot. */
  decode(paymentRequest: string): Promise<Pick<Invoice, 'paymentHash' | 'amountMsat'> | { readonly refused: string }>;
  /** Asks the node to pay; answers with its first words, and does not wait until the payment has ended. */
  send(order: PaymentOrder): Promise<SendAnswer>;
  track(paymentHash: string): Promise<TrackedPayment>;
  /** Payments in the order in which they were asked for, a page at a time. */
  payments(afterIndex: bigint): Promise<readonly PaymentFacts[]>;
  close(): void;
};
