// The handlers of payouts, one for each row of their table.
import { PAGE } from '../../contract/endpoint.ts';
import type { PAYOUT_API } from '../../contract/payout-api.ts';
import { PAYOUT_UNITS, type PayoutMethod } from '../../core/payouts/units.ts';
import { checkMinimum, checkPayoutForm, refuseUnbuilt } from '../../core/payouts/validation.ts';
import { requestAchPayout } from '../../flow/ach/request.ts';
import type { Context } from '../../flow/context.ts';
import { refuseUnpayable, requestTokenPayout } from '../../flow/evm/request.ts';
import { canPayLightning, invoiceOfDestination, requestLightningPayout } from '../../flow/lightning/payout-request.ts';
import { requestPayout } from '../../flow/payouts/bitcoin-request.ts';
import { cancelPayout } from '../../flow/payouts/cancel-and-approve.ts';
import { checkPayoutStatus, listPayouts, shownPayout } from '../../flow/payouts/reads.ts';
import type { PayoutRow } from '../../flow/payouts/request.ts';
import { getPayoutSettings, setPayoutSettings } from '../../flow/payouts/settings.ts';
import type { Asks, MerchantHandlers } from '../operation.ts';
import { payoutSettingsOf, requestedReply } from './payout-replies.ts';

const madeReply = (made: PayoutRow) => ({ success: true as const, payout: requestedReply(made) });

export const PAYOUT_HANDLERS: Pick<MerchantHandlers, keyof typeof PAYOUT_API> = {
  async requestPayout({ ctx, caller, prepared }, body) {
    const { method, amount, destination, source_currency: sourceCurrency } = body;
    const { merchantId } = caller;
    if (method === 'lightning') {
      await checkLightning(ctx, { method, amount, destination });
      const asked = prepared?.paymentRequest ?? (await invoiceOfDestination(ctx, { merchantId, amount, destination }));
      const request = { merchantId, amount, destination, paymentRequest: asked ?? destination };
      return { success: true, payout: requestedReply(await requestLightningPayout(ctx, request)) };
    }
    checkPayoutForm(body, ctx.ports.destinations);
    if (!hasRail(ctx, method)) checkMinimum(method, amount, 'amount');
    refuseUnbuilt(method, { ...ctx, hasLightning: false });
    const request = { merchantId, amount, destination };
    if (method === 'ach') return madeReply(await requestAchPayout(ctx, { ...request, sourceCurrency }));
    if (method === 'usdt') return madeReply(await requestTokenPayout(ctx, request));
    return madeReply(await requestPayout(ctx, request));
  },

  async checkPayout({ ctx, caller }, body) {
    const found = await checkPayoutStatus(ctx, { merchantId: caller.merchantId, payoutId: body.payout_id });
    return { success: true, payout: shownPayout(found) };
  },

  async listPayouts({ ctx, context, caller }, body) {
    const { merchantId } = caller;
    if (body.starting_after !== null)
      await checkPayoutStatus(ctx, { merchantId, payoutId: body.starting_after, param: 'starting_after' });
    const filter = {
      merchantId,
      limit: body.limit ?? PAGE.usual,
      startingAfter: body.starting_after,
      status: body.status,
      method: body.method,
      createdGteMs: body.created_gte,
      createdLtMs: body.created_lt,
    };
    const { data, hasMore } = await context.lists(merchantId, () => listPayouts(ctx, filter));
    return { success: true, data: data.map(shownPayout), has_more: hasMore };
  },

  async cancelPayout({ ctx, caller }, body) {
    const of = { merchantId: caller.merchantId, payoutId: body.payout_id };
    await cancelPayout(ctx, of);
    return { success: true, payout: shownPayout(await checkPayoutStatus(ctx, of)) };
  },

  async getPayoutSettings({ ctx, caller }) {
    return payoutSettingsOf(await getPayoutSettings(ctx, { merchantId: caller.merchantId }));
  },

  async setPayoutSettings({ ctx, caller }, body) {
    const settings = await setPayoutSettings(ctx, {
      merchantId: caller.merchantId,
      change: {
        enabled: body.enabled,
        method: body.method,
        destination: body.destination,
        threshold: body.threshold,
        leave: body.leave,
        sourceCurrency: body.source_currency,
        paused: body.paused,
      },
    });
    return payoutSettingsOf(settings);
  },
};

/** What is looked at of a payout over Lightning before anybody is asked. Refused: as its form is, payout_below_minimum, lightning_unavailable */
export async function checkLightning(
  ctx: Context,
  body: { readonly method: 'lightning'; readonly amount: string; readonly destination: string },
): Promise<void> {
  checkPayoutForm(body, ctx.ports.destinations);
  checkMinimum(body.method, body.amount, 'amount');
  refuseUnbuilt(body.method, { ...ctx, hasLightning: await canPayLightning(ctx) });
}

/** Whether the node or bank is there that a method needs: without, the minimum comes before the refusal, as there is no order to keep. */
function hasRail({ currencies, hasBank }: Context, method: PayoutMethod): boolean {
  if (method === 'ach') return hasBank;
  return method !== 'usdt' || currencies.includes(PAYOUT_UNITS.usdt.code);
}

/** What the chain says of a token's payee: asked before anything is held. The form of the fields comes first. */
export const PAYOUT_ASKS: Asks = {
  async requestPayout({ ctx }, body) {
    if (body.method !== 'usdt' || !hasRail(ctx, body.method)) return;
    checkPayoutForm(body, ctx.ports.destinations);
    await refuseUnpayable(ctx, body.destination);
  },
};
