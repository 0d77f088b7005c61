// The handlers of the merchant's API, one for each row of the endpoint table, each a few lines: body in, operation, reply out. Everything
// that does not depend on the operation has been checked before.
import { PAGE } from '../../contract/endpoint.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import { checkAllowList } from '../../core/payouts/validation.ts';
import { awaitEventsBefore, checkWebhookUrl } from '../../flow/events/webhooks.ts';
import { getAccount } from '../../flow/merchants/account.ts';
import { getSettings, type Settings, setSettings } from '../../flow/merchants/settings.ts';
import { awaitComparison } from '../../flow/payouts/after-restore/comparison-wait.ts';
import { reimburseTransaction } from '../../flow/payouts/reimbursements.ts';
import { guardedSignIn } from '../../flow/sign-in/lockout.ts';
import { refresh } from '../../flow/sign-in/refresh-tokens.ts';
import { signOut } from '../../flow/sign-in/sign-in.ts';
import type { TokenPair } from '../../flow/sign-in/token-pair.ts';
import { cancelTransaction, createTransaction, resolveTransaction } from '../../flow/transactions/create-cancel-resolve.ts';
import { getRates } from '../../flow/transactions/quote.ts';
import { checkTransaction, listBalanceEntries, listTransactions } from '../../flow/transactions/reads.ts';
import { addressKey } from '../client-address.ts';
import type { Afters, Asks, MerchantHandlers } from '../operation.ts';
import { scaled } from '../rate-limit.ts';
import { PAYOUT_ASKS, PAYOUT_HANDLERS } from './payouts.ts';
import { checkedReply, createdReply, entriesReply, expansion, isoTime, listReply, rateReply } from './transaction-replies.ts';
import { waitForAnswer } from './wait.ts';
import { WEBHOOK_HANDLERS } from './webhooks.ts';

/** How many failures in 15 minutes are answered, per username and address; after them that address must wait. */
export const FAILED_SIGN_INS = 5;

export const MERCHANT_HANDLERS: MerchantHandlers = {
  async auth({ ctx, context, request }, body) {
    const failures = context.rateLimits?.failed_sign_ins?.perMinute ?? FAILED_SIGN_INS;
    const from = { ipAddress: addressKey(request.ip), allowed: scaled(failures, context.rateLimitScale) };
    return pairReply(await guardedSignIn(ctx, body, from));
  },

  async refresh({ ctx }, body) {
    return pairReply(await refresh(ctx, { accessToken: body.access_token, refreshToken: body.refresh_token }));
  },

  async createTransaction(call, body) {
    const { ctx } = call;
    const { merchantId } = call.caller;
    const asked = { merchantId, usdMinor: body.amount, method: body.crypto_selected, label: body.label, email: body.email };
    const made = await createTransaction(ctx, asked, call.prepared?.invoice ?? null);
    const more = await expansion(call, { merchantId, transactionId: made.transactionId }, body.expand);
    return { ...createdReply(made), ...more };
  },

  async checkTransaction(call, body) {
    const of = { merchantId: call.caller.merchantId, transactionId: body.transaction_id };
    const seconds = body.wait_seconds ?? 0;
    const view =
      seconds === 0
        ? await checkTransaction(call.ctx, of)
        : await waitForAnswer(call, of, { seconds, statusWas: body.status_was });
    const reply = checkedReply(view);
    return body.expand === null ? reply : { ...reply, ...(await expansion(call, of, body.expand)) };
  },

  async cancelTransaction(call, body) {
    const of = { merchantId: call.caller.merchantId, transactionId: body.transaction_id };
    const { transactionId, status, message } = await cancelTransaction(call.ctx, of);
    return { transaction_id: transactionId, status, message, ...(await expansion(call, of, body.expand)) };
  },

  ...PAYOUT_HANDLERS,

  async getAccountInfo({ ctx, caller }) {
    const account = await getAccount(ctx, { merchantId: caller.merchantId });
    return {
      success: true,
      account: {
        affiliate_id: account.affiliateId,
        email: account.email,
        business_name: account.businessName,
        created_at: isoTime(account.createdAtMs),
      },
      balances: Object.fromEntries(CURRENCY_CODES.map((code) => [code, formatAmount(account.balances[code], code)])) as Record<
        CurrencyCode,
        string
      >,
    };
  },

  async listTransactions({ ctx, context, caller }, body) {
    const { merchantId } = caller;
    if (body.starting_after !== null) {
      await checkTransaction(ctx, { merchantId, transactionId: body.starting_after, param: 'starting_after' });
    }
    const filter = {
      merchantId,
      limit: body.limit ?? PAGE.usual,
      startingAfter: body.starting_after,
      status: body.status,
      currency: body.crypto_selected,
      label: body.label,
      createdGteMs: body.created_gte,
      createdLtMs: body.created_lt,
    };
    return context.lists(merchantId, async () => listReply(await listTransactions(ctx, filter), ctx));
  },

  async resolveTransaction({ ctx, caller, prepared }, body) {
    const { action, part, currency } = body;
    const of = { merchantId: caller.merchantId, transactionId: body.transaction_id, part };
    const { transactionId, status } =
      action === 'reimburse'
        ? await reimburseTransaction(
            ctx,
            { ...of, currency, destination: body.destination ?? '' },
            prepared?.paymentRequest ?? null,
          )
        : await resolveTransaction(ctx, { ...of, action });
    return { success: true, transaction: { transaction_id: transactionId, status } };
  },

  async getSettings({ ctx, caller }) {
    return settingsReply(await getSettings(ctx, { merchantId: caller.merchantId }));
  },

  async setSettings({ ctx, caller }, body) {
    const above = body.payout_approval_above;
    checkAllowList(body.payout_allow_list ?? [], 'payout_allow_list', ctx.ports.destinations);
    const settings = await setSettings(ctx, {
      merchantId: caller.merchantId,
      scopes: caller.scopes,
      change: {
        tolerancePercent: body.tolerance_percent ?? undefined,
        latePayments: body.late_payments ?? undefined,
        payoutAllowList: body.payout_allow_list ?? undefined,
        payoutApprovalAbove: above === null ? undefined : above === 'none' ? null : above,
      },
    });
    return settingsReply(settings);
  },

  async listBalanceEntries({ ctx, context, caller }, body) {
    const page = {
      merchantId: caller.merchantId,
      currency: body.currency,
      limit: body.limit ?? PAGE.usual,
      startingAfter: body.starting_after,
    };
    return entriesReply(await context.lists(caller.merchantId, () => listBalanceEntries(ctx, page)));
  },

  async getRates({ ctx }) {
    const rates = Object.entries(await getRates(ctx)).map(([code, rate]) => [code, rateReply(rate)]);
    return { success: true, rates: Object.fromEntries(rates) };
  },

  ...WEBHOOK_HANDLERS,

  async signOut({ ctx, caller }) {
    await signOut(ctx, { signInId: caller.signInId });
    return { success: true };
  },
};

export const MERCHANT_ASKS: Asks = {
  ...PAYOUT_ASKS,
  createWebhook: ({ ctx }, { url }) => checkWebhookUrl(ctx, url),
  cancelPayout: ({ ctx, caller }, { payout_id: payoutId }) => awaitComparison(ctx, { merchantId: caller.merchantId, payoutId }),
};

export const MERCHANT_AFTERS: Afters = { createWebhook: awaitEventsBefore };

function pairReply({ accessToken, refreshToken }: TokenPair) {
  return { access_token: accessToken, token_type: 'bearer' as const, refresh_token: refreshToken };
}

function settingsReply(settings: Settings) {
  const { payoutAllowListFromMs: listFrom, payoutApprovalAboveFromMs: approvalFrom } = settings;
  return {
    success: true as const,
    settings: {
      tolerance_percent: settings.tolerancePercent,
      late_payments: settings.latePayments,
      payout_allow_list: [...settings.payoutAllowList],
      payout_approval_above: settings.payoutApprovalAbove,
      ...(listFrom === undefined ? {} : { payout_allow_list_from: isoTime(listFrom) }),
      ...(approvalFrom === undefined ? {} : { payout_approval_above_from: isoTime(approvalFrom) }),
    },
  };
}
