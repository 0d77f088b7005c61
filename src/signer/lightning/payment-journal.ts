// Every payment over Lightning that this signer ever let its node make, in a chained file of its own folder: a line is on disk before the node is
// asked. A payout has one payment hash for ever.
import { join } from 'node:path';
import { type Network, payoutCurrency } from '../../core/currency.ts';
import type { AuthorizedPayment } from '../../core/signer-wire.ts';
import { KEEP_AND_ASK, openChainedFile } from '../chained-file.ts';
import { noteAges, type SetAndSteady } from '../limits.ts';
import type { Leaving } from '../signature-index.ts';

export type PaymentJournal = {
  /** What was authorized for a payout; null when nothing was. */
  ofPayout(payoutId: string): AuthorizedPayment | null;
  /**
   * What was authorized to go back of a transaction.
   * @param others payouts that are said to be of it too: what was written before transactions were kept shows none
   */
  reimbursementsOf(transactionId: string, others: readonly string[]): readonly AuthorizedPayment[];
  /** Resolves when it is on disk. */
  append(payment: Omit<AuthorizedPayment, 'sequence'>): Promise<AuthorizedPayment>;
  /** Those after a sequence number, oldest first. */
  after(sequence: number, limit: number): readonly AuthorizedPayment[];
  /** What counts for the limits. */
  leaving(): readonly Leaving[];
  /** Those that count and were authorized after a time, oldest first. */
  counted(sinceMs: number): readonly AuthorizedPayment[];
  /** It failed for good: it counts no more, until this file is opened again. */
  giveBack(payoutId: string): void;
  close(): Promise<void>;
};

const PAYMENTS = 'lightning-payments.jsonl';
const WHAT =
  'every Lightning payment that a Bursar signer let its node make; never edit it, never put an older copy of this file back';

/** @param folder the signer's own. Throws DamagedFile when a line in it was changed, or when it belongs to another network */
export async function openPaymentJournal(folder: string, network: Network, clocks: SetAndSteady): Promise<PaymentJournal> {
  const all: AuthorizedPayment[] = [];
  const byPayout = new Map<string, AuthorizedPayment>();
  const ofTransactions = new Map<string, string[]>();
  const leaving = new Map<string, Leaving>();
  const currency = payoutCurrency('lightning').code;
  function add(payment: AuthorizedPayment): void {
    all.push(payment);
    byPayout.set(payment.payoutId, payment);
    const { payoutId, reimburses } = payment;
    if (reimburses !== undefined) ofTransactions.set(reimburses, [...(ofTransactions.get(reimburses) ?? []), payoutId]);
    leaving.set(payment.payoutId, { currency, atMs: payment.authorizedAtMs, amount: BigInt(payment.takes) });
  }
  const file = await openChainedFile(join(folder, PAYMENTS), {
    network,
    what: WHAT,
    way: KEEP_AND_ASK,
    take(text, number) {
      const payment = JSON.parse(text) as AuthorizedPayment;
      if (payment.sequence !== number) return false;
      add(payment);
      return true;
    },
  });
  noteAges(clocks, [...leaving.values()]);
  return {
    ofPayout: (payoutId) => byPayout.get(payoutId) ?? null,
    reimbursementsOf(transactionId, others) {
      const ids = new Set([...(ofTransactions.get(transactionId) ?? []), ...others]);
      return [...ids].flatMap((id) => byPayout.get(id) ?? []);
    },
    async append(content) {
      const payment: AuthorizedPayment = { sequence: file.count() + 1, ...content };
      await file.append(JSON.stringify(payment));
      add(payment);
      return payment;
    },
    after: (sequence, limit) => all.slice(Math.max(0, sequence), Math.max(0, sequence) + limit),
    leaving: () => [...leaving.values()],
    counted: (sinceMs) => all.filter((one) => one.authorizedAtMs > sinceMs && leaving.has(one.payoutId)),
    giveBack: (payoutId) => void leaving.delete(payoutId),
    close: file.close,
  };
}
