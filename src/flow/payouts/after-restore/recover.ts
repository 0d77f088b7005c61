// What booking a forgotten transaction shares on every chain: what an operator names, what is refused before anything is booked, and the words of a
// loss. Each is one database transaction.
import type { CurrencyCode, LedgerCurrency } from '../../../core/currency.ts';
import { formatAmount } from '../../../core/money.ts';
import type { TransactionFacts } from '../../../core/ports.ts';
import { Refusal } from '../../../core/refusal.ts';
import { isStored } from '../../../store/payouts/attempts.ts';
import { lockOutputs } from '../../../store/payouts/batches.ts';
import { lockPayouts, type PayoutRow } from '../../../store/payouts/payouts.ts';
import { unsignedPayouts } from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { noteLost } from './lost-outputs.ts';

export type RecoveryOf<Currency extends CurrencyCode> = {
  readonly currency: Currency;
  readonly block: { readonly height: number; readonly hash: string };
  /** All its inputs and outputs, on Ethereum's chain with how it ended. */
  readonly facts: TransactionFacts;
  readonly by: string;
  /** Whether what it pays to others than payouts of this database may be booked as lost. */
  readonly acceptsLoss: boolean;
};

export type Recovered = {
  readonly payoutIds: readonly string[];
  /** Minor units that went to others. */
  readonly lost: bigint;
  readonly fee: bigint;
  /** What went to others of the chain's other currencies. */
  readonly besides?: readonly { readonly currency: CurrencyCode; readonly lost: bigint }[];
  /** Payouts that wait, as unknown_outcome, because something that is no payout's went where they are to go. */
  readonly alike?: readonly string[];
};

/** The refusal of the transaction that is named, with what is wrong with it. */
export type Refused = (what: string) => Refusal;

/** Has a transaction booked that was not signed here; the outputs of its currency are locked. @throws Refusal not_resolvable */
export function recovering(
  ctx: Context,
  { currency, facts }: Pick<RecoveryOf<CurrencyCode>, 'currency' | 'facts'>,
  book: (sql: Sql, refused: Refused) => Promise<Recovered>,
): Promise<Recovered> {
  const refused: Refused = (what) => new Refusal('not_resolvable', { message: `Transaction ${facts.txid} ${what}.` });
  return ctx.db.transaction(async (sql) => {
    // another operator may book it now
    await lockOutputs(sql, currency);
    if (await isStored(sql, currency, facts.txid)) throw refused('is known: it was signed here');
    const done = await book(sql, refused);
    return { ...done, alike: await noteLost(ctx, sql, currency, { facts, payoutIds: done.payoutIds }) };
  });
}

/** Locks payouts that nothing was signed for. @throws Refusal where an operator has decided one, or a worker stored a signature for it, before that */
export async function lockUnsigned(
  sql: Sql,
  currency: CurrencyCode,
  ids: readonly string[],
  refused: Refused,
): Promise<readonly PayoutRow[]> {
  const locked = await lockPayouts(sql, ids);
  const open = new Set((await unsignedPayouts(sql, currency)).map(({ id }) => id));
  if (!ids.every((id) => open.has(id)))
    throw refused('pays a payout that was decided, or signed for, at this moment: name it again');
  return locked;
}

/** What a merchant is left owing, as text for the record: `; its merchant owes 0.5 BTC`, or nothing. */
export function stillOwed(owes: bigint, currency: LedgerCurrency): string {
  return owes > 0n ? `; its merchant owes ${formatAmount(owes, currency)} ${currency}` : '';
}

/** What is lost, as text for the record: `, 0.5 BTC lost`, or nothing. @throws Refusal where the operator does not accept it */
export function acceptedLoss(
  lost: bigint,
  { currency, acceptsLoss }: Pick<RecoveryOf<CurrencyCode>, 'currency' | 'acceptsLoss'>,
  refused: Refused,
): string {
  if (lost <= 0n) return '';
  const foreign = `${formatAmount(lost, currency)} ${currency}`;
  if (!acceptsLoss) throw refused(`pays ${foreign} to nobody that this database knows (--accept-loss books that as lost)`);
  return `, ${foreign} lost`;
}
