// What the node lists and this database does not know, when it was made while the two were not compared: after a database was put back from a copy
// that is of a transaction which nobody remembers, and its customer may have paid. Others use the node too, and what they do meanwhile is told as well.
import type { InvoiceFacts, LightningPort } from '../../core/lightning/port.ts';
import type { Context } from '../../flow/context.ts';
import { forgetUnknown, type LastComparison, openUnknown, recordUnknown } from '../../store/lightning/unknown-invoices.ts';
import { withoutOpen } from './open-invoices.ts';

/** Comparisons follow each other within a minute while the service runs. */
const GAP_MS = 180_000;
/** How far the node's clock may differ from ours. */
const CLOCKS_DIFFER_MS = 60_000;

export type Gap = { readonly fromMs: number; readonly toMs: number };

/** How many that have ended are asked about in one look; the others have their turn in the next. */
const ENDED_AT_ONCE = 200;

/** When nothing was compared with what this database has; where nothing ever was, nothing can be forgotten. */
export function gapSince({ atMs: comparedAtMs, wasWithAnother }: LastComparison, nowMs: number): Gap | null {
  if (comparedAtMs === null || (nowMs - comparedAtMs < GAP_MS && !wasWithAnother)) return null;
  return { fromMs: comparedAtMs - CLOCKS_DIFFER_MS, toMs: nowMs + CLOCKS_DIFFER_MS };
}

/** Keeps those of a page that nobody here has asked for and that were made in the gap. */
export async function keepUnknown(
  ctx: Context,
  identity: string,
  gap: Gap | null,
  unknown: readonly InvoiceFacts[],
): Promise<void> {
  if (gap === null) return;
  const made = unknown.filter(
    ({ state, addedAtMs }) => state !== 'cancelled' && addedAtMs >= gap.fromMs && addedAtMs <= gap.toMs,
  );
  if (made.length > 0) await recordUnknown(ctx.db, identity, made);
}

/** Asks what has become of those that may still be paid. */
export async function lookAtUnknown(ctx: Context, port: LightningPort, identity: string): Promise<void> {
  // others' may stay open for a year: only what is not listed as open is asked about one by one, and is not asked about again
  const noLongerOpen = await withoutOpen(port, await openUnknown(ctx.db, identity));
  const ended: string[] = [];
  const paid: InvoiceFacts[] = [];
  for (const hash of [...noLongerOpen].slice(0, ENDED_AT_ONCE)) {
    const facts = await port.invoice(hash);
    if (facts?.state === 'settled') paid.push(facts);
    else if (facts === null || facts.state === 'cancelled') ended.push(hash);
  }
  if (paid.length > 0) await recordUnknown(ctx.db, identity, paid);
  if (ended.length > 0) await forgetUnknown(ctx.db, ended);
}
