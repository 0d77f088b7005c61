// One attempt to deliver an event to an endpoint: sends it, and says what is to be written of it.

import type { OutboundResult } from '../../core/outbound.ts';
import { GONE, isDelivered, nextAttempt, type WebhookSender } from '../../core/webhooks.ts';
import type { Context } from '../../flow/context.ts';
import { eventBody } from '../../flow/events/event-body.ts';
import { secretsOf } from '../../flow/events/webhooks.ts';
import type { Attempt, Delivery } from '../../store/deliveries/deliveries.ts';
import type { Webhook } from '../../store/deliveries/webhooks.ts';

const ANSWER_KEPT = 1_024;
const LONGEST_ERROR = 300;

/** Throws when nothing could be sent: the secret cannot be opened with our key. */
export async function attempt(
  ctx: Context,
  send: WebhookSender,
  { webhook, delivery, signal }: { readonly webhook: Webhook; readonly delivery: Delivery; readonly signal: AbortSignal },
): Promise<{ readonly result: OutboundResult; readonly made: Attempt }> {
  const { clock, rng } = ctx.ports;
  const { event, failures, asked } = delivery;
  const body = eventBody(ctx, event);
  const atMs = clock.now();
  const secrets = secretsOf(ctx, webhook);
  const result = await send({ url: webhook.url, id: body.id, body: JSON.stringify(body), secrets, signal });
  const status = result.kind === 'answered' ? result.status : null;
  const isOver = isDelivered(result) || status === GONE;
  const chance = (rng.bytes(1)[0] ?? 0) / 255;
  const made = {
    webhook: webhook.number,
    eventId: event.id,
    atMs,
    tookMs: result.tookMs,
    status,
    error: result.kind === 'answered' ? null : `${result.failure}: ${result.reason}`.slice(0, LONGEST_ERROR),
    answer: result.kind === 'answered' ? result.body.subarray(0, ANSWER_KEPT) : new Uint8Array(),
    failures,
    asked,
    isDelivered: isDelivered(result),
    againAtMs: isOver ? null : nextAttempt(failures + 1, clock.now(), chance),
    disables: status === GONE,
  };
  return { result, made };
}
