// Payouts to where a forgotten transaction has paid nobody whom this database knows: what was forgotten may be requested again, and for another
// amount. Only a person can tell, so what waits when it is booked waits for him, and what comes until it was as much. The caller has locked the outputs of
// the currency. What has gone back of a payment may be asked for again to any address, and in parts, so of reimbursements he is
// asked wherever they go.
import type { CurrencyCode } from '../../../core/currency.ts';
import { isOfSender } from '../../../core/evm/outcome.ts';
import { lostQuestions } from '../../../core/payouts/lost-questions.ts';
import { pairUp } from '../../../core/payouts/pair-up.ts';
import type { TransactionFacts } from '../../../core/ports.ts';
import {
  insertLostOutputs,
  type LostOutput,
  lostOutputsInPlaceOf,
  lostOutputsTo,
} from '../../../store/payouts/after-restore/lost-outputs.ts';
import { alreadyAsked, dropQuestions, insertQuestion } from '../../../store/payouts/after-restore/lost-questions.ts';
import { knownOwnScripts } from '../../../store/payouts/own-outputs.ts';
import { lockPayouts } from '../../../store/payouts/payouts.ts';
import { unsignedPayouts } from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { holdUnknown } from './unknown-movements.ts';

/** `script` in hex. */
type Waiting = { readonly id: string; readonly merchantId: bigint; readonly script: string; readonly amount: bigint };
type Stored = Omit<Waiting, 'script'> & { readonly script: Uint8Array | null };
const waitingFrom = ({ id, merchantId, script, amount }: Stored): Waiting => ({
  id,
  merchantId,
  script: Buffer.from(script ?? []).toString('hex'),
  amount,
});

/**
 * Notes what a transaction that was booked has paid to nobody known, and has the payouts wait that ask for the same.
 * @param payoutIds those that it has paid
 * @returns all that wait because of it, also those that waited before
 */
export async function noteLost(
  ctx: Context,
  sql: Sql,
  currency: CurrencyCode,
  { facts, payoutIds }: { readonly facts: Pick<TransactionFacts, 'txid' | 'outputs'>; readonly payoutIds: readonly string[] },
): Promise<readonly string[]> {
  // what was lost before is not what these ask for
  await dropQuestions(sql, payoutIds);
  // what a contract has sent on was not ours
  const sent = facts.outputs.filter(isOfSender);
  const outputs = sent.map(({ vout, script, amountMinor }) => ({ txid: facts.txid, vout, script, amount: amountMinor }));
  const scripts = outputs.map(({ script }) => script);
  const own = await knownOwnScripts(sql, currency, scripts);
  const paid = (await lockPayouts(sql, payoutIds)).map(waitingFrom);
  const paying = pairUp(outputs, paid, [(one, of) => isTo(one, of) && one.amount === of.amount, isTo]).map(([of]) => of);
  const lost = outputs.filter((output) => output.amount > 0n && !own.has(output.script) && !paying.includes(output));
  if (lost.length === 0) return [];
  await insertLostOutputs(sql, currency, lost);
  const unsigned = await unsignedPayouts(sql, currency);
  const alike = unsigned.filter((one) => lost.some((of) => isTo(one, of)));
  await holdUnknown(sql, alike.map(({ id }) => id).sort(), ctx.ports.clock.now());
  const waiting = (
    await lockPayouts(
      sql,
      alike.map(({ id }) => id),
    )
  ).filter(({ heldReason }) => heldReason === 'unknown_outcome');
  await ask(sql, currency, waiting.map(waitingFrom));
  const others = await lockPayouts(
    sql,
    unsigned.filter(({ id, reimburses }) => reimburses !== null && !alike.some((one) => one.id === id)).map(({ id }) => id),
  );
  // what is in a batch, or waits for its payments to be final, is asked about when it is about to leave
  const back = others.filter(({ step, heldReason }) => step === 'queued' || (step === 'held' && heldReason !== 'not_final'));
  return [...waiting.map(({ id }) => id), ...(await holdAlike(ctx, sql, currency, back))];
}

/** What an operator is told of a payout that waits for him because of it. */
export const whereLost = (payoutId: string): string =>
  `payout ${payoutId} goes where a forgotten transaction has paid, or sends back what that may have sent back: was it this one? (bursar payout resolve)`;

/**
 * Of payouts that are about to be paid, those wait for a person that go to the script of a lost output because of which he was not asked yet about as
 * much as it has, and reimbursements in whose place it may have gone.
 * @returns those
 */
export async function holdAlike(
  ctx: Context,
  sql: Sql,
  currency: CurrencyCode,
  queued: readonly Stored[],
): Promise<readonly string[]> {
  const asked = await ask(sql, currency, queued.map(waitingFrom));
  await holdUnknown(sql, [...asked].sort(), ctx.ports.clock.now());
  return asked;
}

/**
 * Whether one of these, which are in a batch without a signature, is one that {@link holdAlike} would have wait: something was booked as lost to where
 * it goes since the batch was formed.
 */
export async function isToBeAsked(sql: Sql, currency: CurrencyCode, payouts: readonly Stored[]): Promise<boolean> {
  return (await unasked(sql, currency, payouts.map(waitingFrom))).length > 0;
}

/** Payouts are taken note of until it is about as much as each lost output to their script has. */
async function ask(sql: Sql, currency: CurrencyCode, payouts: readonly Waiting[]): Promise<readonly string[]> {
  const pairs = await unasked(sql, currency, payouts);
  for (const [{ txid, vout }, { id }] of pairs) await insertQuestion(sql, id, { currency, txid, place: String(vout) });
  return pairs.map(([, { id }]) => id);
}

async function unasked(
  sql: Sql,
  currency: CurrencyCode,
  payouts: readonly Waiting[],
): Promise<readonly (readonly [LostOutput, Waiting])[]> {
  const lost = await lostOutputsTo(sql, currency, [...new Set(payouts.map(({ script }) => script))]);
  const ids = payouts.map(({ id }) => id);
  const inPlaceOf = await lostOutputsInPlaceOf(sql, currency, ids);
  if (lost.length === 0 && inPlaceOf.length === 0) return [];
  const before = await alreadyAsked(sql, ids);
  const waiting = payouts.filter(({ id }) => !before.has(id)).map((one) => ({ ...one, place: one.script }));
  const pairs = lostQuestions(
    lost.map((output) => ({ ...output, place: output.script })),
    waiting,
  );
  const asked = new Set(pairs.map(([, { id }]) => id));
  const back = waiting.flatMap((one): [LostOutput, Waiting][] => {
    const of = asked.has(one.id) ? undefined : inPlaceOf.find(({ payoutId }) => payoutId === one.id);
    return of === undefined ? [] : [[of, one]];
  });
  return [...pairs, ...back];
}

const isTo = (one: { readonly script: string }, of: { readonly script: string }): boolean => one.script === of.script;
