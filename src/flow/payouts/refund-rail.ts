// How a reimbursement leaves: what its destination is, and what is signed for it. This is the way of chains; that of Lightning is in
// flow/lightning/refund-request.
import { balanceOf, CURRENCIES, type CurrencyCode, type PaymentMethod } from '../../core/currency.ts';
import { greatest, least, minus, plus } from '../../core/money.ts';
import { Refusal } from '../../core/refusal.ts';
import { spendingKey } from '../../store/chain/xpubs.ts';
import { readFeeRate } from '../../store/payouts/fee-rates.ts';
import type { RefundInvoice } from '../../store/payouts/reimbursements.ts';
import { readScriptOwner } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { unpayable } from '../evm/request.ts';
import { reservedNetworkFee, usualNetworkFee } from './network-fees.ts';

/** How a reimbursement is paid; what is refused here has been refused, but for what only its transaction shows. */
export type RefundRail = {
  /** The currency of the payments that go back. */
  readonly method: PaymentMethod;
  /** The smallest amount, minor units, of which the customer gets something. */
  readonly least: bigint;
  /** Throws where what was taken cannot leave so: called once the transaction allows it, before anything is written. */
  refuse(total: bigint): void;
  /** What the API signs, for what was taken: in the same database transaction. May throw a Refusal, which undoes all of it. */
  terms(sql: Sql, total: bigint): Promise<RefundTerms>;
};
export type RefundTerms = {
  readonly feeMax: bigint;
  /** The output script, or the invoice. */
  readonly script: Uint8Array | null;
  readonly invoice: RefundInvoice | null;
};

/** @throws Refusal invalid_destination */
export async function refundByAddress(ctx: Context, method: PaymentMethod, destination: string): Promise<RefundRail> {
  const currency = balanceOf(method);
  const script = await scriptOf(ctx, currency, destination);
  const feeRate = await readFeeRate(ctx.db, currency);
  const hasKey = (await spendingKey(ctx.db, currency)) !== null;
  const usual = feeRate === null ? null : await usualNetworkFee(ctx, ctx.db, currency, feeRate);
  // what the customer gets must be something
  const dustMinor = greatest(1n, CURRENCIES[currency].dustMinor);
  const unavailable = (message: string) => new Refusal('currency_unavailable', { message });
  return {
    method,
    least: usual === null ? 0n : plus(dustMinor, usual),
    refuse() {
      if (usual === null)
        throw unavailable(`No node of ${currency} has reported yet what a transaction costs, or there is no price of it.`);
      if (!hasKey) throw unavailable(`The signer has no key in use for ${currency}: nothing can be sent back.`);
    },
    async terms(sql, total) {
      const reserved = await reservedNetworkFee(ctx, sql, currency, { feeRate: feeRate as bigint, amount: total });
      return { feeMax: least(minus(total, dustMinor), reserved ?? (usual as bigint)), script, invoice: null };
    },
  };
}

/** The output script of an address that is not ours. */
async function scriptOf(ctx: Context, currency: CurrencyCode, destination: string): Promise<Uint8Array> {
  const refused = (message: string) => new Refusal('invalid_destination', { param: 'destination', message });
  const problem =
    ctx.ports.destinations.addressProblem(currency, destination) ?? unpayable(ctx.tokenContract, currency, destination);
  if (problem !== null) throw refused(`destination does not fit ${currency}: ${problem}.`);
  const script = ctx.ports.destinations.outputScript(currency, destination);
  const owner = await readScriptOwner(ctx.db, script);
  if (owner.isOurOwn || owner.merchantId !== null)
    throw refused('destination is an address of this server: a reimbursement goes back to a customer.');
  return script;
}
