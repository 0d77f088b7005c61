// `bursar listen`: prints a merchant's events as they happen, and forwards them to a program on this machine, signed like webhooks. What
// happened while it was off comes first; each event is passed on at least once, in the order in which it was written: what the program does not
// take is tried again until it does.
import { setTimeout as delay } from 'node:timers/promises';
import type { Command } from 'commander';
import { EVENT_TYPES, eventKey } from '../../../core/events.ts';
import type { OutboundResult } from '../../../core/outbound.ts';
import { isDelivered } from '../../../core/webhooks.ts';
import { createOutbound } from '../../../outside/outbound/outbound.ts';
import { ANYWHERE } from '../../../outside/outbound/policy.ts';
import { createWebhookSender } from '../../../outside/webhooks/sender.ts';
import { CommandFailed, calledWrongly, jsonLine, leaf, writeOut } from '../output.ts';
import { CallRefused } from './api-client.ts';
import { type Filter, type Message, streamOnce } from './event-stream.ts';
import { type ApiEvent, type EventPage, objectIn, objectOf } from './events.ts';
import { withProfile } from './login.ts';
import { type Cursor, listenSecret, openCursor, type Place } from './profile.ts';
import { openSession, type Session, signedOut } from './session.ts';

type ListenOptions = {
  readonly profile: string;
  readonly forwardTo?: string;
  readonly events?: string;
  readonly object?: string;
  readonly count?: string;
  readonly fromNow?: boolean;
  readonly json?: boolean;
};
type Forward = (event: ApiEvent, body: string) => Promise<OutboundResult>;
type Listener = {
  readonly session: Session;
  readonly filter: Filter;
  readonly cursor: Cursor;
  readonly forward: Forward | null;
  readonly json: boolean;
  /** Events left until it ends. */
  left: number;
  isFromNow: boolean;
  /** What it prints once its first stream is open: an event that is made from then on is told. */
  readonly opening: string;
};

/** The cursor before a merchant's first event. */
const BEFORE_ALL = '0';
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 10_000;
/** Between the tries of an event that the program did not take; each pause is twice the one before. */
const FIRST_FORWARD_PAUSE_MS = 1_000;
const LONGEST_FORWARD_PAUSE_MS = 10_000;
/** How far back events are told again where a place was lost: several processes write them, not in the order of their times. */
const TOLD_AGAIN_MS = 60_000;

/** Adds `listen`: the stream of `/stream_events`, printed and forwarded. Where it was is kept in the profile. */
export function addListenCommand(bursar: Command): void {
  withProfile(leaf(bursar, 'listen', 'Prints events as they happen, and forwards them to a program on this machine.'))
    .option('--forward-to <url>', 'where to send each event, signed like a webhook; host:port/path will do')
    .option('--events <types>', 'only these types, separated by commas')
    .option('--object <id>', 'only of this transaction or payout, or: transaction, payout')
    .option('--count <n>', 'end after this many events')
    .option('--from-now', 'leave out what happened since it last ran')
    .action(listen);
}

async function listen(options: ListenOptions): Promise<void> {
  const { profile, json = false, forwardTo, fromNow = false } = options;
  const object = options.object === undefined ? null : objectIn(options.object);
  const events = options.events === undefined ? null : typesIn(options.events);
  const left = options.count === undefined ? Number.POSITIVE_INFINITY : countIn(options.count);
  const target = forwardTo === undefined ? null : targetIn(forwardTo);
  const session = openSession(profile);
  const secret = listenSecret(profile);
  const cursor = openCursor(profile, [session.url, session.username, ...(events ?? []).toSorted(), object ?? '', target ?? '']);
  const forward = target === null ? null : forwarder(target, secret);
  const opening = json
    ? jsonLine({ listening: { url: session.url, username: session.username, forward_to: target, secret } })
    : `Listening to ${session.url} as ${session.username}${target === null ? '' : `, forwarding to ${target}`}.\nThe signing secret is ${secret}\n`;
  await follow({ session, filter: { events, object }, cursor, forward, json, left, isFromNow: fromNow, opening });
}

function typesIn(text: string): readonly string[] {
  const types = text.split(',').map((one) => one.trim());
  const unknown = types.find((one) => !EVENT_TYPES.includes(one));
  if (unknown !== undefined) throw calledWrongly(`--events: ${unknown} is not one of ${EVENT_TYPES.join(', ')}`);
  return types;
}

function countIn(text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw calledWrongly(`--count: ${text} is no whole number from 1`);
  return Number(text);
}

function targetIn(text: string): string {
  const url = /^https?:\/\//i.test(text) ? text : `http://${text}`;
  const isForeign = /^[a-z][\w+.-]*:\/\//i.test(text) && url !== text;
  if (isForeign || !URL.canParse(url) || new URL(url).username !== '')
    throw calledWrongly(`--forward-to: ${text} is no address; accepted is http://host:port/path or host:port/path`);
  return url;
}

function forwarder(url: string, secret: string): Forward {
  const sender = createWebhookSender(createOutbound(ANYWHERE));
  return (event, body) =>
    sender({
      webhook: 'listen',
      merchantId: null,
      url,
      id: event.id,
      body,
      secrets: [secret],
      signal: new AbortController().signal,
    });
}

/** Opens one connection after the other, each where the one before ended. The first one must succeed. */
async function follow(listener: Listener): Promise<void> {
  let pauseMs = FIRST_PAUSE_MS;
  let wasOpen = false;
  for (;;) {
    let isOpen = false;
    try {
      const place = listener.isFromNow ? null : listener.cursor.last();
      for await (const message of streamOnce(listener.session, listener.filter, place?.cursor ?? null)) {
        // asked on the open stream, which the server ends itself when its database is put back later
        if (!isOpen && place !== null && !(await isThere(listener.session, place))) {
          isOpen = true;
          await goBack(listener);
          break;
        }
        if (!wasOpen) await writeOut(listener.opening);
        if (!isOpen && wasOpen && pauseMs > FIRST_PAUSE_MS) tell('connected again');
        isOpen = true;
        wasOpen = true;
        pauseMs = FIRST_PAUSE_MS;
        if (await isLast(listener, message)) return;
      }
    } catch (error) {
      if (!(await mayGoOn(listener, error, wasOpen))) throw error;
    }
    if (isOpen) {
      // a server that ends each one at once is not asked without a pause
      await delay(FIRST_PAUSE_MS);
      continue;
    }
    if (pauseMs === FIRST_PAUSE_MS) tell('connection lost: trying again');
    await delay(pauseMs);
    pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
  }
}

const tell = (line: string): void => void process.stderr.write(`bursar: ${line}\n`);

/** Deals with one message; returns whether it was the last that was wanted. */
async function isLast(listener: Listener, { id, event, data }: Message): Promise<boolean> {
  if (event === 'end') {
    const { reason } = JSON.parse(data ?? '{}') as { reason?: string };
    if (reason === 'token_expired') await listener.session.renew();
    return false;
  }
  const told = data === null ? null : (JSON.parse(data) as ApiEvent);
  if (told !== null) {
    await pass(listener, told, data as string);
    listener.left -= 1;
  }
  listener.cursor.save(id, told === null ? { at: await firstTime(listener, id) } : { written: told.created_at });
  listener.isFromNow = false;
  return listener.left <= 0;
}

/** A listener that was told nothing yet must know where to go back to as well: the time of the newest event. */
async function firstTime({ session, cursor }: Listener, id: string): Promise<string | undefined> {
  if (id === BEFORE_ALL || cursor.last()?.at !== undefined) return undefined;
  return (await session.call<EventPage>('/list_events', { limit: 1 })).data[0]?.created_at;
}

/** Resolves when the program has taken the event, however long that takes; each answer that is not the one before is told. */
async function pass({ forward, json }: Listener, event: ApiEvent, body: string): Promise<void> {
  if (forward === null) return await show(event, null, json);
  let before: string | null = null;
  for (let pauseMs = FIRST_FORWARD_PAUSE_MS; ; pauseMs = Math.min(LONGEST_FORWARD_PAUSE_MS, pauseMs * 2)) {
    const result = await forward(event, body);
    const answer = result.kind === 'answered' ? String(result.status) : result.reason;
    if (answer !== before) await show(event, result, json);
    if (isDelivered(result)) return;
    if (before === null)
      tell(
        `${event.id} was not taken (${answer}): it is tried again until it is, and what comes after it waits; --from-now leaves it out`,
      );
    before = answer;
    await delay(pauseMs);
  }
}

/** @param result null: it is not forwarded */
async function show(event: ApiEvent, result: OutboundResult | null, json: boolean): Promise<void> {
  if (json) {
    const forwarded = result === null ? null : answerOf(result);
    await writeOut(jsonLine({ event, forwarded }));
    return;
  }
  const said = result === null ? '' : `  ${inWords(result)}`;
  await writeOut(`${event.created_at}  ${event.type}  ${objectOf(event)}  ${event.id}${said}\n`);
}

function answerOf(result: OutboundResult) {
  const tookMs = Math.round(result.tookMs);
  if (result.kind === 'answered') return { ok: isDelivered(result), status: result.status, error: null, took_ms: tookMs };
  return { ok: false, status: null, error: result.reason, took_ms: tookMs };
}

function inWords(result: OutboundResult): string {
  if (result.kind === 'failed') return `not taken: ${result.reason}`;
  return `${isDelivered(result) ? 'taken' : 'refused'}: ${result.status} in ${Math.round(result.tookMs)} ms`;
}

/** Whether another connection may do better; what it needs is done. */
async function mayGoOn(listener: Listener, error: unknown, wasOpen: boolean): Promise<boolean> {
  if (!(error instanceof CallRefused)) return isUnreachable(error) && wasOpen;
  if (error.status === 401) {
    if (error.code !== 'token_expired') throw signedOut(error);
    try {
      await listener.session.renew();
    } catch (again) {
      if (!isUnreachable(again) || !wasOpen) throw again;
    }
    return true;
  }
  if (error.code === 'not_found' && !listener.isFromNow) {
    await goBack(listener);
    return true;
  }
  // a server that is being stopped may fail in any way, and what stands before it knows no such page meanwhile
  if (error.status !== 429 && error.status !== 503) return (error.status >= 500 || error.status === 404) && wasOpen;
  if (error.retryAfterSeconds > 0) await delay(Math.min(error.retryAfterSeconds * 1000, LONGEST_PAUSE_MS));
  return true;
}

/** Whether the server still has the event of this place: a database that was put back may have given its identifier to another one. */
async function isThere(session: Session, { cursor, written }: Place): Promise<boolean> {
  const key = eventKey(cursor);
  if (written === undefined || key === null) return true;
  const until = new Date(Date.parse(written) + 1).toISOString();
  const asked = { object: key.objectId, created_gte: written, created_lt: until, limit: 100 };
  return (await session.call<EventPage>('/list_events', asked)).data.some(({ id }) => id === cursor);
}

/** The database is another, or an older one of the same: what it has since shortly before the last event is told, some of it again. */
async function goBack(listener: Listener): Promise<void> {
  const unknown = 'the server does not know where this listener was (another database?)';
  const at = listener.cursor.last()?.at;
  if (at === undefined) {
    tell(`${unknown}: it begins now`);
    listener.isFromNow = true;
    return;
  }
  const before = new Date(Date.parse(at) - TOLD_AGAIN_MS).toISOString();
  const [last] = (await listener.session.call<EventPage>('/list_events', { limit: 1, created_lt: before })).data;
  tell(`${unknown}: it goes on from before ${at}, and tells some events again`);
  listener.cursor.save(last?.id ?? BEFORE_ALL);
}

const isUnreachable = (error: unknown): boolean => error instanceof CommandFailed && error.code === 'unreachable';
