// What drives the payouts of a currency, what it needs for that, and the steps at which a test can stop it.
import type { SignedTransaction, TransactionToSign } from '../../core/signer-wire.ts';

/** Asks the signer; throws with a `fault`: `refused` (nothing was signed, by a rule), anything else is unknown. */
export type Signing = {
  sign(request: TransactionToSign): Promise<SignedTransaction>;
  /** What was signed after a number of the signer's, or for a batch, oldest first; `more` when there is more. */
  signed(asked: {
    readonly after: number;
    readonly batchId?: string;
  }): Promise<{ readonly transactions: readonly SignedTransaction[]; readonly more: boolean }>;
};

export type PayoutDriver = {
  /** Asks the node now and then what a transaction costs. */
  askFee(): Promise<void>;
  /** One pass over everything that is due. */
  pass(may: Pass): Promise<void>;
  /** Whether payments may be moved to the address that payouts leave from; absent where they are spent where they are. */
  wantsToMove?(): Promise<boolean>;
};
export type Pass = {
  /** Payouts wait for a batch. */
  readonly isQueued: boolean;
  /** Payments may be moved. */
  readonly moves?: boolean;
  /** Everything that has left is known: a batch may get its first signature. */
  readonly signsNew: boolean;
  /** Asked before each batch: false ends the pass, because the database was replaced, or the signer put back, meanwhile. Absent: it goes on. */
  readonly goesOn?: () => boolean;
};

/** What has just become so when a process dies there: in the order of a payout's way. */
export const DRIVER_STEPS = ['queued', 'reserved', 'signed', 'stored', 'sent', 'marked', 'seen', 'completed', 'final'] as const;
/** The same steps of what moves between our own addresses have a name of their own. */
export type PayoutDriverStep = (typeof DRIVER_STEPS)[number] | `sweep-${(typeof DRIVER_STEPS)[number]}`;

/** Where a job tells what an operator should know. */
export type Telling = {
  /** What holds payouts up. */
  readonly onTrouble: (what: string) => void;
  /** What failed by a fault of ours, or of the database: whatever else there is to do goes on. */
  readonly onFault: (what: string, error: unknown) => void;
};

export type DriverOptions = Telling & {
  readonly signing: Signing;
  /** Names this worker in leases. */
  readonly owner: string;
  /** Called with each step that was reached, before the next: tests stop a process there (main/sandbox/failpoints). */
  readonly reached?: (step: PayoutDriverStep) => Promise<void>;
};
