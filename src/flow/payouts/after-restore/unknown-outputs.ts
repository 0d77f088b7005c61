// A forgotten transaction that spends outputs of which this database knows nothing: payments to transactions, or change, that it has forgotten too.
// What they paid for is booked; that they were ours is booked with it, since nothing here ever said so.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { Entry } from '../../../core/judge/case.ts';
import { negated, sum } from '../../../core/money.ts';
import { adoptedEntry, unknownInflowEntry, unknownOutflowEntry } from '../../../core/payouts/postings.ts';
import type { Outpoint } from '../../../core/ports.ts';
import { postEntries } from '../../../store/ledger/ledger.ts';
import { insertOwnAddress } from '../../../store/payouts/own-outputs.ts';
import { lockPayouts, type PayoutRow } from '../../../store/payouts/payouts.ts';
import { type DecidedPayout, openMovements, unbookedOutput } from '../../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../../store/postgres/connect.ts';
import type { Context } from '../../context.ts';
import { resolveLocked } from '../resolve.ts';
import { holdUnknown } from './unknown-movements.ts';

type Spending = {
  readonly currency: CurrencyCode;
  readonly txid: string;
  /** Whether a person accepts that nobody knows what the outputs held. */
  readonly acceptsLoss: boolean;
};

/** What must happen before a transaction that spends such outputs can be booked; null = it can. */
export async function whyNotUnknown(
  sql: Sql,
  { currency, acceptsLoss }: Spending,
  outputs: readonly Outpoint[],
): Promise<string | null> {
  const [output] = outputs;
  if (output === undefined) return null;
  const open = (await openMovements(sql)).filter((one) => one.currency === currency);
  const first = outputs.find(({ txid }) => open.some((one) => one.txid === txid));
  if (first !== undefined) return `spends an output of ${first.txid}: recover that one first`;
  const unbooked = await unbookedOutput(sql, currency, outputs);
  if (unbooked !== null)
    return `spends ${unbooked.txid}:${unbooked.vout}, a payment that is not booked yet: wait for its confirmations`;
  if (acceptsLoss) return null;
  return `spends ${output.txid}:${output.vout}, which this database does not know (--accept-loss books what it paid for as it is on the chain)`;
}

/** Books what a transaction took from our outputs besides its payouts; less than zero where other outputs of ours paid for some of these. */
export function differenceEntry({ currency, txid }: Spending, lost: bigint): Entry {
  return lost > 0n ? unknownOutflowEntry(txid, currency, lost) : unknownInflowEntry(txid, currency, negated(lost));
}

/** What was booked for them by hand stands; the loss that their outputs are part of does not. */
export async function adopt(ctx: Context, sql: Sql, currency: CurrencyCode, adopted: readonly DecidedPayout[]): Promise<void> {
  const atMs = ctx.ports.clock.now();
  const entries = adopted.map(({ id, booked, byOthers }) => {
    const against = byOthers ? `equity:operator:${currency}` : `asset:chain:${currency}`;
    return { entry: adoptedEntry(id, { currency, amount: booked, against }), transactionId: null, atMs };
  });
  if (entries.length > 0) await postEntries(sql, entries);
}

type WithoutOutputs = Spending & {
  readonly accountId: bigint;
  readonly payouts: readonly PayoutRow[];
  readonly change: { readonly index: number; readonly script: string } | null;
};

/** None of its outputs is known: its payouts are paid, and what came back to us is capital once it is final. */
export async function bookWithoutOutputs(ctx: Context, sql: Sql, of: WithoutOutputs): Promise<void> {
  const { currency, txid, accountId, change } = of;
  const atMs = ctx.ports.clock.now();
  const ids = of.payouts.map(({ id }) => id);
  await holdUnknown(sql, ids, atMs);
  const paid = sum(of.payouts.map(({ amount }) => amount));
  if (paid > 0n) await postEntries(sql, [{ entry: unknownInflowEntry(txid, currency, paid), transactionId: null, atMs }]);
  for (const payout of await lockPayouts(sql, ids))
    await resolveLocked(ctx, sql, payout, { outcome: 'paid', evidence: `transaction ${txid}` });
  if (change === null) return;
  await insertOwnAddress(sql, accountId, currency, { index: change.index, script: Buffer.from(change.script, 'hex') });
}
