// Payments over Lightning that were authorized and failed: they no longer count for the limits, else a merchant whose payments all fail would
// use up what may leave, and stop everybody's payouts. The proof has two parts: the ledger shows that the hold has ended, after which this process never
// asks the node to pay it (ledger entries are never changed), and the node calls it failed.

import { type LightningPayer, mayStillArrive } from '../../core/lightning/payer.ts';
import { LEASE_MS } from '../../core/payouts/states.ts';
import type { AuthorizedPayment } from '../../core/signer-wire.ts';
import { readPayerFacts } from '../../store/lightning/payer-facts.ts';
import type { Database } from '../../store/postgres/connect.ts';
import { DAY_MS } from '../limits.ts';
import type { PaymentJournal } from './payment-journal.ts';

export type FailedPayments = {
  /** The node is asked to pay it, and takes the request up to this time by its clock; the function returned says that it has answered. */
  asking(payoutId: string, notAfterMs: number): () => void;
  /** Whether it failed for good, and no request for it can still arrive: then none must be made any more. Throws where the node cannot be asked. */
  hasFailed(node: LightningPayer, payment: AuthorizedPayment): Promise<boolean>;
  /** Whether this process has said so of a payment. */
  isGone(payoutId: string): boolean;
  /** Looks for what failed; whether there was any. What cannot be asked counts as before. */
  giveBack(node: LightningPayer, journal: PaymentJournal): Promise<boolean>;
};

/** How long after a start a request of the process before may still arrive. */
const LEASED_BEFORE_MS = 3 * LEASE_MS;

/**
 * Notes requests to the node that may still arrive, so that no payment counts as failed before they cannot.
 * @param db under the role bursar_signer
 */
export function createFailedPayments({ db, now }: { readonly db: Database; readonly now: () => number }): FailedPayments {
  const startedMs = now();
  /** Requests that were not answered, and up to when they may still arrive. */
  const unanswered = new Map<string, Set<{ readonly untilMs: number }>>();
  /** How often the node was to be asked, by this process. */
  const asked = new Map<string, number>();
  const paid = new Set<string>();
  const gone = new Set<string>();

  function mayArrive(payoutId: string, authorizedAtMs: number, saidAtMs?: number): boolean {
    // requests of the process before this one are not known
    const times = [...(unanswered.get(payoutId) ?? [])].map(({ untilMs }) => untilMs);
    if (authorizedAtMs <= startedMs) times.push(startedMs + LEASED_BEFORE_MS);
    return times.some((unansweredUntilMs) => mayStillArrive({ unansweredUntilMs }, now(), saidAtMs));
  }

  async function hasEnded(payoutId: string): Promise<boolean> {
    return (await readPayerFacts(db, payoutId))?.isHoldEnded === true;
  }

  async function isFailed(node: LightningPayer, { payoutId, paymentHash, authorizedAtMs }: AuthorizedPayment): Promise<boolean> {
    const { payment, isPending, saidAtMs } = await node.track(paymentHash);
    if (payment?.status === 'succeeded') paid.add(payoutId);
    return payment?.status === 'failed' && !payment.isPartOpen && !isPending && !mayArrive(payoutId, authorizedAtMs, saidAtMs);
  }

  async function hasFailed(node: LightningPayer, payment: AuthorizedPayment): Promise<boolean> {
    const { payoutId, authorizedAtMs } = payment;
    // in this order: a request that begins after the first look finds that the hold has ended
    if (paid.has(payoutId) || !(await hasEnded(payoutId)) || mayArrive(payoutId, authorizedAtMs)) return false;
    const before = asked.get(payoutId);
    if (!(await isFailed(node, payment)) || asked.get(payoutId) !== before) return false;
    gone.add(payoutId);
    return true;
  }

  return {
    hasFailed,
    isGone: (payoutId) => gone.has(payoutId),
    asking(payoutId, notAfterMs) {
      const open = unanswered.get(payoutId) ?? new Set();
      const request = { untilMs: notAfterMs };
      unanswered.set(payoutId, open.add(request));
      asked.set(payoutId, (asked.get(payoutId) ?? 0) + 1);
      return () => {
        open.delete(request);
        if (open.size === 0) unanswered.delete(payoutId);
      };
    },
    async giveBack(node, journal) {
      let has = false;
      try {
        for (const payment of journal.counted(now() - DAY_MS)) {
          if (!(await hasFailed(node, payment))) continue;
          journal.giveBack(payment.payoutId);
          has = true;
        }
      } catch (error) {
        if ((error as Error).name !== 'NodeTrouble') throw error;
      }
      return has;
    },
  };
}
