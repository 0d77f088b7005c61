// Reimbursements: payments of a transaction go back to its customer. The judge of the transaction takes them from where they lie, in the database
// transaction that writes the reimbursement with what the signer will ask for; from then on it is paid as payouts are.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { CURRENCIES, type CurrencyCode, type PaymentMethod } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import type { CaseTransaction, Refund } from '../../core/judge/case.ts';
import { reimburse } from '../../core/judge/refunds.ts';
import { formatAmount, greatest, least, minus, plus } from '../../core/money.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { intentBytes } from '../../core/payouts/intent.ts';
import { REIMBURSEMENT } from '../../core/payouts/payout-units.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { spendingKey } from '../../store/chain/xpubs.ts';
import { readFeeRate } from '../../store/payouts/fee-rates.ts';
import { readScriptOwner } from '../../store/payouts/hold-facts.ts';
import { insertRefund, latestRefund } from '../../store/payouts/reimbursements.ts';
import { latestRates } from '../../store/transactions/rates.ts';
import type { Context } from '../context.ts';
import { getPayoutGuards } from '../merchants/settings.ts';
import { decide } from '../transactions/decide.ts';
import { unpayable } from './evm-request.ts';
import { refuseUnlisted } from './life.ts';
import { reservedNetworkFee, usualNetworkFee } from './network-fees.ts';

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
 * Takes a reimbursement, or refuses it and leaves nothing behind: the address, the allow-list, then what the transaction allows, the amount and
 * the balance.
 * @returns the transaction, whose status stays until the reimbursement is confirmed
 * @throws Refusal transaction_not_found, invalid_destination, destination_not_allowed, not_resolvable, currency_unavailable,
 *   amount_below_minimum, insufficient_balance
 */
export async function reimburseTransaction(
  ctx: Context,
  request: ReimbursementRequest,
): Promise<{ transactionId: string; status: TransactionStatus }> {
  const { transactionId, destination } = request;
  const owner = await ctx.batches.check(transactionId);
  if (owner === null || (request.merchantId !== null && owner.merchantId !== request.merchantId))
    throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  const currency = chainCodeOf(request.currency ?? owner.currency);
  const script = await scriptOf(ctx, currency, destination);
  const guards = await getPayoutGuards(ctx, owner);
  refuseUnlisted(guards.allowed, destination);
  const feeRate = await readFeeRate(ctx.db, currency);
  const hasKey = (await spendingKey(ctx.db, currency)) !== null;

  const id = sortableId('refund_', ctx.ports.clock.now(), ctx.ports.rng.bytes(10));
  const usual = feeRate === null ? null : await usualNetworkFee(ctx, ctx.db, currency, feeRate);
  // what the customer gets must be something
  const dustMinor = greatest(1n, CURRENCIES[currency].dustMinor);
  let taken: Refund | null = null;
  const after = await decide(ctx, transactionId, {
    merchantId: owner.merchantId,
    refusal: 'not_resolvable',
    decision(it) {
      // what the transaction says comes before what the chain costs
      const lowest = usual === null ? 0n : plus(dustMinor, usual);
      taken = reimburse(it, { id, currency, part: request.part ?? 'whole', least: lowest });
      const unavailable = (message: string) => new Refusal('currency_unavailable', { message });
      if (feeRate === null || usual === null)
        throw unavailable(`No node of ${currency} has reported yet what a transaction costs, or there is no price of it.`);
      if (!hasKey) throw unavailable(`The signer has no key in use for ${currency}: nothing can be sent back.`);
    },
    async written(sql, transaction) {
      const refund = taken as unknown as Refund;
      const reserved = await reservedNetworkFee(ctx, sql, currency, { feeRate: feeRate as bigint, amount: refund.total });
      const feeMax = least(minus(refund.total, dustMinor), reserved ?? (usual as bigint));
      const createdAtMs = ctx.ports.clock.now();
      const rate = (await latestRates(sql, [currency], createdAtMs)).get(currency)?.usd;
      const usdMinor = rate === undefined ? null : usdForCryptoUp(refund.total, currency, rate);
      const made = {
        refund,
        transactionId,
        merchantId: transaction.merchantId,
        currency,
        feeMax,
        destination,
        script,
        createdAtMs,
        // what the operator asks for needs no operator
        needsApproval: request.merchantId !== null && isAboveLimit(usdMinor, guards.approvalAbove),
      };
      await insertRefund(sql, {
        ...made,
        amountText: formatAmount(refund.total, currency),
        usdMinor,
        intent: signed(ctx, made),
      });
    },
  });
  if (after === null) throw new Refusal('transaction_not_found', { param: 'transaction_id' });
  return { transactionId: after.id, status: after.status };
}

function chainCodeOf(currency: PaymentMethod): CurrencyCode {
  if (currency !== LIGHTNING.code) return currency;
  throw new Refusal('lightning_unavailable', {
    message: 'What came over Lightning cannot be sent back by this version: it has no payouts over Lightning.',
  });
}

/** The output script of an address that is not ours. */
async function scriptOf(ctx: Context, currency: CurrencyCode, destination: string): Promise<Uint8Array> {
  const refused = (message: string) => new Refusal('invalid_destination', { param: 'destination', message });
  const problem =
    ctx.ports.destinations.addressProblem(currency, destination) ?? unpayable(ctx.usdtContract, currency, destination);
  if (problem !== null) throw refused(`destination does not fit ${currency}: ${problem}.`);
  const script = ctx.ports.destinations.outputScript(currency, destination);
  const owner = await readScriptOwner(ctx.db, script);
  if (owner.isOurOwn || owner.merchantId !== null)
    throw refused('destination is an address of this server: a reimbursement goes back to a customer.');
  return script;
}

type Taken = {
  readonly refund: Refund;
  readonly transactionId: string;
  readonly merchantId: CaseTransaction['merchantId'];
  readonly currency: CurrencyCode;
  readonly feeMax: bigint;
  readonly script: Uint8Array;
  readonly createdAtMs: number;
  readonly needsApproval: boolean;
};

function signed(
  ctx: Context,
  { refund, script, transactionId, ...taken }: Taken,
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
      destination: Buffer.from(script).toString('hex'),
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
  const expected = isOpen ? ((await usualNetworkFee(ctx, ctx.db, currency, found.feeRate as bigint)) ?? 0n) : 0n;
  const fee = greatest(0n, least(found.fee ?? found.share ?? expected, found.feeMax));
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
