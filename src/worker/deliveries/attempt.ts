// One attempt to deliver an event to an endpoint: sends it, and says what is to be written of it.

import type { OutboundResult } from '../../core/outbound.ts';
import { GONE, isDelivered, nextAttempt, type WebhookSender } from '../../core/webhooks.ts';
import type { Context } from '../../flow/context.ts';
import { type EventBody, eventBody } from '../../flow/events/body.ts';
import { secretsOf } from '../../flow/events/webhooks.ts';
import type { Attempt, Delivery } from '../../store/deliveries/deliveries.ts';
import type { Webhook } from '../../store/deliveries/webhooks.ts';

const ANSWER_KEPT = 1_024;
const LONGEST_ERROR = 300;

export type Made = {
  /** What the endpoint did; null = nothing was sent, because the event cannot be told: `trouble` says why. */
  readonly result: OutboundResult | null;
  readonly trouble: unknown;
  readonly made: Attempt;
};

/** Throws when nothing can be sent to the endpoint at all: its secret cannot be opened with our key. */
export async function attempt(
  ctx: Context,
  send: WebhookSender,
  { webhook, delivery, signal }: { readonly webhook: Webhook; readonly delivery: Delivery; readonly signal: AbortSignal },
): Promise<Made> {
  const { clock } = ctx.ports;
  const secrets = secretsOf(ctx, webhook);
  const atMs = clock.now();
  let body: EventBody;
  try {
    body = eventBody(ctx, delivery.event);
  } catch (trouble) {
    // the others of this endpoint are not to wait for it
    const failed = { atMs, tookMs: 0, status: null, error: kept(`unreadable: ${String(trouble)}`), answer: new Uint8Array() };
    return { result: null, trouble, made: { ...failed, ...consequences(ctx, delivery, null) } };
  }
  const result = await send({
    webhook: webhook.id,
    merchantId: webhook.merchantId,
    url: webhook.url,
    id: body.id,
    body: JSON.stringify(body),
    secrets,
    signal,
  });
  const known =
    result.kind === 'answered'
      ? { status: result.status, error: null, answer: result.body.subarray(0, ANSWER_KEPT) }
      : { status: null, error: kept(`${result.failure}: ${result.reason}`), answer: new Uint8Array() };
  return { result, trouble: null, made: { atMs, tookMs: result.tookMs, ...known, ...consequences(ctx, delivery, result) } };
}

/** What follows for the delivery. @param result null: it could not be sent */
function consequences(ctx: Context, { webhook, event, failures, asked }: Delivery, result: OutboundResult | null) {
  const { clock, rng } = ctx.ports;
  // it waits as it did: what it has waited for is busy here, and says nothing of when its endpoint is there
  if (result?.kind === 'failed' && result.hasNotBegun === true)
    return { webhook, eventId: event.id, failures: null, asked, isDelivered: false, againAtMs: clock.now(), disables: false };
  const disables = result?.kind === 'answered' && result.status === GONE;
  const isTaken = result !== null && isDelivered(result);
  const chance = (rng.bytes(1)[0] ?? 0) / 255;
  const askedMs = result?.kind === 'answered' ? result.retryAfterMs : 0;
  return {
    webhook,
    eventId: event.id,
    failures,
    asked,
    isDelivered: isTaken,
    againAtMs: isTaken || disables ? null : nextAttempt(failures + 1, clock.now(), chance, askedMs),
    disables,
  };
}

/** Without what the database does not take, or a terminal obeys: a stranger's server may have said it. */
function kept(error: string): string {
  return error.slice(0, LONGEST_ERROR).replaceAll(/\p{C}/gu, '?');
}
