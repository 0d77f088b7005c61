// A bank file that our folder or the bank has and the database does not: the database was put back to a time before the file was made. It is written back
// with its entries, so that its payouts are neither paid by another file nor cancelled; then the bank is asked whether it has it.
import { createHash } from 'node:crypto';
import type { BankFile } from '../../core/ach/bank-port.ts';
import { easternTime, returnsEndMs, settlementDate } from '../../core/ach/banking-days.ts';
import type { ReadFile } from '../../core/ach/nacha-reader.ts';
import { formatAmount, minus, sum } from '../../core/money.ts';
import { achHandOverEntry, bankOutflowEntry } from '../../core/payouts/ach-postings.ts';
import { Refusal } from '../../core/refusal.ts';
import { decidedAsPaid, payoutsByReference, readAchEntries, setAchLost } from '../../store/ach/entries.ts';
import { insertAchFile, lockAchFile, lockAchFiles, readAchHashes } from '../../store/ach/files.ts';
import { insertLostEntries } from '../../store/ach/lost-entries.ts';
import { raiseTraces } from '../../store/ach/traces.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { lockPayouts, movedPayout, movePayout, type PayoutRow } from '../../store/payouts/payouts.ts';
import { recordMovements, resolveMovement } from '../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { holdUnknown } from '../payouts/after-restore/unknown-movements.ts';
import { askAbout, bookAdopted, entriesOf, holdAlike, isFor, unknownOf } from './alike-payouts.ts';
import { paidBack } from './lost-returns.ts';

/** `contradicts`: it pays what this database does not know, or knows as ended; payouts are stopped. */
export type RestoredFile = 'restored' | 'known' | 'contradicts';

/**
 * Writes a file back with the entries of all payouts that are known and wait. What it pays besides is an open movement until an operator has
 * booked it. Where nothing can be written, its payouts wait for an operator; in every case its trace numbers are not used again.
 */
export function restoreAchFile(ctx: Context, { name, bytes }: Omit<BankFile, 'sha256'>): Promise<RestoredFile> {
  return ctx.db.transaction(async (sql) => {
    await lockAchFiles(sql);
    if (await isKnown(sql, name, bytes)) return 'known';
    const atMs = ctx.ports.clock.now();
    const entries = entriesOf(bytes);
    const found = entries === null ? null : await match(ctx, sql, entries);
    const isTaken = (await lockAchFile(sql, name)) !== null;
    if (entries !== null && found !== null) {
      await raiseTracesAbove(sql, entries);
      if (isTaken)
        await holdUnknown(
          sql,
          [...found.values()].map(({ id }) => id),
          atMs,
        );
      else await write(ctx, sql, { name, bytes, entries, found });
      if (!isTaken && found.size === entries.length) return 'restored';
      await holdAlike(
        ctx,
        sql,
        entries.filter(({ trace }) => !found.has(trace)),
      );
    }
    const finding = `bank file ${name} pays what this database does not know: ask the bank, and book it (bursar payout recover)`;
    await recordMovements(sql, [{ currency: 'USD', txid: name, blockHash: null, finding }], atMs);
    await tripBreaker(sql, { name: 'payouts', by: ['INV-20'], findings: [finding], atMs });
    return 'contradicts';
  });
}

async function isKnown(sql: Sql, name: string, bytes: Uint8Array): Promise<boolean> {
  return (await readAchHashes(sql)).get(name) === createHash('sha256').update(bytes).digest('hex');
}

export type RecoveredFile = {
  readonly payoutIds: readonly string[];
  /** In cents. */
  readonly lost: bigint;
  /** Those that wait, as unknown_outcome, because what was lost went to the same account. */
  readonly alike: readonly string[];
};

/**
 * Books a file of which this database does not know every payout: those that it knows are paid by it, the others become a loss.
 * @throws Refusal not_resolvable
 */
export function recoverAchFile(
  ctx: Context,
  { name, bytes, by, acceptsLoss }: Omit<BankFile, 'sha256'> & { readonly by: string; readonly acceptsLoss: boolean },
): Promise<RecoveredFile> {
  return ctx.db.transaction(async (sql) => {
    const refused = (what: string) => new Refusal('not_resolvable', { message: `Bank file ${name} ${what}.` });
    await lockAchFiles(sql);
    const state = await lockAchFile(sql, name);
    const isHere = await isKnown(sql, name, bytes);
    if (state !== null && !isHere) throw refused('has the name of another file here: only the bank can say what it paid');
    const entries = entriesOf(bytes);
    if (entries === null) throw refused('cannot be read');
    if (!isHere) await write(ctx, sql, { name, bytes, entries, found: await match(ctx, sql, entries) });
    const known = await readAchEntries(sql, name);
    const others = unknownOf(entries, known);
    const adopted = await foundPaid(ctx, sql, others);
    if (state === 'refused' && !(await giveBackRefused(ctx, sql, adopted)))
      throw refused('was refused, and what it was found to have paid waits for a rate at which to give it back');
    const unknown = sum(others.map(({ cents }) => cents));
    const lost = minus(unknown, sum([...adopted.values()].map(({ amount }) => amount)));
    if (lost > 0n && state !== 'refused' && !acceptsLoss)
      throw refused(
        `pays ${formatAmount(lost, 'USD')} USD to nobody that this database knows (--accept-loss books that as lost)`,
      );
    const atMs = ctx.ports.clock.now();
    // of a refused file nothing has left
    const booked = state === 'refused' ? 0n : lost;
    await setAchLost(sql, name, unknown);
    const paid = new Map([...adopted].map(([trace, { id }]) => [trace, id]));
    const lostEntries = others.map(({ trace, id, cents }) => ({ trace, reference: id, cents }));
    await insertLostEntries(sql, name, lostEntries, paid);
    if (unknown > 0n && state !== 'refused')
      await postEntries(sql, [{ entry: bankOutflowEntry(name, unknown), transactionId: null, atMs }]);
    for (const payout of adopted.values()) await bookAdopted(ctx, sql, payout, payout.amount);
    const text = `booked: ${known.length + adopted.size} payouts, ${formatAmount(booked, 'USD')} USD lost`;
    if (!(await resolveMovement(sql, { currency: 'USD', txid: name }, { by, text, atMs })))
      throw refused('was not found missing (bursar audit, OUT-3)');
    const unpaid = others.filter(({ trace }) => !adopted.has(trace));
    const alike = booked > 0n ? await holdAlike(ctx, sql, unpaid) : [];
    await askAbout(ctx, sql, alike);
    const payoutIds = [...known.map(({ payoutId }) => payoutId), ...paid.values()];
    return { payoutIds, lost: booked, alike: alike.map(({ id }) => id) };
  });
}

/** The payouts of these entries that an operator has found paid before the file was known, by trace number. */
async function foundPaid(ctx: Context, sql: Sql, entries: ReadFile['entries']): Promise<Map<string, PayoutRow>> {
  const found = await match(ctx, sql, entries, ['ended']);
  const decided = await decidedAsPaid(
    sql,
    [...found.values()].map(({ id }) => id),
  );
  return new Map([...found].filter(([, { id }]) => decided.has(id)));
}

/** The bank has executed nothing of a file: what an operator has found paid by it is not. No longer among `payouts` then; false without a rate. */
async function giveBackRefused(ctx: Context, sql: Sql, payouts: Map<string, PayoutRow>): Promise<boolean> {
  for (const [trace, { id }] of payouts) {
    if ((await paidBack(ctx, sql, id, { code: 'refused', error: 'the bank refused the file' })) === null) return false;
    payouts.delete(trace);
  }
  return true;
}

async function raiseTracesAbove(sql: Sql, entries: ReadFile['entries']): Promise<void> {
  const used = entries.map(({ trace }) => Number(trace.slice(-7)));
  if (used.length > 0) await raiseTraces(sql, Math.max(...used));
}

/** The payout of each entry by its trace number, locked; without those that are missing, are others, or are not at these steps. */
async function match(
  ctx: Context,
  sql: Sql,
  entries: ReadFile['entries'],
  steps: readonly string[] = ['held', 'queued'],
): Promise<ReadonlyMap<string, PayoutRow>> {
  const byReference = await payoutsByReference(
    sql,
    entries.map(({ id }) => id),
  );
  const payouts = await lockPayouts(sql, [...byReference.values()].sort());
  const byId = new Map(payouts.map((payout) => [payout.id, payout]));
  const found = new Map<string, PayoutRow>();
  for (const entry of entries) {
    const payout = byId.get(byReference.get(entry.id) ?? '');
    if (payout === undefined || !isFor(ctx, payout, entry) || !steps.includes(payout.step)) continue;
    found.set(entry.trace, payout);
  }
  return found;
}

type Writing = {
  readonly name: string;
  readonly bytes: Uint8Array;
  readonly entries: ReadFile['entries'];
  readonly found: ReadonlyMap<string, PayoutRow>;
};

async function write(ctx: Context, sql: Sql, { name, bytes, entries, found }: Writing): Promise<void> {
  const atMs = ctx.ports.clock.now();
  const settlesOn = settlementDate(easternTime(atMs).date);
  await insertAchFile(sql, {
    name,
    day: name.slice(0, 10),
    modifier: name.slice(-1),
    bytes: ctx.ports.sealing.seal(bytes, name),
    sha256: createHash('sha256').update(bytes).digest(),
    credits: sum(entries.map(({ cents }) => cents)),
    state: 'unknown',
    settlesOn,
    returnsEndMs: returnsEndMs(settlesOn),
    atMs,
    entries: entries.flatMap(({ trace, cents }) => {
      const payout = found.get(trace);
      return payout === undefined ? [] : [{ trace, cents, payoutId: payout.id }];
    }),
  });
  await raiseTracesAbove(sql, entries);
  for (const payout of found.values()) {
    if (payout.source === null) throw new Error(`${payout.id} by ach has no source`);
    await postEntries(sql, [
      { entry: achHandOverEntry({ ...payout, source: payout.source }), transactionId: null, payoutId: payout.id, atMs },
    ]);
    // what this copy still holds back was let go when the file was made
    const queued = payout.step === 'held' ? await movedPayout(sql, payout, 'hold_ended', { atMs }) : payout;
    await movePayout(sql, queued, 'filed', { atMs });
  }
}
