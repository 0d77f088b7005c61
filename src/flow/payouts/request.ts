// What the requests of all methods share: the hold of a payout on a chain, in one database transaction with its intent and its entries, and the
// refusals of destinations. Nothing outside is called while it is open.
import type { CurrencyCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import type { Entry } from '../../core/judge/case.ts';
import { formatMinor, minus, plus } from '../../core/money.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { intentBytes } from '../../core/payouts/intent.ts';
import { holdEntry } from '../../core/payouts/postings.ts';
import type { HeldReason } from '../../core/payouts/states.ts';
import type { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkMinimum, isSameDestination, payoutAmount } from '../../core/payouts/validation.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { insertPayout, type PayoutRow, type RequestedPayout } from '../../store/payouts/payouts.ts';
import { type RequestFacts, readRequestFacts, readScriptOwner, type ScriptOwner } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { guardsOf } from '../merchants/settings.ts';
import { whyHeld } from './held-reasons.ts';
import { insufficientBalance, largestAmount } from './sufficient-balance.ts';

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

/** What differs between the methods that pay on a chain. */
type OnChain<Method extends 'bitcoin' | 'usdt'> = {
  readonly method: Method;
  readonly unit: (typeof PAYOUT_UNITS)[Method];
  /** The transaction of another merchant here that is paid by an entry; null: the chain pays. */
  readonly internalTo: (sql: Sql, owner: ScriptOwner, script: Uint8Array) => Promise<string | null>;
  /** The most that the network may take for an amount, in the method's unit. @throws Refusal currency_unavailable */
  readonly highestFee: (sql: Sql, facts: RequestFacts, amount: bigint) => Promise<bigint>;
};

/**
 * Takes a payout on a chain with its hold, or refuses it and leaves nothing behind. In this order: whose address it is, the allow-list, the
 * minimum, the fee, the balance.
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, currency_unavailable, insufficient_balance
 */
export async function takeOnChain<Method extends 'bitcoin' | 'usdt'>(
  ctx: Context,
  request: PayoutRequest,
  { method, unit, internalTo: ownerPaid, highestFee }: OnChain<Method>,
): Promise<PayoutRow> {
  const currency: CurrencyCode = unit.code;
  const script = ctx.ports.destinations.outputScript(currency, request.destination);
  return ctx.db.transaction(async (sql) => {
    const { merchantId, destination } = request;
    const nowMs = ctx.ports.clock.now();
    const facts = await readRequestFacts(sql, ctx.ports.seals, { merchantId, script, currency, nowMs });
    const guards = guardsOf(ctx.ports, merchantId, facts.settings);
    const internalTo = await ownerPaid(sql, facts.owner, script);
    if (internalTo === null) refuseOwnScript(facts.owner, merchantId);
    refuseUnlisted(guards.allowed, destination);
    checkMinimum(method, request.amount, 'amount');
    const sent = request.amount === 'all' ? null : payoutAmount(method, request.amount, 'amount');
    const available = (await lockBalances(sql, merchantId, [currency])).get(currency)?.available ?? 0n;
    const feeMax = internalTo === null ? await highestFee(sql, facts, sent ?? available) : 0n;
    const amount = sent ?? largestAmount(unit, available, feeMax, request.automatic?.leave ?? 0n);
    const left = minus(available, plus(amount, feeMax));
    if (left < 0n) throw insufficientBalance(unit, available, feeMax);

    const usdMinor = facts.rate === null ? null : usdForCryptoUp(amount, currency, facts.rate);
    const needsApproval = isAboveLimit(usdMinor, guards.approvalAbove);
    const asked = { id: null, merchantId, currency, usdMinor, needsApproval, isApproved: false };
    const heldReason = await whyHeld(ctx, sql, asked, { ...facts, guards, left });
    const payout: RequestedPayout = {
      id: sortableId('payout_', nowMs, ctx.ports.rng.bytes(10)),
      merchantId,
      method,
      amountText: sent === null ? formatMinor(amount, unit.decimals) : request.amount,
      currency,
      amount,
      feeMax,
      destination,
      script,
      source: null,
      fee: null,
      usdMinor,
      needsApproval,
      automatic: request.automatic !== undefined,
      internalTo,
      createdAtMs: nowMs,
    };
    return takePayout(ctx, sql, payout, {
      heldReason,
      destination: Buffer.from(script).toString('hex'),
      hold: holdEntry({ ...payout, currency, reimburses: null }),
    });
  });
}

/**
 * Writes a payout that was asked for, with its signed intent and its hold.
 * @param taken destination: what the intent names: the output script (hex), the invoice, or the bank account as it was sent
 */
export async function takePayout(
  ctx: Context,
  sql: Sql,
  payout: RequestedPayout,
  taken: { readonly heldReason: HeldReason | null; readonly destination: string; readonly hold: Entry },
): Promise<PayoutRow> {
  const { heldReason, destination, hold } = taken;
  const made = await insertPayout(sql, payout, { heldReason, intent: signedIntent(ctx, payout, destination) });
  await postEntries(sql, [{ entry: hold, transactionId: null, payoutId: payout.id, atMs: payout.createdAtMs }]);
  return made;
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
