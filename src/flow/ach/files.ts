// Makes bank files: the payouts that wait, their entries with trace numbers, the bytes. All of it is committed before the bank gets anything.
import { createHash } from 'node:crypto';
import { type BankAccount, readBankAccount } from '../../core/ach/bank-account.ts';
import { easternTime, returnsEndMs, settlementDate } from '../../core/ach/banking-days.ts';
import { type AchOrigin, MOST_CENTS_TOGETHER, type NachaEntry, writeNachaFile } from '../../core/ach/nacha-file.ts';
import { achReference } from '../../core/ach/own-file.ts';
import { plus, sum } from '../../core/money.ts';
import { achHandOverEntry } from '../../core/payouts/ach-postings.ts';
import { openText } from '../../core/sealed-text.ts';
import { readAchFacts } from '../../store/ach/facts.ts';
import { insertAchFile, lockAchFiles, lockQueuedAch, type QueuedAchPayout, readAchNames } from '../../store/ach/files.ts';
import { nextTraces } from '../../store/ach/traces.ts';
import { openBreakers } from '../../store/ledger/breakers.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { writePayoutChanges } from '../../store/payouts/status-changes.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { holdForOperator } from '../payouts/waiting-for-operator.ts';
import { holdUnasked } from './alike-payouts.ts';
import { type AchChecks, isIntended, stopByInv20, whyNotFiled } from './checks.ts';

const MOST_ENTRIES = 1_000;
const MODIFIERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789';
const DESCRIPTION = 'PAYOUT';

export type MakingFile = AchChecks & {
  /** Payouts that were requested until then. */
  readonly cutOffMs: number;
  /** The names of the files of which our folder has a copy. */
  readonly kept: readonly string[];
  readonly onTrouble: (what: string) => void;
};
export type MadeFile = 'made' | 'nothing' | 'stopped' | 'too_many_files' | 'no_traces';

/**
 * Puts payouts that wait into a file; from here on only what the bank says ends them. Nothing is made while our folder has a copy that this
 * database does not know. One that no trusted API has signed waits for the operator, alone; one whose hold is not there, or that a file has paid
 * before, stops payouts.
 */
export async function makeAchFile(ctx: Context, making: MakingFile): Promise<MadeFile> {
  return ctx.db.transaction(async (sql) => {
    if ((await openBreakers(sql)).length > 0) return 'stopped';
    await lockAchFiles(sql);
    const names = await readAchNames(sql);
    // the next look writes it back
    if (making.kept.some((name) => !names.has(name))) return 'stopped';
    const stored = await lockQueuedAch(sql, { untilMs: making.cutOffMs, nowMs: ctx.ports.clock.now(), limit: MOST_ENTRIES });
    const facts = await readAchFacts(sql, { payoutIds: stored.map(({ id }) => id) });
    const wrong = facts.map((payout) => whyNotFiled(making, payout)).filter((why) => why !== null);
    if (wrong.length > 0) {
      await stopByInv20(ctx, sql, wrong);
      return 'stopped';
    }
    const foreign = new Set(facts.filter((payout) => !isIntended(ctx, making, payout)).map(({ id }) => id));
    await holdForeign(ctx, sql, making, foreign);
    const { sealing } = ctx.ports;
    const intended = stored
      .filter(({ id }) => !foreign.has(id))
      .map((one) => ({ ...one, destination: openText(sealing, one.destination, one.id) }));
    const alike = await holdUnasked(ctx, sql, intended);
    for (const id of alike)
      making.onTrouble(
        `payout ${id} goes to an account that a forgotten bank file has paid: was it this one? (bursar payout resolve)`,
      );
    const payouts = asManyAsFit(intended.filter(({ id }) => !alike.has(id)));
    // what was held made room for others
    if (payouts.length === 0) return foreign.size + alike.size > 0 ? 'made' : 'nothing';
    const { date } = easternTime(ctx.ports.clock.now());
    const modifier = [...MODIFIERS].find((one) => !names.has(`${date}-${one}`));
    if (modifier === undefined) return 'too_many_files';
    return (await writeFile(ctx, sql, { payouts, modifier, origin: making.origin })) ? 'made' : 'no_traces';
  });
}

/** They are tried again by themselves, more and more rarely. */
async function holdForeign(ctx: Context, sql: Sql, { onTrouble }: MakingFile, ids: ReadonlySet<string>): Promise<void> {
  for (const payoutId of ids) {
    const why = `payout ${payoutId} is not what an API that is trusted has signed (bursar keys trust-intent)`;
    await holdForOperator(ctx, sql, { payoutId, why });
    onTrouble(why);
  }
}

/** The control record has twelve digits for all of them. */
function asManyAsFit(queued: readonly QueuedAchPayout[]): readonly QueuedAchPayout[] {
  let total = 0n;
  return queued.filter(({ amount }) => {
    total = plus(total, amount);
    return total <= MOST_CENTS_TOGETHER;
  });
}

type Writing = { readonly payouts: readonly QueuedAchPayout[]; readonly modifier: string; readonly origin: AchOrigin };

/** False where our bank has no trace numbers left. */
async function writeFile(ctx: Context, sql: Sql, { payouts, modifier, origin }: Writing): Promise<boolean> {
  const atMs = ctx.ports.clock.now();
  const bank = origin.bankRouting.slice(0, 8);
  const numbers = await nextTraces(sql, { bank, count: payouts.length, nowMs: atMs });
  if (numbers === null) return false;
  const { date, time } = easternTime(atMs);
  const settlesOn = settlementDate(date);
  const entries = payouts.map((payout, at) => entryOf(payout, `${bank}${String(numbers[at]).padStart(7, '0')}`));
  const text = writeNachaFile({
    origin,
    date,
    time,
    modifier,
    entryClass: 'CCD',
    description: DESCRIPTION,
    effective: settlesOn,
    entries,
  });
  const bytes = new TextEncoder().encode(text);
  await insertAchFile(sql, {
    name: `${date}-${modifier}`,
    day: date,
    modifier,
    bytes: ctx.ports.sealing.seal(bytes, `${date}-${modifier}`),
    sha256: createHash('sha256').update(bytes).digest(),
    credits: sum(entries.map(({ cents }) => cents)),
    state: 'built',
    settlesOn,
    returnsEndMs: returnsEndMs(settlesOn),
    atMs,
    entries: payouts.map(({ id, amount }, at) => ({ trace: (entries[at] as NachaEntry).trace, payoutId: id, cents: amount })),
  });
  const posted = payouts.map((payout) => ({
    ...payout,
    source: { currency: payout.sourceCurrency, amount: payout.sourceAmount },
  }));
  await postEntries(
    sql,
    posted.map((payout) => ({ entry: achHandOverEntry(payout), transactionId: null, payoutId: payout.id, atMs })),
  );
  await writePayoutChanges(
    sql,
    payouts.map((payout) => ({ payout, from: ['processing', 'queued'] as const, event: 'filed' as const })),
    atMs,
  );
  return true;
}

function entryOf(payout: QueuedAchPayout, trace: string): NachaEntry {
  const account = readBankAccount(payout.destination) as BankAccount;
  return {
    transactionCode: account.kind === 'savings' ? 32 : 22,
    routing: account.routing,
    account: account.account,
    cents: payout.amount,
    id: achReference(payout.id),
    name: /[!-~]/.test(payout.businessName) ? payout.businessName : 'MERCHANT',
    trace,
  };
}
