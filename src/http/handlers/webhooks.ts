// The handlers of events and webhooks, one for each row of their table.

import { PAGE } from '../../contract/endpoint.ts';
import type { TypeOf } from '../../contract/shapes.ts';
import type { WEBHOOK_API } from '../../contract/webhook-api.ts';
import type { webhookList } from '../../contract/webhook-replies.ts';
import { EVENT_TYPES } from '../../core/events.ts';
import { listEvents, redeliverEvent } from '../../flow/events/list-events.ts';
import {
  createWebhook,
  listMerchantWebhooks,
  removeWebhook,
  rotateWebhookSecret,
  type WebhookView,
} from '../../flow/events/webhooks.ts';
import type { MerchantHandlers } from '../operation.ts';
import { isoTime } from './transaction-replies.ts';

export const WEBHOOK_HANDLERS: Pick<MerchantHandlers, keyof typeof WEBHOOK_API> = {
  async listEvents({ ctx, context, caller }, body) {
    const page = {
      merchantId: caller.merchantId,
      limit: body.limit ?? PAGE.usual,
      startingAfter: body.starting_after,
      object: body.object,
      type: body.type,
      createdGteMs: body.created_gte,
      createdLtMs: body.created_lt,
    };
    const { data, hasMore } = await context.lists(caller.merchantId, () => listEvents(ctx, page));
    return { success: true, data, has_more: hasMore };
  },

  async createWebhook({ ctx, caller }, body) {
    const webhook = await createWebhook(ctx, { merchantId: caller.merchantId, url: body.url, events: body.events });
    return { success: true, webhook };
  },

  async listWebhooks({ ctx, caller }, body) {
    const page = { merchantId: caller.merchantId, limit: body.limit ?? PAGE.usual, startingAfter: body.starting_after };
    const { data, hasMore } = await listMerchantWebhooks(ctx, page);
    return { success: true, data: data.map(webhookReply), has_more: hasMore };
  },

  async deleteWebhook({ ctx, caller }, body) {
    await removeWebhook(ctx, { merchantId: caller.merchantId, webhookId: body.webhook_id });
    return { success: true };
  },

  async rotateWebhookSecret({ ctx, caller }, body) {
    const webhook = await rotateWebhookSecret(ctx, { merchantId: caller.merchantId, webhookId: body.webhook_id });
    return { success: true, webhook };
  },

  async redeliverEvent({ ctx, caller }, body) {
    const webhooks = await redeliverEvent(ctx, { merchantId: caller.merchantId, eventId: body.event_id });
    return { success: true, webhooks };
  },
};

function webhookReply({ id, url, events, enabled, createdAtMs }: WebhookView): TypeOf<typeof webhookList>['data'][number] {
  return { id, url, events: events ?? EVENT_TYPES, enabled, created_at: isoTime(createdAtMs) };
}
