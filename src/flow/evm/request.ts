// A payout in a token: its hold is of amount and gas, both in the token. What only the chain knows of its payee is asked before.
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { Refusal } from '../../core/refusal.ts';
import type { PayoutRow } from '../../store/payouts/payouts.ts';
import type { RequestFacts } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { takeOnChain } from '../payouts/chain-request.ts';
import { reservedNetworkFee } from '../payouts/network-fees.ts';
import type { PayoutRequest } from '../payouts/request.ts';

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
  const problem = ctx.ports.destinations.problem('usdt', destination) ?? unpayable(ctx.tokenContract, UNIT.code, destination);
  const said = problem === null ? await ctx.ports.tokenPayees?.problem(destination.toLowerCase()) : problem;
  if (said !== null && said !== undefined) throw doesNotFit(said);
}

/**
 * Takes a payout in USDT with its hold, or refuses it and leaves nothing behind.
 * @param request amount: USDT, its form was checked before, or `all`; destination: a valid address
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, currency_unavailable, insufficient_balance
 */
export async function requestTokenPayout(ctx: Context, request: PayoutRequest): Promise<PayoutRow> {
  const problem = unpayable(ctx.tokenContract, UNIT.code, request.destination);
  if (problem !== null) throw doesNotFit(problem);
  return takeOnChain(ctx, request, {
    method: 'usdt',
    unit: UNIT,
    internalTo: async () => null,
    highestFee: (sql, facts, amount) => highestGas(ctx, sql, facts, amount),
  });
}

const doesNotFit = (problem: string): Refusal =>
  new Refusal('invalid_destination', { param: 'destination', message: `destination does not fit usdt: ${problem}.` });

/** The most that the gas of a payout may be worth, in USDT. */
async function highestGas(ctx: Context, sql: Sql, { feeRate, hasKey }: RequestFacts, amount: bigint): Promise<bigint> {
  const unavailable = (message: string) => new Refusal('currency_unavailable', { message });
  if (!hasKey) throw unavailable(`The signer has no key in use for ${UNIT.code}: nothing can be paid out.`);
  if (feeRate === null) throw unavailable('No Ethereum node has reported yet what a transaction costs.');
  const reserved = await reservedNetworkFee(ctx, sql, UNIT.code, { feeRate, amount });
  if (reserved === null) throw unavailable(`There is no price now of what gas is worth in ${UNIT.code}.`);
  return reserved;
}
