// What a merchant may know of itself: its registration and its available balances.
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { readAvailable } from '../../store/ledger/ledger.ts';
import { type Merchant, readMerchant } from '../../store/merchants/merchants.ts';
import type { Context } from '../context.ts';

export type Account = {
  readonly affiliateId: string;
  readonly email: string;
  readonly businessName: string;
  readonly createdAtMs: number;
  /** Available, in minor units: every currency, in the order of a balances answer. */
  readonly balances: Readonly<Record<CurrencyCode, bigint>>;
};

/** @param of.merchantId an existing merchant, as the authenticator returned it */
export async function getAccount(ctx: Pick<Context, 'db'>, of: { readonly merchantId: bigint }): Promise<Account> {
  const [merchant, available] = await Promise.all([readMerchant(ctx.db, of.merchantId), readAvailable(ctx.db, of.merchantId)]);
  const { affiliateId, email, businessName, createdAt } = merchant as Merchant;
  const balances = Object.fromEntries(CURRENCY_CODES.map((code) => [code, available.get(code) ?? 0n])) as Record<
    CurrencyCode,
    bigint
  >;
  return { affiliateId, email, businessName, createdAtMs: createdAt.getTime(), balances };
}
