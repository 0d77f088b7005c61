// Open streams of events (server-sent events, WHATWG HTML §9.2). A reader that is quick enough gets each event as it is written, the same text
// for all; one that is not is left alone until it has read, and then reads on from the database, so that it costs no memory. This file has its
// own timer, because a silent stream must still show that it lives, and end with its token.
import type { ServerResponse } from 'node:http';
import { Refusal } from '../core/refusal.ts';
import {
  cursorAfter,
  type EventTail,
  isWanted,
  nextEvents,
  type StreamFilter,
  type ToldEvent,
  toldEvent,
  type WrittenEvent,
} from '../flow/events/stream.ts';
import type { Caller } from '../flow/sign-in/sign-in.ts';
import type { ServerContext } from './server-context.ts';
import { createPlaces, STREAM_LIMITS } from './stream-places.ts';
import { untilTaken } from './written-in-pieces.ts';

/** A stream that says nothing else says this often that it lives. */
export const HEARTBEAT_MS = 15_000;
/** How often tokens are compared with the clock. */
const LOOK_MS = 5_000;
/** How many tokens are asked about at a time, when many may have been revoked. */
const ASKED_AT_ONCE = 4;

/** Why a stream ended; its client opens another one, with a new token where it needs one. */
export type EndReason =
  | 'token_expired'
  | 'invalid_token'
  | 'account_suspended'
  | 'insufficient_permissions'
  | 'server_closing'
  | 'overloaded';

type Stream = {
  readonly filter: StreamFilter;
  readonly caller: Caller;
  readonly token: string;
  readonly requestId: string;
  readonly response: ServerResponse;
  readonly gone: AbortSignal;
  /** The number up to which it was told everything; while it is live, that of its last event at least. */
  position: bigint;
  /** Told as events are written; otherwise it reads by itself. */
  isLive: boolean;
  isReading: boolean;
  isOver: boolean;
  /** Gives its place back, whether or not its client has taken the end of the answer. */
  readonly leave: () => void;
  /** The last event that it was not told, because it does not want it, and nothing after it: its client need not come back to before that. */
  passed: WrittenEvent | null;
};

export type StreamRequest = Pick<Stream, 'filter' | 'caller' | 'token' | 'requestId' | 'response' | 'gone' | 'position'>;

export type EventStreams = {
  /** Takes a place; returns what gives it back. Refused as by {@link createPlaces}, and while the server closes. */
  reserve(merchantId: bigint): () => void;
  /** Begins to tell events; the head of the answer is written. Ends by itself; `release` is called then. */
  start(request: StreamRequest, release: () => void): void;
};

/**
 * A cursor alone: it is no event of ours, and moves where its client comes back to. It has data and a name, because clients pass over what has no
 * data (some with its id, against the standard), and give what has no name to whoever listens to everything.
 */
export const placeAt = (cursor: string): string => `id: ${cursor}\nevent: position\ndata: {}\n\n`;
const text = ({ cursor, type, json }: ToldEvent): string => `id: ${cursor}\nevent: ${type}\ndata: ${json}\n\n`;

/** @param tail who tells what is written */
export function createEventStreams(context: ServerContext, tail: EventTail): EventStreams {
  const { ctx, authenticator, closing } = context;
  const streams = new Map<bigint, Set<Stream>>();
  const takePlace = createPlaces(context.streamLimits ?? STREAM_LIMITS, 'event streams of a merchant', endOneOf);
  let timer: NodeJS.Timeout | null = null;
  let lastHeartbeatMs = 0;

  const every = (): readonly Stream[] => [...streams.values()].flatMap((of) => [...of]);

  function reserve(merchantId: bigint): () => void {
    if (closing.aborted) throw new Refusal('overloaded');
    return takePlace(merchantId);
  }

  /** The one that has been open for longest: its client goes on where it was, once there is a place. */
  function endOneOf(merchantId: bigint): boolean {
    const [oldest] = streams.get(merchantId) ?? [];
    if (oldest === undefined) return false;
    end(oldest, 'overloaded');
    oldest.leave();
    return true;
  }

  function start(request: StreamRequest, release: () => void): void {
    const stream: Stream = { ...request, isLive: false, isReading: false, isOver: false, leave, passed: null };
    const { merchantId } = stream.filter;
    const of = streams.get(merchantId) ?? new Set();
    streams.set(merchantId, of.add(stream));
    timer ??= startTimer();
    let isLeft = false;
    function leave(): void {
      if (isLeft) return;
      isLeft = true;
      stream.isOver = true;
      stream.gone.removeEventListener('abort', goneAway);
      of.delete(stream);
      if (of.size === 0 && streams.get(merchantId) === of) streams.delete(merchantId);
      if (streams.size === 0 && timer !== null) {
        clearInterval(timer);
        timer = null;
      }
      release();
    }
    // whoever closed its own side does not read any more; an answer that waits for others on its connection is never closed itself
    function goneAway(): void {
      stream.response.end();
      leave();
    }
    stream.response.once('close', leave);
    stream.gone.addEventListener('abort', goneAway);
    // a client that left before the head of the answer has closed it already
    if (stream.gone.aborted || stream.response.closed) goneAway();
    else if (closing.aborted) end(stream, 'server_closing');
    else void catchUp(stream);
  }

  /** Says why, and ends the answer. */
  function end(stream: Stream, reason: EndReason): void {
    if (stream.isOver) return;
    stream.isOver = true;
    stream.response.end(`event: end\ndata: ${JSON.stringify({ reason })}\n\n`);
  }

  /** Reads from the database until nothing is left, as fast as the client takes it; then the stream is live. */
  async function catchUp(stream: Stream): Promise<void> {
    if (stream.isReading) return;
    stream.isReading = true;
    try {
      while (!stream.isOver) {
        await untilTaken(stream.response);
        const to = tail.settled();
        if (to === null || stream.isOver) return;
        if (stream.position >= to) {
          stream.isLive = true;
          tellPlace(stream);
          return;
        }
        const range = { after: stream.position, to };
        const { merchantId } = stream.filter;
        const { events, position, last } = await context.lists(merchantId, () => nextEvents(ctx, stream.filter, range));
        if (isExpired(stream)) return end(stream, 'token_expired');
        for (const event of events) write(stream, event.id, text(event));
        stream.position = position;
        if (last !== null && last.id !== events.at(-1)?.id) stream.passed = last;
      }
    } catch (error) {
      context.report({ requestId: stream.requestId, path: '/stream_events', error }, 'a stream of events could not go on');
      end(stream, 'overloaded');
    } finally {
      stream.isReading = false;
    }
  }

  function write(stream: Stream, id: bigint, words: string): boolean {
    if (stream.isOver) return true;
    stream.position = id;
    stream.passed = null;
    return stream.response.write(words);
  }

  /** Tells how far a stream is whose client was told nothing of the last events. @returns whether there was anything to say */
  function tellPlace(stream: Stream): boolean {
    if (stream.passed === null || stream.isOver) return false;
    stream.response.write(placeAt(cursorAfter(stream.passed)));
    stream.passed = null;
    return true;
  }

  const isExpired = ({ caller }: Stream): boolean => context.now() >= caller.expiresAtMs;

  tail.listen({
    told(_upTo, events) {
      for (const event of events) tell(event);
      for (const stream of events.length === 0 ? every() : []) if (!stream.isLive) void catchUp(stream);
    },
    restarted() {
      for (const stream of every()) end(stream, 'server_closing');
    },
  });

  function tell(event: WrittenEvent): void {
    let words: string | null = null;
    for (const stream of streams.get(event.merchantId) ?? []) {
      if (!stream.isLive || event.id <= stream.position) continue;
      if (!isWanted(stream.filter, event)) {
        stream.passed = event;
        continue;
      }
      if (isExpired(stream)) {
        end(stream, 'token_expired');
        continue;
      }
      words ??= text(toldEvent(ctx, event));
      if (write(stream, event.id, words)) continue;
      stream.isLive = false;
      void catchUp(stream);
    }
  }

  function startTimer(): NodeJS.Timeout {
    lastHeartbeatMs = performance.now();
    return setInterval(() => {
      const isBeat = performance.now() - lastHeartbeatMs >= HEARTBEAT_MS - LOOK_MS / 2;
      if (isBeat) lastHeartbeatMs = performance.now();
      for (const stream of every()) {
        if (isExpired(stream)) end(stream, 'token_expired');
        else if (isBeat && !stream.isOver && stream.response.writableLength === 0 && !tellPlace(stream))
          stream.response.write(':\n\n');
      }
    }, LOOK_MS).unref();
  }

  /** Asks about each token that may have been revoked, and ends its streams if it was. */
  async function askAgain(concerned: readonly Stream[]): Promise<void> {
    const byToken = Map.groupBy(concerned, ({ token }) => token);
    const left = [...byToken];
    async function askInTurn(): Promise<void> {
      for (let next = left.pop(); next !== undefined; next = left.pop()) {
        const reason = await endedBecause(next[0]);
        if (reason !== null) for (const stream of next[1]) end(stream, reason);
      }
    }
    await Promise.all(Array.from({ length: ASKED_AT_ONCE }, askInTurn));
  }

  /** Why this token's streams must end; null = they may go on. A database that does not answer says nothing: it tells when it is back. */
  async function endedBecause(token: string): Promise<EndReason | null> {
    try {
      const caller = await authenticator.authenticateNow(token);
      if (caller.suspended) return 'account_suspended';
      return caller.scopes.has('read') ? null : 'insufficient_permissions';
    } catch (error) {
      if (!(error instanceof Refusal)) return null;
      return error.code === 'token_expired' ? 'token_expired' : 'invalid_token';
    }
  }

  authenticator.watch((concerns) => {
    const concerned = every().filter(({ caller }) => concerns(caller));
    if (concerned.length > 0) void askAgain(concerned);
  });
  closing.addEventListener('abort', () => {
    for (const stream of every()) end(stream, 'server_closing');
  });
  return { reserve, start };
}
