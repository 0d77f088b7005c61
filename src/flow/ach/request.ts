// A payout to a bank account: which balance pays it, at which rate, and its hold. One database transaction, in which nothing outside is called.
import { MOST_CENTS_EACH } from '../../core/ach/nacha-file.ts';
import { ACH_SOURCES, CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { formatMinor, greatest, minus } from '../../core/money.ts';
import { achFee, achHoldEntry } from '../../core/payouts/ach-postings.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkMinimum, payoutAmount } from '../../core/payouts/validation.ts';
import { cryptoForUsdExactUp, type Rate, usdForCryptoDown } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { sealDestination } from '../../core/sealed-text.ts';
import { lockBalances, readAvailable } from '../../store/ledger/ledger.ts';
import type { PayoutRow, RequestedPayout } from '../../store/payouts/payouts.ts';
import { readStops } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { getPayoutGuards } from '../merchants/settings.ts';
import { whyHeld } from '../payouts/held-reasons.ts';
import { refuseUnlisted, takePayout } from '../payouts/request.ts';

const { minimumMinor: MINIMUM, minimum: MINIMUM_TEXT, decimals: DECIMALS } = PAYOUT_UNITS.ach;

export type AchRequest = {
  readonly merchantId: bigint;
  /** USD, its form was checked before; or `all`. */
  readonly amount: string;
  /** A valid bank account. */
  readonly destination: string;
  /** The balance that pays; null: the first that suffices. */
  readonly sourceCurrency: CurrencyCode | null;
  /** Requested by the merchant's settings: how many cents the balance is worth, and how many stay. Absent for a call of the merchant. */
  readonly automatic?: { readonly threshold: bigint; readonly leave: bigint };
};

/**
 * Takes a payout with its hold, or refuses it and leaves nothing behind. In this order: the allow-list, the minimum, the maximum, the rate and
 * the balance.
 * @throws Refusal destination_not_allowed, payout_below_minimum, amount_above_maximum, rate_unavailable, insufficient_balance
 */
export async function requestAchPayout(ctx: Context, request: AchRequest): Promise<PayoutRow> {
  return ctx.db.transaction(async (sql) => {
    const { merchantId, destination, automatic } = request;
    const nowMs = ctx.ports.clock.now();
    const guards = await getPayoutGuards({ db: sql, ports: ctx.ports }, { merchantId });
    refuseUnlisted(guards.allowed, destination);
    checkMinimum('ach', request.amount, 'amount');
    const sent = request.amount === 'all' ? null : payoutAmount('ach', request.amount, 'amount');
    if (sent !== null) refuseTooLarge(sent);
    const { cents, source, left } = chooseSource(await readSources(ctx, sql, request, nowMs), sent, automatic);
    refuseTooLarge(cents);

    const fee = achFee(cents);
    const needsApproval = isAboveLimit(cents, guards.approvalAbove);
    const asked = { id: null, merchantId, currency: source.currency, usdMinor: cents, needsApproval, isApproved: false };
    const heldReason = await whyHeld(ctx, sql, asked, { ...(await readStops(sql, merchantId)), guards, left });
    const id = sortableId('payout_', nowMs, ctx.ports.rng.bytes(10));
    const payout: RequestedPayout & { readonly source: Source } = {
      id,
      merchantId,
      method: 'ach',
      amountText: sent === null ? formatMinor(cents, DECIMALS) : request.amount,
      currency: 'USD',
      amount: minus(cents, fee),
      feeMax: fee,
      fee,
      source,
      destination: sealDestination(ctx.ports.sealing, destination, id),
      script: null,
      usdMinor: cents,
      needsApproval,
      automatic: automatic !== undefined,
      createdAtMs: nowMs,
    };
    return takePayout(ctx, sql, { payout, heldReason, destination, hold: achHoldEntry(payout) });
  });
}

type Source = { readonly currency: CurrencyCode; readonly amount: bigint };
type Balance = { readonly currency: CurrencyCode; readonly available: bigint; readonly rate: Rate | null };

/** What may pay it, locked, in the order in which it is asked: the one that was named, or each that is not empty. */
async function readSources(ctx: Context, sql: Sql, request: AchRequest, nowMs: number): Promise<readonly Balance[]> {
  const { merchantId, sourceCurrency } = request;
  const some = await readAvailable(sql, merchantId);
  const codes = CURRENCY_CODES.filter((code) =>
    sourceCurrency === null ? (some.get(code) ?? 0n) > 0n : code === sourceCurrency,
  );
  const balances = await lockBalances(sql, merchantId, codes, { heldDollars: true });
  const rates = await latestRates(sql, ctx.ports.seals, codes, nowMs);
  const found = codes.map((currency) => ({
    currency,
    available: balances.get(currency)?.available ?? 0n,
    rate: rates.get(currency)?.usd ?? null,
  }));
  const rank = ({ currency }: Balance): number =>
    ACH_SOURCES.includes(currency) ? ACH_SOURCES.indexOf(currency) : ACH_SOURCES.length;
  return found
    .filter(({ available }) => available > 0n)
    .sort((a, b) => rank(a) - rank(b) || Number(worth(b) > worth(a)) - Number(worth(b) < worth(a)));
}

const worth = ({ currency, available, rate }: Balance): bigint =>
  rate === null ? 0n : usdForCryptoDown(available, currency, rate);

/**
 * The first balance that pays the whole; never a mix.
 * @param sent cents; null = all of it
 */
function chooseSource(
  balances: readonly Balance[],
  sent: bigint | null,
  automatic: AchRequest['automatic'],
): { readonly cents: bigint; readonly source: Source; readonly left: bigint } {
  const least = automatic?.threshold ?? MINIMUM;
  for (const balance of balances) {
    const { currency, available, rate } = balance;
    if (rate === null) continue;
    const cents = sent ?? minus(worth(balance), automatic?.leave ?? 0n);
    if (sent === null && (worth(balance) < least || cents < MINIMUM)) continue;
    const amount = cryptoForUsdExactUp(cents, currency, rate);
    if (amount <= available) return { cents, source: { currency, amount }, left: minus(available, amount) };
  }
  throw notCovered(balances, sent);
}

function notCovered(balances: readonly Balance[], sent: bigint | null): Refusal {
  const unpriced = balances.filter(({ rate }) => rate === null).map(({ currency }) => currency);
  if (unpriced.length > 0)
    return new Refusal('rate_unavailable', { message: `No trustworthy rate of ${unpriced.join(', ')} is available right now.` });
  if (sent === null && balances.length > 0) {
    const message = `No balance that may pay it is worth the minimum of ${MINIMUM_TEXT} USD.`;
    return new Refusal('payout_below_minimum', { param: 'amount', message });
  }
  const best = balances.reduce((most, balance) => greatest(most, worth(balance)), 0n);
  const covered = best >= MINIMUM ? `; at most ${formatMinor(best, DECIMALS)} USD can be paid out` : '';
  return new Refusal('insufficient_balance', {
    param: 'amount',
    message: `One available balance must cover the whole amount${covered}.`,
  });
}

function refuseTooLarge(cents: bigint): void {
  if (minus(cents, achFee(cents)) <= MOST_CENTS_EACH) return;
  const message = `A bank takes at most ${formatMinor(MOST_CENTS_EACH, DECIMALS)} USD in one entry.`;
  throw new Refusal('amount_above_maximum', { param: 'amount', message });
}
