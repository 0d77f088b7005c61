// What the controls of the sandbox need of the service, types only: main hands these functions over, so that the sandbox itself knows
// nothing of databases or transactions. Called by the controls; fulfilled in src/main.
import type { CurrencyCode, UtxoCode } from '../core/currency.ts';

/** What a transaction of the service asks for, as far as someone who wants to pay it must know. */
export type PayableTransaction = {
  readonly currency: CurrencyCode;
  /** The output script of its address, hex. */
  readonly script: string;
  readonly address: string;
  readonly amountDue: bigint;
  readonly receivedMinor: bigint;
};

export type SandboxService = {
  /** The transaction with this public id (`txn_…`), any merchant's; null when there is none. */
  findTransaction(transactionId: string): Promise<PayableTransaction | null>;
  /** Adds a merchant with one user that may do everything; null when the name is taken. Throws a Refusal for a field that does not fit. */
  addMerchant(merchant: {
    readonly username: string;
    readonly password: string;
    readonly email: string | null;
    readonly businessName: string | null;
  }): Promise<{ readonly affiliate_id: string } | null>;
  /** Adds a user to a merchant; the answer goes out as it is, null when the name is taken. Throws a Refusal as {@link addMerchant} does. */
  addUser(user: {
    readonly affiliateId: string;
    readonly username: string;
    readonly password: string;
    readonly scopes: readonly string[];
  }): Promise<Readonly<Record<string, unknown>> | null>;
  /**
   * Waits until the service has read these chains after now, and what came of it was judged, at most so long; whether it has.
   * A chain that it cannot read counts as read.
   */
  untilRead(currencies: readonly UtxoCode[], timeoutMs: number): Promise<boolean>;
  /** Waits until everything that is due on the current clock has been done once, at most so long; whether it was. */
  settle(timeoutMs: number): Promise<boolean>;
  /** Asks all rate sources now, so that the next quote uses what they say. */
  refreshRates(): Promise<void>;
};

export type SandboxOptions = {
  /** Where chains, clock, rates and the endpoint are kept: BURSAR_DATA_DIR/sandbox. Made when missing. */
  readonly folder: string;
  /** Seconds between blocks that come by themselves; 0 = only by control. */
  readonly blockSeconds: number;
  readonly service: SandboxService;
  /** The service's clock, which all its processes share. Moving it forward is durable before it returns. */
  readonly clock: { now(): number; advance(forwardMs: number): void };
  /** Told of what the operator should know (a line of text). */
  readonly log?: (line: string) => void;
  /**
   * Called once when this sandbox can no longer keep what it answers for (the disk refused a write): the process has to end.
   */
  readonly onEnd: (reason: string) => void;
};

export type Sandbox = {
  /** `http://127.0.0.1:PORT`: the nodes below /node/<coin>, the price sources below /rates/<source>, the controls below /control/<name>. */
  readonly url: string;
  /** The password of the nodes (user `bursar`). */
  readonly secret: string;
  /** Stops the blocks, closes the server and the files. */
  close(): Promise<void>;
};
