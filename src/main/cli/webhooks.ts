// `bursar webhook list|show|resend`: the endpoints of all merchants, what they did not take, and having it delivered again.
import type { Command } from 'commander';
import { eventId } from '../../core/events.ts';
import { ATTEMPTS_KEPT_MS } from '../../core/webhooks.ts';
import { redeliverAll } from '../../flow/events/redelivery.ts';
import {
  type EndpointAttempt,
  type EndpointState,
  lastAttempts,
  listEndpoints,
  type MadeAttempt,
  MOST_COUNTED,
  readEndpoint,
} from '../../store/deliveries/failing.ts';
import { CommandFailed, group, leaf, print, table } from './output.ts';
import { withBooks } from './service-access.ts';

type JsonOption = { readonly json?: boolean };
const LISTED = 1_000;
const ATTEMPTS_SHOWN = 20;
/** Of an answer, in a table. */
const ANSWER_SHOWN = 60;

/** Adds `webhook list|show|resend`, for the operator: they read and change the database, and ask no API. */
export function addWebhookCommands(bursar: Command): void {
  const webhook = group(bursar, 'webhook', "Merchants' endpoints, and what they did not take.");
  leaf(webhook, 'list', 'Lists the endpoints of all merchants, the newest first.')
    .option('--failing', 'only those whose last attempt failed, or that were disabled by a 410')
    .option('--merchant <affiliate_id>', 'only those of one merchant')
    .action(list);
  leaf(webhook, 'show <webhook_id>', 'Shows an endpoint with its last attempts, which are kept for 30 days.').action(show);
  leaf(
    webhook,
    'resend <webhook_id>',
    'Delivers again what waits for an endpoint, and what was given up in the last 30 days.',
  ).action(resend);
}

async function list({ json, failing = false, merchant }: JsonOption & { failing?: boolean; merchant?: string }): Promise<void> {
  const wanted = { failing, affiliateId: merchant ?? null, limit: LISTED };
  const found = await withBooks((ctx) => listEndpoints(ctx.db, wanted));
  const head = ['webhook', 'merchant', 'state', 'waiting', 'oldest', 'last attempt', 'answer', 'url'];
  const rows = found.map((one) => [
    one.id,
    one.affiliateId,
    stateOf(one),
    counted(one),
    timeOr(one.oldestAtMs),
    timeOr(one.last?.atMs),
    one.last === null ? '-' : answerOf(one.last),
    one.url,
  ]);
  const none = failing ? 'No webhook fails.' : 'There is no webhook.';
  print(json, { data: found.map(onTheWire) }, rows.length === 0 ? [none] : table(head, rows));
}

async function show(webhookId: string, { json }: JsonOption): Promise<void> {
  const { found, attempts } = await withBooks(async (ctx) => {
    const endpoint = await known(readEndpoint(ctx.db, webhookId), webhookId);
    const sinceMs = ctx.ports.clock.now() - ATTEMPTS_KEPT_MS;
    return {
      found: endpoint,
      attempts: await lastAttempts(ctx.db, { webhook: endpoint.number, sinceMs, limit: ATTEMPTS_SHOWN }),
    };
  });
  const facts: readonly (readonly [string, string])[] = [
    ['webhook', `${found.id}, ${stateOf(found)}`],
    ['merchant', found.affiliateId],
    ['url', found.url],
    ['events', found.events?.join(', ') ?? 'all'],
    ['waiting', `${counted(found)}${found.oldestAtMs === null ? '' : `, the oldest since ${timeOr(found.oldestAtMs)}`}`],
    ['next', found.dueAtMs === null ? '-' : nextOf(found.dueAtMs)],
  ];
  const rows = attempts.map((one) => [
    timeOr(one.atMs),
    answerOf(one),
    `${one.tookMs} ms`,
    one.type,
    eventId(one),
    printable(one.answer).slice(0, ANSWER_SHOWN),
  ]);
  const resends = found.enabled ? [`bursar webhook resend ${found.id} delivers again what it did not take.`] : [];
  print(json, { ...onTheWire(found), attempts: attempts.map(attemptOnTheWire) }, [
    ...facts.map(([name, text]) => `${name.padEnd(12)}${text}`),
    '',
    ...(rows.length === 0
      ? ['Nothing was sent to it in the last 30 days.']
      : table(['at', 'answer', 'took', 'type', 'event', 'said'], rows)),
    ...resends,
  ]);
}

async function resend(webhookId: string, { json }: JsonOption): Promise<void> {
  const { waiting, givenUp } = await withBooks(async (ctx) => {
    const { number, enabled } = await known(readEndpoint(ctx.db, webhookId), webhookId);
    if (!enabled)
      throw new CommandFailed(`${webhookId} is disabled: its receiver answered 410; its merchant makes another`, 'disabled');
    return redeliverAll(ctx, number);
  });
  print(json, { webhook_id: webhookId, waiting, given_up: givenUp }, [
    `${waiting + givenUp} events are delivered to ${webhookId} again: ${waiting} that waited, ${givenUp} that were given up.`,
  ]);
}

async function known(reading: Promise<EndpointState | null>, id: string): Promise<EndpointState> {
  const found = await reading;
  if (found === null) throw new CommandFailed(`there is no webhook ${id}`, 'not_found');
  return found;
}

const timeOr = (ms: number | null | undefined): string => (ms === null || ms === undefined ? '-' : new Date(ms).toISOString());
const nextOf = (dueAtMs: number): string => (Number.isFinite(dueAtMs) ? new Date(dueAtMs).toISOString() : 'at once');
const answerOf = ({ status, error }: MadeAttempt): string => (status === null ? (error ?? '-') : String(status));
const counted = ({ waiting }: EndpointState): string => (waiting >= MOST_COUNTED ? `${MOST_COUNTED} or more` : String(waiting));

function stateOf({ enabled, last }: EndpointState): 'disabled' | 'new' | 'well' | 'failing' {
  if (!enabled) return 'disabled';
  if (last === null) return 'new';
  return last.status !== null && last.status >= 200 && last.status < 300 ? 'well' : 'failing';
}

/** A stranger's bytes on an operator's terminal: without what moves the cursor or changes lines. */
function printable(answer: Uint8Array): string {
  return new TextDecoder()
    .decode(answer)
    .replaceAll(/[\p{C}\s]+/gu, ' ')
    .trim();
}

function onTheWire(one: EndpointState): object {
  return {
    webhook_id: one.id,
    affiliate_id: one.affiliateId,
    url: one.url,
    events: one.events,
    state: stateOf(one),
    waiting: one.waiting,
    oldest_waiting_since: one.oldestAtMs === null ? null : timeOr(one.oldestAtMs),
    next_attempt_at: one.dueAtMs === null || !Number.isFinite(one.dueAtMs) ? null : timeOr(one.dueAtMs),
    last_attempt: one.last === null ? null : { at: timeOr(one.last.atMs), status: one.last.status, error: one.last.error },
    created_at: timeOr(one.createdAtMs),
  };
}

function attemptOnTheWire(one: EndpointAttempt): object {
  return {
    at: timeOr(one.atMs),
    status: one.status,
    error: one.error,
    took_ms: one.tookMs,
    event_id: eventId(one),
    type: one.type,
    answer: printable(one.answer),
  };
}
