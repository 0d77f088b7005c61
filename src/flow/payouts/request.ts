// What the requests of all methods share: payouts are written with their signed intents and their holds, in one database transaction; and the
// refusals of destinations. Nothing outside is called while it is open.
import type { Entry } from '../../core/judge/case.ts';
import { intentBytes } from '../../core/payouts/intent.ts';
import type { HeldReason } from '../../core/payouts/states.ts';
import { isSameDestination } from '../../core/payouts/validation.ts';
import { Refusal } from '../../core/refusal.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { insertPayouts, type PayoutRow, type RequestedPayout } from '../../store/payouts/payouts.ts';
import { readScriptOwner, type ScriptOwner } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

export type { PayoutRow } from '../../store/payouts/payouts.ts';

export type PayoutRequest = {
  readonly merchantId: bigint;
  /** In the method's unit, its form was checked before; or `all`. */
  readonly amount: string;
  /** A valid address of the network. */
  readonly destination: string;
  /** Requested by the merchant's settings: `all` leaves this many minor units. Absent for a call of the merchant. */
  readonly automatic?: { readonly leave: bigint };
};

/** A payout that was asked for, with what is decided about it. */
export type PayoutToTake = {
  readonly payout: RequestedPayout;
  /** Null = nothing holds it. */
  readonly heldReason: HeldReason | null;
  /** What the intent names: the output script (hex), the invoice, or the bank account as it was sent. */
  readonly destination: string;
  readonly hold: Entry;
};

/** Writes payouts that were asked for, each with its signed intent and its hold; returns their rows in the same order. */
export async function takePayouts(ctx: Context, sql: Sql, all: readonly PayoutToTake[]): Promise<readonly PayoutRow[]> {
  const signed = all.map(({ payout, heldReason, destination }) => {
    return { payout, heldReason, intent: signedIntent(ctx, payout, destination) };
  });
  const entries = all.map(({ payout, hold }) => ({
    entry: hold,
    transactionId: null,
    payoutId: payout.id,
    atMs: payout.createdAtMs,
  }));
  const [made] = await Promise.all([insertPayouts(sql, signed), postEntries(sql, entries)]);
  return made;
}

/** As {@link takePayouts}, one. */
export async function takePayout(ctx: Context, sql: Sql, one: PayoutToTake): Promise<PayoutRow> {
  return (await takePayouts(ctx, sql, [one]))[0] as PayoutRow;
}

function signedIntent(
  ctx: Context,
  payout: RequestedPayout,
  destination: string,
): ReturnType<Context['ports']['intentKey']['sign']> {
  return ctx.ports.intentKey.sign(
    intentBytes({
      network: ctx.network,
      payoutId: payout.id,
      merchantId: payout.merchantId,
      method: payout.method,
      currency: payout.currency,
      amount: payout.amount,
      feeMax: payout.feeMax,
      destination,
      createdAtMs: payout.createdAtMs,
      reimburses: null,
      internalTo: payout.internalTo ?? null,
      needsApproval: payout.needsApproval,
    }),
  );
}

/** @throws Refusal invalid_destination for an address of this installation */
export async function refuseOurAddress(sql: Sql, script: Uint8Array, merchantId: bigint): Promise<void> {
  refuseOwnScript(await readScriptOwner(sql, script), merchantId);
}

/**
 * Refuses (400 `invalid_destination`) an address of this installation: its own outputs, the merchant's own transactions, and any other
 * merchant's, where no entry in the ledger can take the payout's place.
 */
export function refuseOwnScript(owner: ScriptOwner, merchantId: bigint): void {
  const refused = (message: string) => new Refusal('invalid_destination', { param: 'destination', message });
  if (owner.isOurOwn || owner.merchantId === merchantId) throw refused('destination is an address of your own on this server.');
  if (owner.merchantId !== null)
    throw refused(
      'destination is an address of another merchant on this server, which only a payout in its own currency that is requested once can pay.',
    );
}

/** @throws Refusal destination_not_allowed */
export function refuseUnlisted(allowed: ReadonlySet<string> | null, destination: string): void {
  if (allowed !== null && ![...allowed].some((one) => isSameDestination(one, destination)))
    throw new Refusal('destination_not_allowed', { param: 'destination' });
}
