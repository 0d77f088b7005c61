// Calls to addresses that merchants and customers chose. Who chooses them may be an attacker who wants this server to call its own network, to
// wait for ever or to fill its memory: so the address is checked that is really connected to, and time, headers and body are bounded.
import type { LookupAddress } from 'node:dns';
import type { LookupFunction, Socket } from 'node:net';
import type { buildConnector, Dispatcher } from 'undici';
import type { Outbound, OutboundFailure, OutboundRequest, OutboundResult } from '../../core/outbound.ts';
import { passingContinue } from './interim-answers.ts';
import { type OutboundPolicy, readUrl } from './policy.ts';

const CONNECT_WITHIN_MS = 10_000;
const IDLE_CONNECTION_MS = 10_000;
/** What follows a status that says all is only to be shown: whoever calls has others waiting. */
const REST_WITHIN_MS = 1_000;
const MOST_HEADER_BYTES = 16 * 1024;
/** Of everything that comes in answer to one request: interim answers, a reason phrase and the extensions of chunks have no end by themselves. */
const MOST_ANSWER_BYTES = 1024 * 1024;

type Undici = typeof import('undici');

class AddressNotAllowed extends Error {}
class AnswerTooLong extends Error {}

/** @param policy what may be called; redirects are never followed, whatever it says */
export function createOutbound(policy: OutboundPolicy): Outbound {
  /** All of its addresses, when all may be connected to: a name of which one is private is somebody's trick. */
  async function allowedAddresses(name: string): Promise<readonly LookupAddress[]> {
    const found = await policy.find(name);
    const bad = found.find(({ address }) => !policy.allows(address));
    if (bad !== undefined) throw new AddressNotAllowed(`${name} leads to ${bad.address}, which is not on the public internet`);
    return found;
  }
  // what this gives is connected to, and nothing else: there is no second look at the name. Node asks for all addresses, and tries them in turn
  const lookup: LookupFunction = (name, _options, done) => {
    allowedAddresses(name).then(
      (found) => done(null, [...found]),
      (error: NodeJS.ErrnoException) => done(error, []),
    );
  };
  let loaded: Promise<{ readonly request: Undici['request']; readonly agent: Dispatcher }> | null = null;
  /** Loaded with the first call: most processes never make one. */
  async function load() {
    const { Agent, buildConnector, request } = await import('undici');
    const agent = new Agent({
      // HTTP/1.1 only: its headers and body are what is bounded here
      allowH2: false,
      connect: bounded(buildConnector({ allowH2: false, timeout: CONNECT_WITHIN_MS, lookup, maxCachedSessions: 100 })),
      // who calls bounds what is open; a bound for each host would let one merchant's URL hold up others' on a host that many use
      connections: null,
      pipelining: 1,
      keepAliveTimeout: IDLE_CONNECTION_MS,
      keepAliveMaxTimeout: IDLE_CONNECTION_MS,
      maxHeaderSize: MOST_HEADER_BYTES,
      // the whole call has one limit
      headersTimeout: 0,
      bodyTimeout: 0,
    });
    return { request, agent };
  }

  /** @returns whether there is more of the answer than what was read */
  async function ask(
    url: URL,
    { method, headers, body, mostBytes }: OutboundRequest,
    { signal, answer, onStatus }: Asking,
  ): Promise<boolean> {
    loaded ??= load();
    const { request, agent } = await loaded;
    // nothing is decompressed, so a small body cannot become a large one
    const whole = { ...headers, 'accept-encoding': 'identity' };
    const { statusCode, body: coming } = await request(url, {
      dispatcher: agent,
      signal,
      method,
      headers: whole,
      body: body ?? null,
    });
    onStatus(statusCode);
    return read(coming, answer, mostBytes);
  }

  async function call(asked: OutboundRequest): Promise<OutboundResult> {
    const began = performance.now();
    const tookMs = (): number => Math.round(performance.now() - began);
    const url = readUrl(policy, asked.url);
    if (typeof url === 'string') return { kind: 'failed', failure: 'url_not_allowed', reason: `it must be ${url}`, tookMs: 0 };
    const limit = new AbortController();
    const answer: Coming = { status: null, parts: [] };
    const answered = (status: number, isCut: boolean): OutboundResult => {
      return { kind: 'answered', status, body: Buffer.concat(answer.parts), isCut, tookMs: tookMs() };
    };
    const giveUp = (): void => limit.abort(new GivenUp());
    const timedOut = (): void => limit.abort(new TimedOut(asked.withinMs));
    const timers = [setTimeout(timedOut, asked.withinMs)];
    function onStatus(status: number): void {
      answer.status = status;
      if (asked.saysAll?.(status) === true) timers.push(setTimeout(timedOut, REST_WITHIN_MS));
    }
    if (asked.signal?.aborted === true) giveUp();
    asked.signal?.addEventListener('abort', giveUp, { once: true });
    try {
      // an abort does not end the resolution of a name, so nothing waits for it
      const isCut = await Promise.race([ask(url, asked, { signal: limit.signal, answer, onStatus }), aborted(limit.signal)]);
      return answered(answer.status as number, isCut);
    } catch (error) {
      const { status } = answer;
      if (status !== null && asked.saysAll?.(status) === true) return answered(status, true);
      return { kind: 'failed', ...failureOf(error as Error), tookMs: tookMs() };
    } finally {
      for (const timer of timers) clearTimeout(timer);
      asked.signal?.removeEventListener('abort', giveUp);
    }
  }

  return {
    call,
    problemOf(text) {
      const url = readUrl(policy, text);
      return typeof url === 'string' ? url : null;
    },
    async addressProblemOf(text) {
      const url = readUrl(policy, text);
      if (typeof url === 'string') return url;
      try {
        await allowedAddresses(url.hostname);
        return null;
      } catch (error) {
        return error instanceof AddressNotAllowed ? 'a URL whose host is on the public internet' : null;
      }
    },
    close: async () => (await loaded)?.agent.destroy(),
  };
}

/** Connections that end when what comes after a request is more than any answer is read of. */
function bounded(connect: buildConnector.connector): buildConnector.connector {
  return (options, done) =>
    connect(options, (...result) => {
      const [error, socket] = result;
      if (error === null) boundAnswers(socket);
      done(...result);
    });
}

function boundAnswers(socket: Socket): void {
  const read = socket.read.bind(socket);
  let [sent, received] = [0, 0];
  let passContinue = passingContinue();
  socket.read = (size?: number): unknown => {
    const part = read(size) as Buffer | null;
    // what was sent since begins another answer
    if (sent !== socket.bytesWritten) [sent, received, passContinue] = [socket.bytesWritten, 0, passingContinue()];
    received += part?.length ?? 0;
    if (part !== null) passContinue(part);
    if (received <= MOST_ANSWER_BYTES) return part;
    socket.destroy(new AnswerTooLong(`an answer of more than ${MOST_ANSWER_BYTES} bytes`));
    return null;
  };
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
type Coming = { status: number | null; readonly parts: Uint8Array[] };
type Asking = { readonly signal: AbortSignal; readonly answer: Coming; onStatus(status: number): void };

/** @returns whether there is more than that */
async function read(body: AsyncIterable<Uint8Array>, { parts }: Coming, mostBytes: number): Promise<boolean> {
  let length = 0;
  for await (const part of body) {
    parts.push(part.subarray(0, mostBytes - length));
    length += part.length;
    // leaving the loop closes the connection
    if (length > mostBytes) break;
  }
  return length > mostBytes;
}

type Failed = { readonly failure: OutboundFailure; readonly reason: string };
type Cause = Error & { readonly code?: string; readonly errors?: readonly Cause[] };

/** Codes of errors, from the name to the answer's bytes. */
const FAILURES: readonly (readonly [RegExp, OutboundFailure])[] = [
  [/^(ENOTFOUND|ENODATA|ESERVFAIL|EREFUSED|ETIMEOUT|EAI_\w+|EBADNAME|EFORMERR)$/, 'host_not_found'],
  [/^(UND_ERR_CONNECT_TIMEOUT|ETIMEDOUT)$/, 'connection_failed'],
  [/^(HPE_|UND_ERR_HEADERS_OVERFLOW|UND_ERR_RES_|UND_ERR_RESPONSE)/, 'malformed_answer'],
  [/(CERT|SSL|TLS|_PROTOCOL|SELF_SIGNED|VERIFY|ISSUER|EPROTO)/, 'tls_failed'],
];

function failureOf(error: Cause): Failed {
  const cause = error.errors?.[0] ?? error;
  if (cause instanceof AddressNotAllowed) return { failure: 'address_not_allowed', reason: cause.message };
  if (cause instanceof TimedOut) return { failure: 'timed_out', reason: cause.message };
  if (cause instanceof GivenUp || cause.name === 'AbortError') return { failure: 'timed_out', reason: 'given up' };
  if (cause instanceof AnswerTooLong) return { failure: 'malformed_answer', reason: cause.message };
  if (cause.name === 'HTTPParserError') return { failure: 'malformed_answer', reason: cause.message };
  const code = cause.code ?? '';
  const known = FAILURES.find(([pattern]) => pattern.test(code));
  return { failure: known?.[1] ?? 'connection_failed', reason: code === '' ? cause.message : code };
}
