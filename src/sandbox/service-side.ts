// What the controls of the sandbox need of the service, types only: main provides these functions, so that the sandbox itself knows nothing
// of databases or transactions.
import type { PaymentMethod, UtxoCode } from '../core/currency.ts';
import type { Bank } from './bank/bank.ts';
import type { Nodes } from './control-fields.ts';
import type { LightningNode } from './lightning/node.ts';
import type { Exchanges } from './rates.ts';

/** The part of a transaction of the service that a payer must know. */
export type PayableTransaction = {
  readonly currency: PaymentMethod;
  /** The output script of its address, hex; of one over Lightning the payment hash of its invoice. */
  readonly script: string;
  readonly address: string;
  readonly amountDue: bigint;
  readonly receivedMinor: bigint;
};

export type SandboxService = {
  /** The transaction with this public id (`txn_…`), any merchant's; null when there is none. */
  findTransaction(transactionId: string): Promise<PayableTransaction | null>;
  /** Adds a merchant with one user that has all scopes; null when the name is taken. Throws a Refusal for a wrong field. */
  addMerchant(merchant: {
    readonly username: string;
    readonly password: string;
    readonly email: string | null;
    readonly businessName: string | null;
  }): Promise<{ readonly affiliate_id: string } | null>;
  /** Adds a user to a merchant; the result is the answer, null when the name is taken. Throws a Refusal as {@link addMerchant} does. */
  addUser(user: {
    readonly affiliateId: string;
    readonly username: string;
    readonly password: string;
    readonly scopes: readonly string[];
  }): Promise<Readonly<Record<string, unknown>> | null>;
  /**
   * Waits until the service has read these chains after now and judged the results, at most this long; returns whether it has. A chain that
   * it cannot read counts as read.
   * @param since.sinceMs instead of after now, after this time of the clock
   * @param since.isAnnounced the nodes have announced what is to be read: the service is hurried only when that was not enough
   * @param since.invoices payment hashes of invoices: it is enough that they are recorded as paid
   */
  untilRead(
    currencies: readonly PaymentMethod[],
    timeoutMs: number,
    since?: { readonly sinceMs: number; readonly isAnnounced: boolean; readonly invoices?: readonly string[] },
  ): Promise<boolean>;
  /** Waits until everything that is due on the current clock has been done once, at most this long; returns whether it was. */
  settle(timeoutMs: number): Promise<boolean>;
  /** The trace number of a payout's entry in a bank file, null while it has none; null for an unknown payout. */
  findBankEntry(payoutId: string): Promise<{ readonly trace: string | null } | null>;
  /** Waits until the service has read what the bank says, and handed over what waits, once after now; returns whether it has. */
  untilBankRead(timeoutMs: number): Promise<boolean>;
  /** Waits until nothing that may be paid to bank accounts now waits to be handed over, at most this long. */
  untilHandedOver(timeoutMs: number): Promise<void>;
  /** Asks all rate sources now, so that the next quote uses their answers. */
  refreshRates(): Promise<void>;
};

/** Receives what the operator should know: a line of text, and the error that it is about. */
export type SandboxLog = (line: string, error: Error) => void;

export type SandboxOptions = {
  /** Where chains, clock, rates and the endpoint are kept: BURSAR_DATA_DIR/sandbox. Created when missing. */
  readonly folder: string;
  /** Seconds between blocks that come by themselves; 0 = only by control. */
  readonly blockSeconds: number;
  readonly service: SandboxService;
  /** The service's clock, which all its processes share. Moving it forward is durable before it returns. */
  readonly clock: { now(): number; advance(forwardMs: number): void };
  readonly log?: SandboxLog;
  /** Called once when this sandbox can no longer store what it answers for (the disk refused a write): the process must end. */
  readonly onEnd: (reason: string) => void;
};

export type Sandbox = {
  /** `http://127.0.0.1:PORT`: the nodes below /node/<currency>, the price sources below /rates/<source>, the controls below /control/<name>. */
  readonly url: string;
  /** The password of the nodes (user `bursar`). */
  readonly secret: string;
  /** Pays these outputs from the faucet and mines this many blocks; does nothing when one of their scripts was paid before. */
  giveCapital(currency: UtxoCode, outputs: readonly { readonly script: Buffer; readonly minor: bigint }[], blocks: number): void;
  /** The same on Ethereum's chain; addresses that were paid before get nothing. */
  giveEvmCapital(
    outputs: readonly { readonly currency: 'ETH' | 'USDT'; readonly address: string; readonly minor: bigint }[],
    blocks: number,
  ): void;
  /** Stops the blocks, closes the server and the files. */
  close(): Promise<void>;
};

/** What the controls can use. */
export type ControlContext = {
  readonly nodes: Nodes;
  readonly lightning: LightningNode;
  /** Of this sandbox's server. */
  readonly url: string;
  readonly exchanges: Exchanges;
  readonly bank: Bank;
  readonly service: SandboxService;
  readonly clock: SandboxOptions['clock'];
  /**
   * Makes the service look at a chain now, and waits until it has; not for ever.
   * @param paid the payment hash of an invoice that was just paid: it is enough that this one is recorded
   */
  readonly nudge: (currency: PaymentMethod, isAnnounced?: boolean, paid?: string) => Promise<void>;
};
