// Calls to addresses that merchants and customers chose. Who chooses them may be an attacker who wants this server to call its own network, to
// wait for ever or to fill its memory: so the address is checked that is really connected to, and time, headers and body are bounded.
import type { LookupAddress } from 'node:dns';
import type { LookupFunction } from 'node:net';
import {
  FAILED_HERE,
  isOneOf,
  type Outbound,
  type OutboundFailure,
  type OutboundRequest,
  type OutboundResult,
} from '../../core/outbound.ts';
import { AnswerTooLong, type Connections, openConnections } from './connections.ts';
import { TakenTooMuch, UNWATCHED, type Watch } from './handshake-costs.ts';
import { type OutboundPolicy, readUrl, urlProblem } from './policy.ts';

/** What follows a status that says all is only to be shown: whoever calls has others waiting. */
const REST_WITHIN_MS = 1_000;

/** In which the body of an answer is held. */
const MOST_PARTS = 32;

/** More are no host's: each that refuses costs a connection, here and wherever it leads. */
const MOST_ADDRESSES = 32;

class AddressNotAllowed extends Error {
  /** What the URL must be. */
  readonly problem: string;
  constructor(message: string, problem: string) {
    super(message);
    this.problem = problem;
  }
}

/**
 * @param policy what may be called; redirects are never followed, whatever it says
 * @param watch hears what is computed with what comes over TLS
 */
export function createOutbound(policy: OutboundPolicy, watch: Watch = UNWATCHED): Outbound {
  /** All of its addresses, when all may be connected to: a name of which one is private is somebody's trick. */
  async function allowedAddresses(name: string): Promise<readonly LookupAddress[]> {
    const found = await policy.find(name);
    if (found.length > MOST_ADDRESSES)
      throw new AddressNotAllowed(
        `${name} has ${found.length} addresses, more than ${MOST_ADDRESSES}`,
        `a URL whose host has at most ${MOST_ADDRESSES} addresses`,
      );
    const bad = found.find(({ address }) => !policy.allows(address));
    if (bad === undefined) return found;
    throw new AddressNotAllowed(
      `${name} leads to ${bad.address}, which is not on the public internet`,
      'a URL whose host is on the public internet',
    );
  }
  let lookups = 0;
  // what this gives is connected to, and nothing else: there is no second look at the name. Node asks for all addresses, and tries them in turn
  const lookup: LookupFunction = (name, _options, done) => {
    const turn = lookups++;
    allowedAddresses(name).then(
      (found) => done(null, [...beginningAt(turn, found, 4), ...beginningAt(turn, found, 6)]),
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
  let opened: Promise<Connections> | null = null;
  let open: Connections | null = null;

  /** @returns whether there is more of the answer than what was read */
  async function ask(
    url: URL,
    { method, headers, body, mostBytes, ...whose }: OutboundRequest,
    { signal, answer, onStatus }: Asking,
  ): Promise<boolean> {
    opened ??= openConnections(lookup, watch);
    open = await opened;
    // nothing is decompressed, so a small body cannot become a large one
    const whole = { ...headers, 'accept-encoding': 'identity' };
    const asked = { method, headers: whole, body: body ?? null, signal };
    const { statusCode, headers: response, body: coming } = await open.request(url, whose, asked);
    onStatus(statusCode, retryAfter(response['retry-after']));
    return read(coming, answer, mostBytes);
  }

  async function call(asked: OutboundRequest): Promise<OutboundResult> {
    const began = performance.now();
    const tookMs = (): number => Math.round(performance.now() - began);
    const url = readUrl(policy, asked.url);
    if (typeof url === 'string') return { kind: 'failed', failure: 'url_not_allowed', reason: `it must be ${url}`, tookMs: 0 };
    const limit = new AbortController();
    const waited = (): number => open?.waitedMs(url, asked) ?? 0;
    const waitedBeforeMs = waited();
    const answer: Coming = { status: null, retryAfter: {}, parts: [] };
    const answered = (status: number, isCut: boolean): OutboundResult => {
      const { parts, retryAfter: asks } = answer;
      return { kind: 'answered', status, body: Buffer.concat(parts), isCut, ...asks, tookMs: tookMs() };
    };
    const giveUp = (): void => limit.abort(new GivenUp());
    const timedOut = (): void => limit.abort(new TimedOut(asked.withinMs));
    const timers = [setTimeout(timedOut, asked.withinMs)];
    function onStatus(status: number, asks: RetryAfter): void {
      answer.status = status;
      answer.retryAfter = asks;
      if (isOneOf(asked.saysAll, status)) timers.push(setTimeout(timedOut, REST_WITHIN_MS));
    }
    if (asked.signal?.aborted === true) giveUp();
    asked.signal?.addEventListener('abort', giveUp, { once: true });
    try {
      // an abort does not end the resolution of a name, so nothing waits for it
      const isCut = await Promise.race([ask(url, asked, { signal: limit.signal, answer, onStatus }), aborted(limit.signal)]);
      return answered(answer.status as number, isCut);
    } catch (error) {
      const { status } = answer;
      if (status !== null && isOneOf(asked.saysAll, status)) return answered(status, true);
      return { kind: 'failed', ...failureOf(error as Error), tookMs: tookMs(), ...waitedFor(waited() - waitedBeforeMs) };
    } finally {
      for (const timer of timers) clearTimeout(timer);
      asked.signal?.removeEventListener('abort', giveUp);
    }
  }

  return {
    call,
    problemOf: (text) => urlProblem(policy, text),
    async addressProblemOf(text) {
      const url = readUrl(policy, text);
      if (typeof url === 'string') return url;
      try {
        await allowedAddresses(url.hostname);
        return null;
      } catch (error) {
        return error instanceof AddressNotAllowed ? error.problem : null;
      }
    },
    close: async () => (await opened)?.close(),
  };
}

/** Those of a family, each in its turn as the first: there may be time for a few only, and those that lead nowhere may come first in the DNS. */
function beginningAt(turn: number, found: readonly LookupAddress[], family: number): readonly LookupAddress[] {
  const mine = found.filter((one) => one.family === family);
  const first = mine.length === 0 ? 0 : turn % mine.length;
  return [...mine.slice(first), ...mine.slice(0, first)];
}

class GivenUp extends Error {}
class TimedOut extends Error {
  constructor(withinMs: number) {
    super(`no whole answer within ${withinMs / 1000} s`);
  }
}

function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => {
    const fail = (): void => reject(signal.reason);
    if (signal.aborted) fail();
    else signal.addEventListener('abort', fail, { once: true });
  });
}

/** What has come of an answer so far. */
type Coming = { status: number | null; retryAfter: RetryAfter; readonly parts: Uint8Array[] };
type Asking = { readonly signal: AbortSignal; readonly answer: Coming; onStatus(status: number, asks: RetryAfter): void };
type Waited = { readonly waitedMs?: number };
/** What was held for calls to a server is forgotten where none is under way: then it is less than before. */
const waitedFor = (ms: number): Waited => (ms < 1 ? {} : { waitedMs: Math.round(ms) });
type RetryAfter = { readonly retryAfterMs?: number };

const ASCTIME = /^[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d{2}:\d{2}:\d{2} \d{4}$/;

/** RFC 9110 §10.2.3: a number of seconds, or a date in the form of §5.6.7; anything else asks for nothing. */
function retryAfter(header: string | string[] | undefined): RetryAfter {
  const text = String(header ?? '').trim();
  if (/^\d+$/.test(text)) return { retryAfterMs: Math.min(Number(text) * 1_000, Number.MAX_SAFE_INTEGER) };
  // the oldest of the three forms does not name its zone
  const date = ASCTIME.test(text) ? `${text} GMT` : text;
  const dateMs = date.endsWith(' GMT') ? Date.parse(date) : Number.NaN;
  return Number.isNaN(dateMs) ? {} : { retryAfterMs: Math.max(0, dateMs - Date.now()) };
}

/** @returns whether there is more than that */
async function read(body: AsyncIterable<Uint8Array>, { parts }: Coming, mostBytes: number): Promise<boolean> {
  let length = 0;
  for await (const part of body) {
    parts.push(part.subarray(0, mostBytes - length));
    // each of a byte is an object of a hundred, and there may be thousands in each of hundreds of answers
    if (parts.length > MOST_PARTS) parts.splice(0, parts.length, Buffer.concat(parts));
    length += part.length;
    // leaving the loop closes the connection
    if (length > mostBytes) return true;
  }
  return false;
}

/** Why a connection fails that is not there within its time, with its handshake. */
export const CONNECT_TIMEOUT = 'UND_ERR_CONNECT_TIMEOUT';

type Failed = { readonly failure: OutboundFailure; readonly reason: string };
type Cause = Error & { readonly code?: string; readonly errors?: readonly Cause[] };

/** Codes of errors, from the name to the answer's bytes. */
const FAILURES: readonly (readonly [RegExp, OutboundFailure])[] = [
  [/^(ENOTFOUND|ENODATA|ESERVFAIL|EREFUSED|ETIMEOUT|EAI_\w+|EBADNAME|EFORMERR)$/, 'host_not_found'],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'connection_failed'],
  // undici takes for granted that no status is below 100, and that nobody changes the protocol unasked
  [/^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|UND_ERR_RESPONSE|ERR_ASSERTION)/, 'malformed_answer'],
  // it may be another host of the merchant that took long: of this one nothing is known
  [/^ERR_TLS_HANDSHAKE_TOO_DEAR$/, 'connection_failed'],
  [/(CERT|SSL|TLS|_PROTOCOL|SELF_SIGNED|VERIFY|ISSUER|EPROTO)/, 'tls_failed'],
];

function failureOf(error: Cause): Failed {
  const cause = error.errors?.[0] ?? error;
  if (cause instanceof AddressNotAllowed) return { failure: 'address_not_allowed', reason: cause.message };
  if (cause instanceof TimedOut) return { failure: 'timed_out', reason: cause.message };
  if (cause instanceof GivenUp || cause.name === 'AbortError') return { failure: 'timed_out', reason: 'given up' };
  if (cause instanceof AnswerTooLong) return { failure: 'malformed_answer', reason: cause.message };
  if (cause instanceof TakenTooMuch) return { failure: FAILED_HERE, reason: cause.message };
  if (cause.name === 'HTTPParserError') return { failure: 'malformed_answer', reason: cause.message };
  const code = cause.code ?? '';
  const known = FAILURES.find(([pattern]) => pattern.test(code));
  return { failure: known?.[1] ?? 'connection_failed', reason: code === '' ? cause.message : code };
}
