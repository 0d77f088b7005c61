// A merchant's endpoints: made, listed, removed, and given another secret. A secret is shown when it is made and never again.
import { setTimeout as delay } from 'node:timers/promises';
import { sortableId } from '../../core/ids.ts';
import { Refusal } from '../../core/refusal.ts';
import { openText, sealText } from '../../core/sealed-text.ts';
import { FORMER_SECRET_MS, MOST_WEBHOOKS, SECRET_BYTES } from '../../core/webhooks.ts';
import { eventWriters } from '../../store/deliveries/event-tail.ts';
import {
  deleteWebhook,
  type FormerSecret,
  insertWebhook,
  listWebhooks,
  lockWebhook,
  lockWebhooks,
  setSecrets,
  type Webhook,
} from '../../store/deliveries/webhooks.ts';
import type { Context } from '../context.ts';

/** More rotations within a day end the oldest ones early: a request has room for this many signatures. */
const MOST_FORMER_SECRETS = 32;
/** Whoever writes events is through in milliseconds; one that hangs must not keep a merchant waiting. */
const WRITTEN_WITHIN_MS = 5_000;
const FIRST_LOOK_MS = 5;
const LONGEST_LOOK_MS = 200;

export type ShownSecret = { readonly id: string; readonly url: string; readonly secret: string };
export type WebhookView = Pick<Webhook, 'id' | 'url' | 'events' | 'enabled' | 'createdAtMs'>;

/**
 * Whether a URL may become an endpoint: its form, and where its host leads now. It asks the DNS, so it comes before the transaction.
 * @throws Refusal invalid_request
 */
export async function checkWebhookUrl(ctx: Context, url: string): Promise<void> {
  const problem = await ctx.ports.outbound.addressProblemOf(url);
  if (problem !== null) throw new Refusal('invalid_request', { message: `url must be ${problem}.`, param: 'url' });
}

/**
 * Makes an endpoint for events from now on; its URL has been checked.
 * @param made.events null = every type
 * @throws Refusal too_many_webhooks
 */
export async function createWebhook(
  ctx: Context,
  made: { readonly merchantId: bigint; readonly url: string; readonly events: readonly string[] | null },
): Promise<ShownSecret> {
  const { clock, rng } = ctx.ports;
  const createdAtMs = clock.now();
  const id = sortableId('wh_', createdAtMs, rng.bytes(10));
  const secret = newSecret(ctx);
  await ctx.db.transaction(async (sql) => {
    if ((await lockWebhooks(sql, made.merchantId)).length >= MOST_WEBHOOKS) throw new Refusal('too_many_webhooks');
    await insertWebhook(sql, { ...made, id, createdAtMs, secret: sealText(ctx.ports.webhookSealing, secret, id) });
  });
  return { id, url: made.url, secret };
}

/**
 * Waits, for a moment, until everything is committed that was being written when an endpoint was made: it is not sent there, so whoever reads
 * the list of events after the answer must find it there. It never throws: the endpoint is made.
 */
export async function awaitEventsBefore(ctx: Context): Promise<void> {
  const began = performance.now();
  try {
    let writers = await eventWriters(ctx.db);
    for (let pauseMs = FIRST_LOOK_MS; writers.length > 0 && performance.now() - began < WRITTEN_WITHIN_MS; ) {
      await delay(pauseMs);
      pauseMs = Math.min(LONGEST_LOOK_MS, pauseMs * 2);
      const now = new Set(await eventWriters(ctx.db));
      writers = writers.filter((one) => now.has(one));
    }
  } catch {
    // a database that is away says so with the next call
  }
}

/** A page of the merchant's endpoints, newest first. @throws Refusal not_found for a `startingAfter` that is none of them */
export async function listMerchantWebhooks(
  ctx: Context,
  page: { readonly merchantId: bigint; readonly limit: number; readonly startingAfter: string | null },
): Promise<{ readonly data: readonly WebhookView[]; readonly hasMore: boolean }> {
  const all = await listWebhooks(ctx.db, page.merchantId);
  const after = page.startingAfter === null ? -1 : all.findIndex(({ id }) => id === page.startingAfter);
  if (page.startingAfter !== null && after === -1) throw noSuch('starting_after');
  const rest = all.slice(after + 1);
  return { data: rest.slice(0, page.limit), hasMore: rest.length > page.limit };
}

type Named = { readonly merchantId: bigint; readonly webhookId: string };

/** What waits for it is not delivered any more. @throws Refusal not_found, for another merchant's too */
export async function removeWebhook(ctx: Context, named: Named): Promise<void> {
  await ctx.db.transaction(async (sql) => {
    const found = await lockWebhook(sql, named.merchantId, named.webhookId);
    if (found === null) throw noSuch('webhook_id');
    await deleteWebhook(sql, found.number);
  });
}

/** Gives it another secret; the ones before sign along for 24 hours. @throws Refusal not_found, for another merchant's too */
export async function rotateWebhookSecret(ctx: Context, named: Named): Promise<ShownSecret> {
  const secret = newSecret(ctx);
  return ctx.db.transaction(async (sql) => {
    const found = await lockWebhook(sql, named.merchantId, named.webhookId);
    if (found === null) throw noSuch('webhook_id');
    const nowMs = ctx.ports.clock.now();
    const former = [{ secret: found.secret, until: nowMs + FORMER_SECRET_MS }, ...valid(found.formerSecrets, nowMs)];
    const sealed = sealText(ctx.ports.webhookSealing, secret, found.id);
    await setSecrets(sql, found.number, sealed, former.slice(0, MOST_FORMER_SECRETS));
    return { id: found.id, url: found.url, secret };
  });
}

/** Every secret that signs now, the present one first. Throws when they cannot be opened with this key. */
export function secretsOf(ctx: Pick<Context, 'ports'>, { id, secret, formerSecrets }: Webhook): readonly string[] {
  const { webhookSealing, clock } = ctx.ports;
  const former = valid(formerSecrets, clock.now()).map((one) => one.secret);
  return [secret, ...former].map((sealed) => openText(webhookSealing, sealed, id));
}

const valid = (former: readonly FormerSecret[], nowMs: number): readonly FormerSecret[] =>
  former.filter(({ until }) => until > nowMs);

const noSuch = (param: string): Refusal => new Refusal('not_found', { message: 'There is no such webhook.', param });

function newSecret({ ports }: Context): string {
  return `whsec_${btoa(String.fromCharCode(...ports.rng.bytes(SECRET_BYTES)))}`;
}
