// Reimbursements: payments of a transaction go back to its customer. The judge of the transaction takes them from where they lie, in the database
// transaction that writes the reimbursement with what the signer will ask for; from then on it is paid as payouts are.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { balanceOf, type CurrencyCode, type PaymentMethod } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import type { CaseTransaction, Refund } from '../../core/judge/case.ts';
import { reimburse } from '../../core/judge/refunds.ts';
import { formatAmount, greatest, least, minus, plus } from '../../core/money.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { intentBytes } from '../../core/payouts/intent.ts';
import { REIMBURSEMENT } from '../../core/payouts/units.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { mayHaveGoneBack } from '../../store/lightning/sent-payments.ts';
import { insertRefund, latestRefund } from '../../store/payouts/reimbursements.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { invoiceOfRefund, refundByInvoice } from '../lightning/refund-request.ts';
import { getPayoutGuards } from '../merchants/settings.ts';
import { decide } from '../transactions/decide.ts';
import { usualNetworkFee } from './network-fees.ts';
import { type RefundTerms, refundByAddress } from './refund-rail.ts';
import { refuseUnlisted } from './request.ts';

export type ReimbursementRequest = {
  /** Whose decision it is; null = the operator's. */
  readonly merchantId: bigint | null;
  readonly transactionId: string;
  readonly destination: string;
  readonly part: 'excess' | null;
  /** Null = the transaction's. */
  readonly currency: CurrencyCode | null;
};

/**
 * Takes a reimbursement, or refuses it and leaves nothing behind: the destination, the allow-list, then what the transaction allows, the amount
 * and the balance.
 * @param prepared the invoice that the destination gave (BOLT11), where it was asked already; absent: a Lightning address or LNURL is asked here,
 *   which must not be inside a database transaction
 * @returns the transaction, whose status stays until the reimbursement is confirmed
 * @throws Refusal transaction_not_found, invalid_destination, destination_not_allowed, not_resolvable, currency_unavailable,
 *   amount_below_minimum, insufficient_balance; over Lightning lightning_unavailable, invoice_already_used, invoice_expired, invoice_amount_mismatch
 */
export async function reimburseTransaction(
  ctx: Context,
  request: ReimbursementRequest,
  prepared: string | null = null,
): Promise<{ transactionId: string; status: TransactionStatus }> {
  const { transactionId, destination } = request;
  const { owner, method } = await asked(ctx, request);
  const guards = await getPayoutGuards(ctx, owner);
  const isOverLightning = method === LIGHTNING.code;
  const given = prepared ?? (isOverLightning ? await refundInvoice(ctx, request) : null) ?? destination;
  const rail = isOverLightning ? await refundByInvoice(ctx, given) : await refundByAddress(ctx, method, destination);
  refuseUnlisted(guards.allowed, destination);

  const id = sortableId('refund_', ctx.ports.clock.now(), ctx.ports.rng.bytes(10));
  const currency = balanceOf(method);
  let taken: Refund | null = null;
  const after = await decide(ctx, transactionId, {
    merchantId: owner.merchantId,
    refusal: 'not_resolvable',
    decision(it) {
      // what the transaction says comes before what the chain costs
      const refund = reimburse(it, { id, currency: method, part: request.part ?? 'whole', least: rail.least });
      rail.refuse(refund.total);
      taken = refund;
    },
    async written(sql, transaction) {
      const refund = taken as unknown as Refund;
      const createdAtMs = ctx.ports.clock.now();
      const rate = (await latestRates(sql, ctx.ports.seals, [currency], createdAtMs)).get(currency)?.usd;
      const usdMinor = rate === undefined ? null : usdForCryptoUp(refund.total, currency, rate);
      // what the operator asks for needs no operator
      const isAsked = request.merchantId !== null;
      const terms = await rail.terms(sql, refund.total);
      const hash = terms.invoice?.paymentHash ?? null;
      const isAgain = isAsked && isOverLightning && (await mayHaveGoneBack(sql, transactionId, hash));
      const made = {
        refund,
        transactionId,
        merchantId: transaction.merchantId,
        currency,
        ...terms,
        destination,
        createdAtMs,
        needsApproval: isAgain || (isAsked && isAboveLimit(usdMinor, guards.approvalAbove)),
      };
      await insertRefund(sql, {
        ...made,
        amountText: formatAmount(refund.total, currency),
        usdMinor,
        trouble: isAgain ? AGAIN : null,
        intent: signed(ctx, made),
      });
    },
  });
  if (after === null) throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  return { transactionId: after.id, status: after.status };
}

const AGAIN =
  'a payment over Lightning that was booked as lost may have sent this back already: ask the customer before it is approved';

/**
 * The invoice that a Lightning address or an LNURL gives for what a reimbursement would pay now. Not for use inside a database transaction.
 * @returns BOLT11; null where nobody has to be asked
 * @throws Refusal as {@link reimburseTransaction}, and as `askForInvoice`
 */
export async function refundInvoice(ctx: Context, request: ReimbursementRequest): Promise<string | null> {
  const { owner, method } = await asked(ctx, request);
  if (method !== LIGHTNING.code) return null;
  const wanted = { merchantId: owner.merchantId, destination: request.destination };
  return invoiceOfRefund(ctx, wanted, {
    async whole(least) {
      refuseUnlisted((await getPayoutGuards(ctx, owner)).allowed, request.destination);
      return wholeNow(ctx, { ...request, merchantId: owner.merchantId }, { method, least });
    },
  });
}

/** Ends a decision that was made only to see what it would take. */
class Seen extends Error {}

/** What a reimbursement would take now. Refused as it would be. */
async function wholeNow(
  ctx: Context,
  { transactionId, merchantId, part }: Pick<ReimbursementRequest, 'transactionId' | 'part'> & { readonly merchantId: bigint },
  { method, least: lowest }: { readonly method: PaymentMethod; readonly least: bigint },
): Promise<bigint> {
  let total = 0n;
  try {
    await decide(ctx, transactionId, {
      merchantId,
      refusal: 'not_resolvable',
      decision(it) {
        total = reimburse(it, { id: 'refund_', currency: method, part: part ?? 'whole', least: lowest }).total;
        throw new Seen();
      },
    });
  } catch (error) {
    if (!(error instanceof Seen)) throw error;
  }
  return total;
}

type Owner = NonNullable<Awaited<ReturnType<Context['batches']['check']>>>;

/** Whose transaction it is, and of which currency the payments are that go back: what came over Lightning, for a Lightning one. */
async function asked(
  ctx: Context,
  request: ReimbursementRequest,
): Promise<{ readonly owner: Owner; readonly method: PaymentMethod }> {
  const owner = await ctx.batches.check(request.transactionId);
  if (owner === null || (request.merchantId !== null && owner.merchantId !== request.merchantId))
    throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  const named = request.currency;
  return { owner, method: named === null || named === balanceOf(owner.currency) ? owner.currency : named };
}

type Taken = {
  readonly refund: Refund;
  readonly transactionId: string;
  readonly merchantId: CaseTransaction['merchantId'];
  readonly currency: CurrencyCode;
  readonly createdAtMs: number;
  readonly needsApproval: boolean;
} & RefundTerms;

function signed(
  ctx: Context,
  { refund, script, invoice, transactionId, ...taken }: Taken,
): ReturnType<Context['ports']['intentKey']['sign']> {
  const { merchantId, currency, feeMax, createdAtMs, needsApproval } = taken;
  return ctx.ports.intentKey.sign(
    intentBytes({
      network: ctx.network,
      payoutId: refund.id,
      merchantId,
      method: REIMBURSEMENT,
      currency,
      amount: refund.total,
      feeMax,
      destination: invoice?.paymentRequest ?? Buffer.from(script ?? []).toString('hex'),
      createdAtMs,
      reimburses: transactionId,
      needsApproval,
    }),
  );
}

/** The latest reimbursement of a transaction. Amounts in minor units of `currency`; `amount` and `fee` are what was taken. */
export type RefundShown = {
  readonly currency: CurrencyCode;
  readonly status: 'pending' | 'completed' | 'failed';
  /** What the customer gets; until a transaction is signed, by the network fee of now. */
  readonly amount: bigint;
  /** The network's, and what a token's contract has kept. */
  readonly fee: bigint;
  readonly destination: string;
  readonly txid: string | null;
};

/** Null when there is none. */
export async function readRefund(ctx: Context, transactionId: string): Promise<RefundShown | null> {
  const found = await latestRefund(ctx.db, transactionId);
  if (found === null) return null;
  const { currency, destination, txid, total } = found;
  const isOpen = found.feeRate !== null && found.status !== 'failed';
  const expected = found.isOverLightning
    ? found.feeMax
    : isOpen
      ? ((await usualNetworkFee(ctx, ctx.db, currency, found.feeRate as bigint)) ?? 0n)
      : 0n;
  const network = found.found ?? greatest(0n, least(found.fee ?? found.share ?? expected, found.feeMax));
  const fee = plus(network, found.kept ?? 0n);
  // its end shows when the transaction knows of it
  const isOver = found.isNoted && (found.status === 'completed' || found.status === 'failed');
  return {
    currency,
    status: isOver ? (found.status as 'completed' | 'failed') : 'pending',
    amount: minus(total, fee),
    fee,
    destination,
    txid,
  };
}
