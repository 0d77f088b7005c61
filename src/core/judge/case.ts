// What the judge knows of one transaction: its payments, the chains' clocks, rates and balances. The store loads a Case under the row lock,
// the judge's rules change it, and the store writes the difference.
import type { CurrencyCode, PaymentMethod } from '../currency.ts';
import type { Rate } from '../rate.ts';
import type { Announcement, TransactionStatus } from '../transaction-states.ts';

export type PaymentState = 'mempool' | 'mined' | 'gone' | 'conflicted';

/** One payment: first what the watcher observed, then what the judge derived from it. Amounts in minor units of `currency`. */
export type Payment = {
  readonly id: bigint;
  readonly currency: PaymentMethod;
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly coinbase: boolean;
  readonly lock: 'instantsend' | 'chainlock' | null;
  readonly state: PaymentState;
  readonly height: number | null;
  readonly blockHash: string | null;
  readonly blockTimeMs: number | null;
  readonly seenAtMs: number;
  /** How far the watcher had read the chain when it saw this payment. */
  readonly caughtUpAtMs: number;
  readonly foundMined: boolean;
  readonly goneSinceMs: number | null;
  readonly lastHeight: number | null;
  /** The other transaction that spends the same outpoint, when this payment is conflicted. */
  readonly conflictTxid: string | null;
  /** The outpoints that its transaction spends; known only for a payment that another payment of the same transaction has replaced. */
  readonly spends: readonly string[];
  /** The rate of its currency when it arrived, once that is known. */
  readonly arrivalRate: Rate | null;
  /** It was classified as on time or late; this stays when the payment goes and comes back. */
  classified: boolean;
  /** The rules have already taken note that it is there. */
  present: boolean;
  onTimeMinor: bigint;
  /** The rate at which it is valued: that of its arrival, or by rule 24 that of its block's date. Null = not known yet. */
  valueRate: Rate | null;
  /** The block in which the judge last saw it while booked. */
  judgedBlockHash: string | null;
  generation: number;
  credited: bigint;
  suspended: bigint;
  fee: bigint;
  inAvailable: bigint;
  inSuspense: bigint;
  inRefund: bigint;
  sentBack: bigint;
  owed: bigint;
  owedFee: bigint;
  wasLost: boolean;
  /** Part of what pays the price, as decided so far; shown as `counted`. */
  counted: boolean;
  partKey: string | null;
  /** The next height of its chain, and the next time of its chain's clock, at which something can change for it. */
  dueHeight: number | null;
  dueAtMs: number | null;
};

export type MerchantDecision = 'none' | 'cancelled' | 'refused' | 'accepted';
export type ReviewCause = 'late' | 'loss' | 'other';

export type CaseTransaction = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly currency: PaymentMethod;
  readonly usdMinor: bigint;
  readonly amountDue: bigint;
  readonly rate: Rate;
  readonly toleranceBps: number;
  readonly latePolicy: 'accept' | 'review';
  readonly createdAtMs: number;
  readonly windowEndsAtMs: number;
  status: TransactionStatus;
  merchantDecision: MerchantDecision;
  reviewCause: ReviewCause | null;
  acceptedOnlyByHand: boolean;
  confirmedAtMs: number | null;
  succeededAtMs: number | null;
  readonly lookedUpAtMs: number | null;
  lookupWanted: boolean;
  sequence: number;
};

/** One chain as far as it was read. `timeMs` is the chain's own clock: it stands still while the watcher is behind or the node is down. */
export type ChainView = {
  readonly tipHeight: number;
  readonly timeMs: number;
  /**
   * Where several nodes are configured: what is worth more than `limitMinor` (cents) is booked only at its required depth at or below
   * `height`, the highest block of what we read that two of them hold; −1 while they contradict each other, or when there is none.
   */
  readonly agreed?: {
    readonly height: number;
    readonly limitMinor: bigint;
    /** Heights of blocks of which no second node could say what they pay: what they hold is not agreed (Ethereum). */
    readonly unconfirmed?: ReadonlySet<number>;
  };
};

/** + debit, − credit. */
export type Posting = { readonly account: string; readonly amount: bigint };
/** What one payment adds to an entry (+) or takes out of it (−), in its currency, under a key that only this payment can have. */
export type Part = {
  readonly key: string;
  readonly amount: bigint;
  /** Key of the part that this one reverses. */
  readonly reversesKey: string | null;
};
export type Entry = {
  readonly key: string;
  readonly kind: string;
  readonly postings: readonly Posting[];
  /** Empty when no units come or go. */
  readonly parts: readonly Part[];
  /** The reimbursement that it belongs to. */
  readonly refundId?: string;
};

export type Step =
  | {
      readonly kind: 'status';
      readonly from: TransactionStatus;
      readonly to: TransactionStatus;
      readonly rule: number;
      readonly reason: string;
    }
  | { readonly kind: 'announce'; readonly type: Announcement; readonly data: Record<string, string> }
  | { readonly kind: 'post'; readonly entry: Entry }
  /** `ready`: it may leave; `lost`: it ended with its payments; `noted`: its end is known here. */
  | { readonly kind: 'refund'; readonly id: string; readonly change: 'taken' | 'ready' | 'lost' | 'noted' };

/** What a reimbursement took of one payment, and from where. Minor units. */
export type RefundShare = { readonly available: bigint; readonly suspense: bigint };
/** A reimbursement that has not ended, or of whose end nothing was noted here yet. */
export type Refund = {
  readonly id: string;
  /** Of its payments. */
  readonly currency: PaymentMethod;
  readonly part: 'whole' | 'excess';
  /** Minor units: what its payments are together. */
  readonly total: bigint;
  /** `waiting`: for the final depth; `ready`: for a batch; `committed`: only the chain ends it. */
  state: 'waiting' | 'ready' | 'committed' | 'completed' | 'failed';
  /** Its payments were booked when it was taken, or have been since: they lie in `refund_payable`. */
  isHeld: boolean;
  /** By the payment's id. */
  readonly shares: ReadonlyMap<bigint, RefundShare>;
};

/** Locked balances of the merchant, by currency: available, and the receivable, which is repaid first. */
export type Balances = Map<CurrencyCode, { available: bigint; receivable: bigint }>;

/**
 * A block's date and, where that is more than 24 h after the window, the rate of the transaction's currency at that time (null = not known
 * yet).
 */
export type DatedBlock = { readonly timeMs: number; readonly rate: Rate | null };

export type Case = {
  readonly transaction: CaseTransaction;
  /** In the order in which they were seen. */
  readonly payments: readonly Payment[];
  readonly nowMs: number;
  readonly chains: ReadonlyMap<PaymentMethod, ChainView>;
  /** Blocks of the transaction's chain at which its payments may reach their required depth, by height. */
  readonly blocks: ReadonlyMap<number, DatedBlock>;
  readonly feeBps: number;
  readonly settlementMs: number;
  /** Null until they are locked: a verdict that needs them throws {@link BalancesNeeded}, and the judge runs again with them. */
  readonly balances: Balances | null;
  /** Reimbursements under way, and those that have just ended: nobody decides until all have ended. */
  readonly refunds: Refund[];
  readonly steps: Step[];
  /**
   * How many payments this verdict may still take note of, book or reverse (portion.ts); absent = no limit. The others are left for the
   * next verdict.
   */
  portionLeft?: number;
  /** Payments were left for the next verdict. */
  more?: boolean;
};

/** Thrown when a posting touches the merchant's available balance before its rows are locked. */
export class BalancesNeeded extends Error {}
