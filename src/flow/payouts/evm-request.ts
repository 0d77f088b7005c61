// A payout in a token: its hold of amount and gas, both in the token, in one database transaction. What only the chain knows of its payee is
// asked before.
import { type CurrencyCode, type EvmCode, isUtxo } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { formatMinor, minus, plus } from '../../core/money.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { holdEntry } from '../../core/payouts/postings.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkMinimum, payoutAmount } from '../../core/payouts/validation.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockBalances } from '../../store/ledger/ledger.ts';
import { type RequestFacts, readRequestFacts } from '../../store/payouts/hold-facts.ts';
import type { PayoutRow, RequestedPayout } from '../../store/payouts/payouts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { guardsOf } from '../merchants/settings.ts';
import { allOf, notCovered } from './covered.ts';
import { whyHeld } from './holds.ts';
import { refuseOwnScript, refuseUnlisted, takePayout } from './life.ts';
import { reservedNetworkFee } from './network-fees.ts';

export type { PayoutRow } from '../../store/payouts/payouts.ts';

const UNIT = PAYOUT_UNITS.usdt;
const ZERO = `0x${'0'.repeat(40)}`;

/** Why nobody can have what is sent to an address, as one sentence without a full stop; null = somebody may. */
export function unpayable(contract: string | null, currency: CurrencyCode, destination: string): string | null {
  if (isUtxo(currency)) return null;
  const address = destination.toLowerCase();
  if (address === ZERO) return 'the zero address belongs to nobody';
  return address === contract?.toLowerCase() ? 'it is the contract of the token' : null;
}

/**
 * What the chain says against a payee of a token, before anything is held for it. Nothing is called inside a database transaction: the
 * operation asks this first.
 * @throws Refusal invalid_destination, currency_unavailable
 */
export async function refuseUnpayable(ctx: Context, destination: string): Promise<void> {
  const problem = ctx.ports.destinations.problem('usdt', destination) ?? unpayable(ctx.usdtContract, UNIT.code, destination);
  const said = problem === null ? await ctx.ports.tokenPayees?.problem(destination.toLowerCase()) : problem;
  if (said !== null && said !== undefined)
    throw new Refusal('invalid_destination', { param: 'destination', message: `destination does not fit usdt: ${said}.` });
}

export type TokenPayoutRequest = {
  readonly merchantId: bigint;
  /** USDT, its form was checked before; or `all`. */
  readonly amount: string;
  /** A valid address. */
  readonly destination: string;
  /** Requested by the merchant's settings: `all` leaves so many minor units. Absent for a call of the merchant. */
  readonly automatic?: { readonly leave: bigint };
};

/**
 * Takes a payout in USDT with its hold, or refuses it and leaves nothing behind, in the order of requestPayout.
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, currency_unavailable, insufficient_balance
 */
export async function requestTokenPayout(ctx: Context, request: TokenPayoutRequest): Promise<PayoutRow> {
  const { merchantId, destination } = request;
  const currency: EvmCode = UNIT.code;
  const script = ctx.ports.destinations.outputScript(currency, destination);
  const problem = unpayable(ctx.usdtContract, currency, destination);
  if (problem !== null)
    throw new Refusal('invalid_destination', { param: 'destination', message: `destination does not fit usdt: ${problem}.` });
  return ctx.db.transaction(async (sql) => {
    const nowMs = ctx.ports.clock.now();
    const facts = await readRequestFacts(sql, ctx.ports.seals, { merchantId, script, currency, nowMs });
    const guards = guardsOf(ctx.ports, merchantId, facts.settings);
    refuseOwnScript(facts.owner, merchantId);
    refuseUnlisted(guards.allowed, destination);
    checkMinimum('usdt', request.amount, 'amount');
    const sent = request.amount === 'all' ? null : payoutAmount('usdt', request.amount, 'amount');
    const available = (await lockBalances(sql, merchantId, [currency])).get(currency)?.available ?? 0n;
    const feeMax = await highestGas(ctx, sql, facts, sent ?? available);
    const amount = sent ?? allOf(UNIT, available, feeMax, request.automatic?.leave ?? 0n);
    const left = minus(available, plus(amount, feeMax));
    if (left < 0n) throw notCovered(UNIT, available, feeMax);

    const usdMinor = facts.rate === null ? null : usdForCryptoUp(amount, currency, facts.rate);
    const needsApproval = isAboveLimit(usdMinor, guards.approvalAbove);
    const asked = { id: null, merchantId, currency, usdMinor, needsApproval, isApproved: false };
    const heldReason = await whyHeld(ctx, sql, asked, { ...facts, guards, left });
    const payout: RequestedPayout = {
      id: sortableId('payout_', nowMs, ctx.ports.rng.bytes(10)),
      merchantId,
      method: 'usdt',
      amountText: sent === null ? formatMinor(amount, UNIT.decimals) : request.amount,
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
      createdAtMs: nowMs,
    };
    return takePayout(ctx, sql, payout, {
      heldReason,
      destination: Buffer.from(script).toString('hex'),
      hold: holdEntry({ ...payout, currency, reimburses: null }),
    });
  });
}

/** The most that the gas of a payout may be worth, in USDT. */
async function highestGas(ctx: Context, sql: Sql, { feeRate, hasKey }: RequestFacts, amount: bigint): Promise<bigint> {
  const unavailable = (message: string) => new Refusal('currency_unavailable', { message });
  if (!hasKey) throw unavailable(`The signer has no key in use for ${UNIT.code}: nothing can be paid out.`);
  if (feeRate === null) throw unavailable('No Ethereum node has reported yet what a transaction costs.');
  const reserved = await reservedNetworkFee(ctx, sql, UNIT.code, { feeRate, amount });
  if (reserved === null) throw unavailable(`There is no price now of what gas is worth in ${UNIT.code}.`);
  return reserved;
}
