// There is no signer between the worker and the bank: before an entry may reach the bank, the worker compares it itself with what its API has
// signed, with the ledger's hold, and with our copies of all files. What is stored about files is believed in nothing.
import { createHash } from 'node:crypto';
import { readBankAccount } from '../../core/ach/bank-account.ts';
import { lastCutOff } from '../../core/ach/banking-days.ts';
import type { AchOrigin, NachaEntry } from '../../core/ach/nacha-file.ts';
import { achReference, readOwnFile } from '../../core/ach/own-file.ts';
import type { IntentTrust } from '../../core/payouts/intent.ts';
import { type AchFacts, readAchFacts } from '../../store/ach/facts.ts';
import type { AchFile } from '../../store/ach/files.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { plainDestination, readIntent, whyUnheld } from '../payouts/signed-payouts.ts';

export type AchChecks = {
  readonly origin: AchOrigin;
  readonly isIntended: IntentTrust;
  /** The files of which our folder has copies, by the reference of each payout that they name. */
  readonly keptFiles: ReadonlyMap<string, readonly string[]>;
};

/** Whether a payout is what an API that is trusted has signed. */
export function isIntended(ctx: Context, checks: AchChecks, payout: AchFacts): boolean {
  const intent = readIntent(ctx, payout);
  return intent !== null && checks.isIntended(intent, payout.intentKey, payout.intent);
}

/** What makes it wrong to put a payout that waits into a file; null when nothing does. */
export function whyNotFiled(checks: AchChecks, payout: AchFacts): string | null {
  const { id } = payout;
  const [kept] = checks.keptFiles.get(achReference(id)) ?? [];
  if (kept !== undefined) return `payout ${id} waits, and is paid by our copy of bank file ${kept}`;
  if (payout.isHandedOver || payout.trace !== null) return `payout ${id} waits, and was handed over before`;
  return whyUnheld(payout);
}

/** Stops payouts: what is stored contradicts itself, or what was signed. */
export function stopByInv20(ctx: Context, sql: Sql, findings: readonly string[]): Promise<void> {
  return tripBreaker(sql, { name: 'payouts', by: ['INV-20'], findings, atMs: ctx.ports.clock.now() });
}

/**
 * What is in the way of a file's hand-over; null when nothing is. Bytes that are not exactly what its payouts say stop payouts. It waits while
 * a payout of it has no trusted signature, and to the end of the next business day while a merchant of it owes something: it cannot be taken
 * apart, for an earlier hand-over of it may still arrive, and the others in it do not wait for one merchant's debts for longer.
 */
export async function whyNotHandedOver(ctx: Context, checks: AchChecks, file: AchFile): Promise<string | null> {
  const payouts = await readAchFacts(ctx.db, { file: file.name });
  const wrong = whyWrong(ctx, checks, file, payouts);
  if (wrong !== null) {
    await stopByInv20(ctx, ctx.db, [`bank file ${file.name} is not handed over: ${wrong}`]);
    return wrong;
  }
  const unsigned = payouts.find((payout) => !isIntended(ctx, checks, payout));
  if (unsigned !== undefined) return `it waits: payout ${unsigned.id} is not what an API that is trusted has signed`;
  const isLate = lastCutOff(ctx.ports.clock.now()) > file.createdAtMs;
  const owing = isLate ? undefined : payouts.find(({ owes }) => owes);
  return owing === undefined ? null : `it waits: the merchant of payout ${owing.id} owes something`;
}

function whyWrong(
  ctx: Context,
  checks: AchChecks,
  { name, bytes, sha256 }: AchFile,
  payouts: readonly AchFacts[],
): string | null {
  const own = readOwnFile(bytes, checks.origin);
  if (own === null || own.name !== name) return 'its bytes are not as this server writes them';
  if (!createHash('sha256').update(bytes).digest().equals(sha256)) return 'its bytes have another hash';
  const byTrace = new Map(payouts.map((payout) => [payout.trace, payout]));
  for (const entry of own.entries) {
    const payout = byTrace.get(entry.trace);
    if (payout === undefined || !pays(ctx, entry, payout)) return `trace number ${entry.trace} pays no payout of it`;
    const why = whyNotBatched(checks, name, payout);
    if (why !== null) return why;
  }
  return own.entries.length === payouts.length ? null : `it has ${payouts.length} payouts and pays ${own.entries.length}`;
}

function pays(ctx: Context, entry: NachaEntry, payout: AchFacts): boolean {
  const account = readBankAccount(plainDestination(ctx, payout) ?? '');
  return (
    !('problem' in account) &&
    account.routing === entry.routing &&
    account.account === entry.account &&
    (account.kind === 'savings') === (entry.transactionCode === 32) &&
    payout.method === 'ach' &&
    payout.amount === entry.cents &&
    payout.cents === entry.cents &&
    achReference(payout.id) === entry.id
  );
}

function whyNotBatched(checks: AchChecks, file: string, payout: AchFacts): string | null {
  const { id, status, step, isHandedOver } = payout;
  if (status !== 'processing' || step !== 'batched' || !isHandedOver) return `payout ${id} is ${status}, ${step}`;
  const other = checks.keptFiles.get(achReference(id))?.find((name) => name !== file);
  return other === undefined ? whyUnheld(payout) : `payout ${id} is paid by our copy of bank file ${other} too`;
}
