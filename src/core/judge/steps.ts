// The two results of a verdict besides a posting: an event was applied (the table gives the new status), or something is announced.
import { type Announcement, type TransactionEvent, transition, UNCONFIRMED } from '../transaction-states.ts';
import type { Case } from './case.ts';

/** Applies an event. False when the table has no row for it in this status; a row that leads back to the same status is no step. */
export function applyEvent(it: Case, event: TransactionEvent, reason?: string): boolean {
  const { transaction } = it;
  const row = transition(transaction.status, event);
  if (row === null) return false;
  const from = transaction.status;
  if (row.to !== from) {
    transaction.status = row.to;
    transaction.sequence += 1;
    it.steps.push({ kind: 'status', from, to: row.to, rule: row.rule, reason: reason ?? row.reason });
  }
  if (row.to === 'confirmed') transaction.confirmedAtMs = it.nowMs;
  if (UNCONFIRMED.has(row.to) || event === 'reorged_below' || event === 'booked_payment_lost') transaction.confirmedAtMs = null;
  if (row.to === 'succeeded') transaction.succeededAtMs = it.nowMs;
  if (row.to !== 'review') transaction.reviewCause = null;
  if (row.to === 'cancelled' || row.to === 'declined' || event === 'confirmed_too_late') transaction.acceptedOnlyByHand = true;
  return true;
}

/**
 * Adds an event that changes no status; it takes a number of the transaction's sequence as a change does.
 * @param data what the event tells besides the transaction; strings only, as they are stored
 */
export function announce(it: Case, type: Announcement, data: Record<string, string>): void {
  it.transaction.sequence += 1;
  it.steps.push({ kind: 'announce', type, data });
}
