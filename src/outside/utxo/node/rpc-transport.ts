// What HTTP itself can do to a call: who calls, connections that end, servers that ask to wait.
import { errors } from 'undici';
import { TooLarge, TooSlow } from './rpc-body.ts';
import { NodeTrouble } from './trouble.ts';

/** A server that asks to wait, with no time or a wrong one, is left alone for this long. */
const USUAL_WAIT_MS = 1_000;
const LONGEST_WAIT_MS = 60_000;

/** Keeps to what a server asks for with 429 (RFC 6585) and Retry-After (RFC 9110): until then every call fails at once. */
export type Patience = {
  /** @throws NodeTrouble while the server is to be left alone */
  check(): void;
  /** @throws NodeTrouble for an answer that asks to wait */
  note(status: number, retryAfter: unknown): void;
};

/**
 * The patience with one server. Until the time that its `Retry-After` names (a minute at most) calls end as NodeTrouble `busy` and are not
 * made.
 */
export function createPatience(name: string): Patience {
  let untilMs = 0;
  const refuse = (): never => {
    const seconds = Math.ceil((untilMs - performance.now()) / 1000);
    throw new NodeTrouble('busy', `${name}: too many requests (HTTP 429); it is asked again in ${seconds} s`);
  };
  return {
    check() {
      if (performance.now() < untilMs) refuse();
    },
    note(status, retryAfter) {
      if (status !== 429) return;
      untilMs = performance.now() + waitMs(retryAfter);
      refuse();
    },
  };
}

/** Retry-After is a number of seconds or a date. */
function waitMs(retryAfter: unknown): number {
  if (typeof retryAfter !== 'string' || retryAfter === '') return USUAL_WAIT_MS;
  const asked = /^\d{1,6}$/.test(retryAfter) ? Number(retryAfter) * 1000 : Date.parse(retryAfter) - Date.now();
  return asked > 0 ? Math.min(asked, LONGEST_WAIT_MS) : USUAL_WAIT_MS;
}

/** The Authorization header (RFC 7617) of a URL's user and password; none where it has neither. */
export function authorizationOf(url: URL): { readonly authorization?: string } {
  if (url.username === '' && url.password === '') return {};
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return { authorization: `Basic ${Buffer.from(credentials).toString('base64')}` };
}

/** Whether the other side closed a connection that was kept open: such a call may be made again. */
export function isClosedConnection(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

/**
 * What went wrong between us and a node, as NodeTrouble: silent or unreachable is `down`; cut off, too large or not HTTP is `bad_answer`.
 * @param how whether its answer had begun
 */
export function transportTrouble(
  name: string,
  error: unknown,
  how: { readonly answering: boolean; readonly silenceMs: number },
): NodeTrouble {
  const cause = error instanceof Error ? error : new Error(String(error));
  if (cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError) {
    return new NodeTrouble('down', `${name}: no answer for ${how.silenceMs / 1000} s`, { cause });
  }
  if (cause instanceof TooSlow) return new NodeTrouble('down', `${name}: ${cause.message}`, { cause });
  if (cause instanceof TooLarge) return new NodeTrouble('bad_answer', `${name}: ${cause.message}`, { cause });
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  if (how.answering) return new NodeTrouble('bad_answer', `${name}: the answer was cut off (${inner.message})`, { cause });
  const { code } = inner as { code?: string };
  if (code?.startsWith('HPE_'))
    return new NodeTrouble('bad_answer', `${name}: what answers is not HTTP (${inner.message})`, { cause });
  return new NodeTrouble('down', `${name}: ${code ?? inner.message}`, { cause });
}

/** The beginning of a body, printable. */
export function excerpt(bytes: Buffer): string {
  return bytes
    .subarray(0, 120)
    .toString('latin1')
    .replace(/\s+/g, ' ')
    .replace(/[^\x20-\x7e]/g, '?')
    .trim();
}
