// JSON-RPC over HTTP as bitcoind and its relatives speak it: keep-alive, Basic auth, batches, time-outs, numbers without loss, and every
// way in which a node can fail told apart. Called by utxo-node.ts (reading) and later by the senders.
import { errors, Pool } from 'undici';
import { parseExact } from './exact-json.ts';
import { NodeTrouble, RpcRefusal } from './node-trouble.ts';

export type RpcOptions = {
  /** `http://user:password@host:port[/wallet/…]` */
  readonly url: string;
  /** Nothing from the node for this long is trouble. */
  readonly silenceMs: number;
  readonly connections: number;
};
export type RpcCall = { readonly method: string; readonly params?: readonly unknown[] };

export type Rpc = {
  /** Host and port, for messages: never the password. */
  readonly name: string;
  /** The result of one call. Whole numbers are numbers; every other number is the text that the node wrote. Throws NodeTrouble or RpcRefusal. */
  call(method: string, params?: readonly unknown[]): Promise<unknown>;
  /** The bytes of a result that is one hex string, without going through JSON. */
  callHex(method: string, params?: readonly unknown[]): Promise<Buffer>;
  /** Many calls in one request, answers in the same order; a refused call is an RpcRefusal in its place. */
  batch(calls: readonly RpcCall[]): Promise<readonly unknown[]>;
  close(): Promise<void>;
};

/** The largest answer that is taken: a 32 MB block as hex, and some. */
const MAX_ANSWER_BYTES = 80 * 1024 * 1024;
/** A whole answer may take this many silences, and what its bytes take at this pace: the largest block through a thin line arrives, a trickle does not. */
const PATIENCE_SILENCES = 4;
const SLOWEST_BYTES_PER_SECOND = 256 * 1024;
const WARMING_UP = -28;
const HASH = /^[0-9a-f]{64}$/;

/** @throws TypeError for something that is not an http(s) URL */
export function createRpc(options: RpcOptions): Rpc {
  const url = new URL(options.url);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('a node URL must begin with http:// or https://');
  const name = url.host;
  const headers = { 'content-type': 'application/json', authorization: basicAuthorization(url) };
  const path = url.pathname === '' ? '/' : url.pathname;
  const pool = new Pool(url.origin, {
    connections: options.connections,
    connect: { timeout: Math.min(options.silenceMs, 5_000) },
    headersTimeout: options.silenceMs,
    bodyTimeout: options.silenceMs,
    keepAliveTimeout: 4_000,
    maxResponseSize: MAX_ANSWER_BYTES,
  });

  async function post(body: string, isRetry = false): Promise<{ status: number; bytes: Buffer }> {
    let answering = false;
    try {
      const reply = await pool.request({ method: 'POST', path, headers, body });
      answering = true;
      return { status: reply.statusCode, bytes: await readBody(reply.body, options.silenceMs * PATIENCE_SILENCES) };
    } catch (error) {
      // a kept connection that the node closed meanwhile (it was restarted) fails once; what is sent may be sent twice: all calls can be repeated
      if (!answering && !isRetry && isClosedConnection(error)) return post(body, true);
      throw transportTrouble(name, error, { answering, silenceMs: options.silenceMs });
    }
  }

  async function call(method: string, params: readonly unknown[] = []): Promise<unknown> {
    const { status, bytes } = await post(JSON.stringify({ jsonrpc: '1.0', id: 0, method, params }));
    const answer = readAnswer(name, status, bytes);
    const refusal = refusalOf(name, method, answer);
    if (refusal !== null) throw refusal;
    return (answer as { result: unknown }).result;
  }

  return {
    name,
    call,
    async callHex(method, params = []) {
      const { status, bytes } = await post(JSON.stringify({ jsonrpc: '1.0', id: 0, method, params }));
      const hex = status === 200 ? hexResult(bytes) : null;
      if (hex !== null) return hex;
      const answer = readAnswer(name, status, bytes);
      const refusal = refusalOf(name, method, answer);
      if (refusal !== null) throw refusal;
      throw new NodeTrouble('bad_answer', `${name}: ${method} did not answer a hex string`);
    },
    async batch(calls) {
      if (calls.length === 0) return [];
      const body = calls.map((one, id) => ({ jsonrpc: '1.0', id, method: one.method, params: one.params ?? [] }));
      const { status, bytes } = await post(JSON.stringify(body));
      const answer = readAnswer(name, status, bytes);
      if (!Array.isArray(answer)) {
        const refusal = refusalOf(name, 'batch', answer);
        throw refusal ?? new NodeTrouble('bad_answer', `${name}: a batch was not answered with an array`);
      }
      return inOrder(name, calls, answer);
    },
    close: () => pool.destroy(),
  };
}

class TooSlow extends Error {}

/** The whole body; one that comes more slowly than any line that we wait for is given up, however evenly it comes. */
async function readBody(body: AsyncIterable<Buffer>, patienceMs: number): Promise<Buffer> {
  const beganMs = performance.now();
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of body) {
    parts.push(part);
    size += part.length;
    const tookMs = performance.now() - beganMs;
    if (tookMs > patienceMs + (size / SLOWEST_BYTES_PER_SECOND) * 1000)
      throw new TooSlow(`an answer does not end: ${size} bytes in ${Math.round(tookMs / 1000)} s`);
  }
  return Buffer.concat(parts, size);
}

function basicAuthorization(url: URL): string {
  const credentials = `${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`;
  return `Basic ${Buffer.from(credentials).toString('base64')}`;
}

function isClosedConnection(error: unknown): boolean {
  const { code } = error as { code?: string };
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE';
}

function transportTrouble(
  name: string,
  error: unknown,
  how: { readonly answering: boolean; readonly silenceMs: number },
): NodeTrouble {
  const cause = error instanceof Error ? error : new Error(String(error));
  if (cause instanceof errors.HeadersTimeoutError || cause instanceof errors.BodyTimeoutError) {
    return new NodeTrouble('down', `${name}: no answer for ${how.silenceMs / 1000} s`, { cause });
  }
  if (cause instanceof TooSlow) return new NodeTrouble('down', `${name}: ${cause.message}`, { cause });
  if (cause instanceof errors.ResponseExceededMaxSizeError) {
    return new NodeTrouble('bad_answer', `${name}: an answer is larger than ${MAX_ANSWER_BYTES} bytes`, { cause });
  }
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  if (how.answering) return new NodeTrouble('bad_answer', `${name}: the answer was cut off (${inner.message})`, { cause });
  const { code } = inner as { code?: string };
  if (code?.startsWith('HPE_'))
    return new NodeTrouble('bad_answer', `${name}: what answers is not HTTP (${inner.message})`, { cause });
  return new NodeTrouble('down', `${name}: ${code ?? inner.message}`, { cause });
}

/** The parsed body of an answer, whatever its status was: bitcoind sends errors as 404 and 500, others as 200. */
function readAnswer(name: string, status: number, bytes: Buffer): unknown {
  if (status === 401 || status === 403) throw new NodeTrouble('unauthorized', `${name}: wrong user or password (HTTP ${status})`);
  if (status === 503) throw new NodeTrouble('busy', `${name}: ${excerpt(bytes) || 'work queue depth exceeded'} (HTTP 503)`);
  let answer: unknown;
  try {
    answer = parseExact(bytes.toString('utf8'));
  } catch (cause) {
    throw new NodeTrouble('bad_answer', `${name}: HTTP ${status} without JSON: ${excerpt(bytes)}`, { cause });
  }
  if (typeof answer !== 'object' || answer === null) {
    throw new NodeTrouble('bad_answer', `${name}: the answer is neither an object nor an array`);
  }
  return answer;
}

function excerpt(bytes: Buffer): string {
  return bytes
    .subarray(0, 120)
    .toString('latin1')
    .replace(/\s+/g, ' ')
    .replace(/[^\x20-\x7e]/g, '?')
    .trim();
}

/** The refusal in one answer, or null; a node that warms up refuses everything, so that is the node's trouble. */
function refusalOf(name: string, method: string, answer: unknown): RpcRefusal | null {
  const { error, result } = answer as { error?: unknown; result?: unknown };
  if (error === null || error === undefined) {
    if (result === undefined) throw new NodeTrouble('bad_answer', `${name}: ${method} answered neither result nor error`);
    return null;
  }
  const { code, message } = error as { code?: unknown; message?: unknown };
  if (typeof code !== 'number') throw new NodeTrouble('bad_answer', `${name}: ${method} answered an error without a code`);
  const text = typeof message === 'string' ? message : 'no message';
  if (code === WARMING_UP) throw new NodeTrouble('warming_up', `${name}: ${text}`);
  return new RpcRefusal(method, code, text);
}

function inOrder(name: string, calls: readonly RpcCall[], answers: readonly unknown[]): unknown[] {
  const results: unknown[] = calls.map(() => null);
  const missing = new Set(calls.keys());
  for (const answer of answers) {
    if (typeof answer !== 'object' || answer === null)
      throw new NodeTrouble('bad_answer', `${name}: a batch holds something that is no answer`);
    const { id } = answer as { id?: unknown };
    if (typeof id !== 'number' || !missing.delete(id))
      throw new NodeTrouble('bad_answer', `${name}: a batch answered an id that was not asked`);
    const refusal = refusalOf(name, (calls[id] as RpcCall).method, answer);
    results[id] = refusal ?? (answer as { result: unknown }).result;
  }
  if (missing.size > 0) throw new NodeTrouble('bad_answer', `${name}: a batch left ${missing.size} calls unanswered`);
  return results;
}

const RESULT_KEY = Buffer.from('"result":');
const QUOTE = 0x22;

/** The hex string of `{"result":"…",…,"error":null,…}` as bytes; null when the answer does not look exactly like that. */
function hexResult(bytes: Buffer): Buffer | null {
  const key = bytes.indexOf(RESULT_KEY);
  if (key < 0 || key > 64) return null;
  let start = key + RESULT_KEY.length;
  if (bytes[start] === 0x20) start++;
  if (bytes[start] !== QUOTE) return null;
  start++;
  const end = bytes.indexOf(QUOTE, start);
  if (end < 0 || (end - start) % 2 !== 0) return null;
  const rest = bytes.toString('latin1', end + 1, Math.min(bytes.length, end + 200));
  if (!/^\s*[,}]/.test(rest) || /"error":\s*[^n\s]/.test(rest) || !/\}\s*$/.test(rest)) return null;
  const decoded = Buffer.from(bytes.toString('latin1', start, end), 'hex');
  return decoded.length * 2 === end - start ? decoded : null;
}

/** A block hash that a node answered. */
export function asHash(rpc: Rpc, method: string, value: unknown): string {
  if (typeof value === 'string' && HASH.test(value)) return value;
  throw new NodeTrouble('bad_answer', `${rpc.name}: ${method} did not answer a block hash`);
}

/** A refusal as a value; every other error is thrown on. */
export async function orRefusal(call: Promise<unknown>): Promise<unknown> {
  try {
    return await call;
  } catch (error) {
    if (error instanceof RpcRefusal) return error;
    throw error;
  }
}
