// Payouts to the address of another merchant's transaction here: one database transaction takes the amount from its hold and makes it a payment
// of that transaction, which its judge then treats like any other. Nothing leaves, so no transaction is signed and no network fee is due; whether
// its API has asked for it is looked at here, since no signer does.
import type { AskTrust, IntentTrust } from '../../core/payouts/intent.ts';
import { completeEntries, signEntry } from '../../core/payouts/postings.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { tripBreaker } from '../../store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import {
  hasInternal,
  type InternalPayout,
  insertInternalPayment,
  lockInternal,
  readInternalFacts,
} from '../../store/payouts/internal-payouts.ts';
import { movePayout, paidFrom } from '../../store/payouts/payouts.ts';
import { readStops } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { isDerivedHere } from '../addresses/derived-here.ts';
import type { Context } from '../context.ts';
import { isAsSigned, readIntent, UNTRUSTED, whyUnheld } from './signed-payouts.ts';
import { holdForOperator } from './waiting-for-operator.ts';

export type InternalBooking = {
  /** Whose payouts count: asked when one waits. */
  readonly intents: AskTrust;
  readonly onTrouble: (what: string) => void;
};

/**
 * Books every one that may be booked now. One that no trusted API has signed waits for the operator, alone; one that was changed since, or has
 * no hold, waits and stops payouts: somebody has written into the database. One whose booking fails is named, and the others go on.
 * @returns whether one has failed and is tried again by the next call
 * @throws when the database does not answer
 */
export async function bookInternalPayouts(ctx: Context, { intents, onTrouble }: InternalBooking): Promise<boolean> {
  if (!(await hasInternal(ctx.db))) return false;
  const isIntended = await intents();
  if (isIntended === null) {
    onTrouble('payouts to transactions here wait: the signer does not say which APIs are trusted');
    return false;
  }
  const failed: string[] = [];
  for (;;) {
    const locked: { id: string | null } = { id: null };
    try {
      if (!(await bookNext(ctx, { isIntended, onTrouble, failed, locked }))) return failed.length > 0;
    } catch (error) {
      // what has failed before one was chosen is no matter of one payout
      if (locked.id === null) throw error;
      failed.push(locked.id);
      onTrouble(`payout ${locked.id} cannot be booked: ${(error as Error).message}`);
    }
  }
}

type Pass = Pick<InternalBooking, 'onTrouble'> & {
  readonly isIntended: IntentTrust;
  /** Those that this pass leaves alone. */
  readonly failed: readonly string[];
  /** Is told which one was chosen. */
  readonly locked: { id: string | null };
};

function bookNext(ctx: Context, { isIntended, onTrouble, failed, locked }: Pass): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    const row = await lockInternal(sql, failed);
    if (row === null) return false;
    locked.id = row.id;
    const against = await whyNotBooked(ctx, sql, isIntended, row.id);
    if (against === null) await book(ctx, sql, row);
    else {
      await holdForOperator(ctx, sql, { payoutId: row.id, why: against.why });
      const findings = [against.why];
      if (against.stops) await tripBreaker(sql, { name: 'payouts', by: ['INT-1'], findings, atMs: ctx.ports.clock.now() });
      onTrouble(against.why);
    }
    return true;
  });
}

type Against = { readonly why: string; readonly stops: boolean };

/** Why one must not be booked; null when nothing is against it. */
export async function whyNotBooked(ctx: Context, sql: Sql, isIntended: IntentTrust, id: string): Promise<Against | null> {
  const facts = await readInternalFacts(sql, id);
  if (!isAsSigned(ctx, facts)) return { why: `payout ${id} is not what its API has signed`, stops: true };
  const intent = readIntent(ctx, facts);
  if (intent === null || !isIntended(intent, facts.intentKey, facts.intent))
    return { why: `payout ${id} ${UNTRUSTED}`, stops: false };
  const isOurs = facts.address === null || (await isDerivedHere(ctx, sql, PAYOUT_UNITS.bitcoin.code, facts.address));
  const wrong = facts.paysAnother && isOurs ? whyUnheld(facts) : `payout ${id} pays no transaction of another merchant`;
  return wrong === null ? null : { why: wrong, stops: true };
}

/** Leaves it as it is where payouts were stopped, or its merchant has come to owe something, while his balance was waited for. */
async function book(ctx: Context, sql: Sql, row: InternalPayout): Promise<void> {
  const payout = await oneAsBooked(sql, row);
  const atMs = ctx.ports.clock.now();
  const currency = paidFrom(payout);
  const posted = { ...payout, currency };
  const [balances, { isStopped, owes }] = await Promise.all([
    lockBalances(sql, payout.merchantId, [currency]),
    readStops(sql, payout.merchantId),
  ]);
  if (isStopped || owes) return;
  const owed = balances.get(currency)?.receivable ?? 0n;
  const taken = signEntry(posted, 0, 0n, null);
  const entries = [...(taken === null ? [] : [taken]), ...completeEntries(posted, 0n, 0n, owed)];
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, payoutId: payout.id, atMs })),
  );
  await insertInternalPayment(sql, payout, { currency, height: 0, atMs });
  await movePayout(sql, payout, 'booked_here', { fee: 0n, completedAtMs: atMs, atMs });
}
