// A payout by Bitcoin, from the request to its hold: by the chain, or by an entry where the address is another merchant's transaction here.
import type { UtxoCode } from '../../core/currency.ts';
import { inputsFor, mostInputs, reservedFee } from '../../core/payouts/outgoing-fees.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { Refusal } from '../../core/refusal.ts';
import type { PayoutRow } from '../../store/payouts/payouts.ts';
import { LARGEST, largestOutputs, type RequestFacts, type ScriptOwner } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { isDerivedHere } from '../addresses/derived-here.ts';
import type { Context } from '../context.ts';
import { takeOnChain } from './chain-request.ts';
import type { PayoutRequest } from './request.ts';

const UNIT = PAYOUT_UNITS.bitcoin;
const CURRENCY = UNIT.code;

/**
 * Takes a payout by Bitcoin with its hold, or refuses it and leaves nothing behind.
 * @param request amount: BTC, its form was checked before, or `all`; destination: a valid address of the network
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, currency_unavailable, insufficient_balance
 */
export function requestPayout(ctx: Context, request: PayoutRequest): Promise<PayoutRow> {
  return takeOnChain(ctx, request, {
    method: 'bitcoin',
    unit: UNIT,
    internalTo: async (sql, owner, asked) => (asked.automatic === undefined ? transactionHere(ctx, sql, owner, asked) : null),
    highestFee,
  });
}

/**
 * The transaction of another merchant that an address belongs to; null where it is none, another currency is asked for there, or no key of ours
 * gives the address: then somebody has written it into the database.
 */
async function transactionHere(
  ctx: Context,
  sql: Sql,
  owner: ScriptOwner,
  { merchantId, script }: { readonly merchantId: bigint; readonly script: Uint8Array },
): Promise<string | null> {
  const { transactionId, isOurOwn, addressIndex: index } = owner;
  if (transactionId === null || isOurOwn || owner.merchantId === merchantId || owner.currency !== CURRENCY) return null;
  return (await isDerivedHere(ctx, sql, CURRENCY, { script, index })) ? transactionId : null;
}

/** The most that paying an amount may cost with the outputs that can be spent now. */
async function highestFee(sql: Sql, { feeRate, hasKey, largest }: RequestFacts, amount: bigint): Promise<bigint> {
  const unavailable = (message: string) => new Refusal('currency_unavailable', { message });
  if (!hasKey) throw unavailable('The signer has no key in use for Bitcoin: nothing can be paid out.');
  if (feeRate === null) throw unavailable('No Bitcoin node has reported yet what a transaction costs.');
  return reservedFee(CURRENCY, feeRate, await inputsOf(sql, CURRENCY, amount, largest));
}

/**
 * How many of our outputs an amount needs at least.
 * @param largest the first of them, as they were read already
 */
export async function inputsOf(
  sql: Sql,
  currency: UtxoCode,
  amount: bigint,
  largest: readonly bigint[] | null = null,
): Promise<number> {
  const first = largest ?? (await largestOutputs(sql, currency, LARGEST));
  const count = inputsFor(amount, first);
  if (count <= first.length || first.length < LARGEST) return count;
  return inputsFor(amount, await largestOutputs(sql, currency, mostInputs(currency)));
}
