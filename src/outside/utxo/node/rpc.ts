// JSON-RPC over HTTP as spoken by bitcoind and its relatives, and by Ethereum's nodes: keep-alive, Basic auth, batches, time-outs, exact numbers, and a class for
// every way in which a node can fail. No answer is larger than what its caller can hold.
import { Pool } from 'undici';
import { parseExact } from '../../exact-json.ts';
import { createBatchLimit } from './batch-limit.ts';
import { type AnswerSink, type BodySink, bytesSink, hexSink, readBody, TooLarge } from './rpc-body.ts';
import { authorizationOf, createPatience, excerpt, isClosedConnection, transportTrouble } from './rpc-transport.ts';
import { NodeTrouble, RpcRefusal } from './trouble.ts';

export type RpcOptions = {
  /** `http://user:password@host:port[/path]` */
  readonly url: string;
  /** No bytes from the node for this long is trouble. */
  readonly silenceMs: number;
  /** A short answer takes no longer than this once it has begun (default four times `silenceMs`); a long one longer, by its bytes. */
  readonly mostMs?: number;
  readonly connections: number;
  /** What each call says of itself (default 1.0); Ethereum's nodes answer only 2.0. */
  readonly jsonRpc?: '1.0' | '2.0';
  /** The largest answer to a call that names no other limit. */
  readonly mostBytes?: number;
};
export type RpcCall = { readonly method: string; readonly params?: readonly unknown[] };

export type Rpc = {
  /** Host and port, for messages: never the password. */
  readonly name: string;
  /** The result of one call. Whole numbers are numbers; every other number is the text that the node wrote. Throws NodeTrouble or RpcRefusal. */
  call(method: string, params?: readonly unknown[], mostBytes?: number): Promise<unknown>;
  /** The result of a call that lists hashes, however many. */
  callList(method: string): Promise<unknown>;
  /** The bytes of a result that is one hex string, without going through JSON. */
  callHex(method: string, params?: readonly unknown[]): Promise<Buffer>;
  /** A few calls, in one request where the node takes so many; answers in the same order, a refused call has an RpcRefusal in its place. */
  batch(calls: readonly RpcCall[], mostBytes?: number): Promise<readonly unknown[]>;
  /**
   * Any number of calls of one method, part by part: each part is one request, whose answer is bounded in bytes and in calls.
   * @param most the most bytes of one call's answer
   */
  inParts(method: string, params: readonly (readonly unknown[])[], most?: number): AsyncGenerator<Part>;
  close(): Promise<void>;
};

/** The answers to some of the calls, from the one at `from` on and in their order. */
export type Part = { readonly from: number; readonly answers: readonly unknown[] };

/** The largest answer that is read as JSON: the list of two million transactions, or one of the largest transactions in decoded form. */
const MOST_JSON_BYTES = 160 * 1024 * 1024;
/** Many times the largest answer about a chain, a header, or a few hashes. */
export const FEW_BYTES = 256 * 1024;
/**
 * The largest block that is accepted, as hex: Bitcoin Cash lets its 32 MB grow with their use (CHIP-2023-04), at most to the double in a
 * year.
 */
const MOST_BLOCK_HEX_BYTES = 512 * 1024 * 1024;
/** The largest answer to a part of many calls, parsed in some 70 ms; what would exceed it is requested again in smaller parts. */
const MOST_PART_BYTES = 4 * 1024 * 1024;
/** The node holds a whole part in memory too, whatever its size. */
const MOST_PART_CALLS = 100;
/** A hash in a list has 64 letters, in quotes. */
const LEAST_LISTED_BYTES = 66;
const [COMMA, ARRAY, OBJECT] = [0x2c, 0x5b, 0x7b];
const WARMING_UP = -28;
const PATIENCE_SILENCES = 4;
const HASH = /^[0-9a-f]{64}$/;

/** @throws TypeError for something that is not an http(s) URL */
export function createRpc(options: RpcOptions): Rpc {
  const url = new URL(options.url);
  if (url.protocol !== 'http:' && url.protocol !== 'https:')
    throw new TypeError('a node URL must begin with http:// or https://');
  const name = url.host;
  const headers = { 'content-type': 'application/json', ...authorizationOf(url) };
  const path = `${url.pathname === '' ? '/' : url.pathname}${url.search}`;
  const patience = createPatience(name);
  const pool = new Pool(url.origin, {
    connections: options.connections,
    connect: { timeout: Math.min(options.silenceMs, 5_000) },
    headersTimeout: options.silenceMs,
    bodyTimeout: options.silenceMs,
    keepAliveTimeout: 4_000,
  });
  const { silenceMs, mostMs = silenceMs * PATIENCE_SILENCES, mostBytes = MOST_JSON_BYTES } = options;
  /** How many calls of a method the next part may hold, judged by the size of the last answers. */
  const widths = new Map<string, number>();

  const together = createBatchLimit();

  const { jsonRpc = '1.0' } = options;
  const oneCall = (method: string, params: readonly unknown[], id = 0): object => ({ jsonrpc: jsonRpc, id, method, params });

  /** Posts the calls and passes the body to the sink; returns the HTTP status. */
  async function post(calls: unknown, sink: BodySink, isRetry = false): Promise<number> {
    patience.check();
    let answering = false;
    try {
      const reply = await pool.request({ method: 'POST', path, headers, body: JSON.stringify(calls) });
      answering = true;
      if (reply.statusCode === 429) await reply.body.dump();
      patience.note(reply.statusCode, reply.headers['retry-after']);
      const length = Number(reply.headers['content-length'] ?? Number.NaN);
      await readBody(reply.body, sink, { length: Number.isNaN(length) ? null : length, mostMs });
      return reply.statusCode;
    } catch (error) {
      // a kept connection that the node closed meanwhile (it was restarted) fails once; a request may be sent twice, because all calls can
      // be repeated
      if (!answering && !isRetry && isClosedConnection(error)) return post(calls, sink, true);
      throw error instanceof NodeTrouble ? error : transportTrouble(name, error, { answering, silenceMs });
    }
  }

  async function call(method: string, params: readonly unknown[] = [], most = mostBytes): Promise<unknown> {
    const sink = bytesSink(most);
    const status = await post(oneCall(method, params), sink);
    return resultOf(name, method, readAnswer(name, status, sink.bytes()));
  }

  /** The answers to calls in one request; null where the node takes fewer. */
  async function batch(calls: readonly RpcCall[], sink: AnswerSink): Promise<readonly unknown[] | null> {
    const [first] = calls;
    if (first === undefined) return [];
    if (calls.length === 1 && together.most() === 1) {
      const alone = await post(oneCall(first.method, first.params ?? []), sink);
      return [resultOrRefusal(name, first.method, readAnswer(name, alone, sink.bytes()))];
    }
    const status = await post(
      calls.map((one, id) => oneCall(one.method, one.params ?? [], id)),
      sink,
    );
    const answer = readAnswer(name, status, sink.bytes());
    if (together.narrowedBy(answer, calls.length)) return null;
    if (Array.isArray(answer)) return inOrder(name, calls, answer);
    throw refusalOf(name, 'batch', answer) ?? new NodeTrouble('bad_answer', `${name}: a batch was not answered with an array`);
  }

  /** The same, in as many requests as the node wants. */
  async function batches(calls: readonly RpcCall[], most: number): Promise<readonly unknown[]> {
    const answers: unknown[] = [];
    while (answers.length < calls.length) {
      const part = calls.slice(answers.length, answers.length + together.most());
      answers.push(...((await batch(part, bytesSink(most))) ?? []));
    }
    return answers;
  }

  async function* inParts(method: string, params: readonly (readonly unknown[])[], most = MOST_JSON_BYTES): AsyncGenerator<Part> {
    for (let from = 0; from < params.length; ) {
      const width = Math.min(widths.get(method) ?? MOST_PART_CALLS, params.length - from, together.most());
      const sink = bytesSink(width === 1 ? most : Math.min(MOST_PART_BYTES, most));
      const part = params.slice(from, from + width).map((one) => ({ method, params: one }));
      try {
        const answers = await batch(part, sink);
        if (answers === null) continue;
        widths.set(method, Math.min(width * 2, fitting(width, sink.size())));
        yield { from, answers };
        from += width;
      } catch (error) {
        if (!(error instanceof NodeTrouble && error.cause instanceof TooLarge) || width === 1) throw error;
        widths.set(method, Math.min(width >> 1, fitting(width, error.cause.bytes)));
      }
    }
  }

  return {
    name,
    call,
    async callHex(method, params = []) {
      const sink = hexSink(MOST_BLOCK_HEX_BYTES);
      const status = await post(oneCall(method, params), sink);
      const result = resultOf(name, method, readAnswer(name, status, sink.bytes()));
      const hex = result === '' ? sink.decoded() : fromHex(result);
      if (hex === null) throw new NodeTrouble('bad_answer', `${name}: ${method} did not answer a hex string`);
      return hex;
    },
    async callList(method) {
      const sink = bytesSink(MOST_JSON_BYTES);
      const status = await post(oneCall(method, []), sink);
      const bytes = sink.bytes();
      if (!isOfHashes(bytes)) throw new NodeTrouble('bad_answer', `${name}: ${method} did not answer a list of transactions`);
      return resultOf(name, method, readAnswer(name, status, bytes));
    },
    batch: (calls, most = mostBytes) => batches(calls, most),
    inParts,
    close: () => pool.destroy(),
  };
}

/**
 * Whether a long answer can be a list of hashes: what has more parts than that takes minutes to parse, and gigabytes.
 */
function isOfHashes(bytes: Buffer): boolean {
  if (bytes.length <= FEW_BYTES) return true;
  let left = bytes.length / LEAST_LISTED_BYTES;
  for (const byte of bytes) if ((byte === COMMA || byte === ARRAY || byte === OBJECT) && --left < 0) return false;
  return true;
}

/** How many calls fill half of a part, given how many bytes this many took. */
function fitting(calls: number, bytes: number): number {
  return Math.max(1, Math.min(MOST_PART_CALLS, Math.floor((MOST_PART_BYTES / 2 / bytes) * calls)));
}

/** The parsed body of an answer, whatever its status: bitcoind sends errors as 404 and 500, others as 200. */
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

/** The refusal in one answer, or null; a node that is warming up refuses everything, so that is the node's trouble. */
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

/** The result of one answer. @throws RpcRefusal, NodeTrouble */
function resultOf(name: string, method: string, answer: unknown): unknown {
  const result = resultOrRefusal(name, method, answer);
  if (result instanceof RpcRefusal) throw result;
  return result;
}

/** @throws NodeTrouble */
const resultOrRefusal = (name: string, method: string, answer: unknown): unknown =>
  refusalOf(name, method, answer) ?? (answer as { result: unknown }).result;

function inOrder(name: string, calls: readonly RpcCall[], answers: readonly unknown[]): unknown[] {
  const results: unknown[] = calls.map(() => null);
  const missing = new Set(calls.keys());
  for (const answer of answers) {
    if (typeof answer !== 'object' || answer === null)
      throw new NodeTrouble('bad_answer', `${name}: a batch holds something that is no answer`);
    const { id } = answer as { id?: unknown };
    if (typeof id !== 'number' || !missing.delete(id))
      throw new NodeTrouble('bad_answer', `${name}: a batch answered an id that was not asked`);
    results[id] = resultOrRefusal(name, (calls[id] as RpcCall).method, answer);
  }
  if (missing.size > 0) throw new NodeTrouble('bad_answer', `${name}: a batch left ${missing.size} calls unanswered`);
  return results;
}

/** The bytes of a hex string; null for anything else, and for an empty one. */
export function fromHex(value: unknown): Buffer | null {
  if (typeof value !== 'string' || value === '') return null;
  const bytes = Buffer.from(value, 'hex');
  return bytes.length * 2 === value.length ? bytes : null;
}

/** A block hash from a node's answer. */
export function asHash(rpc: Rpc, method: string, value: unknown): string {
  if (typeof value === 'string' && HASH.test(value)) return value;
  throw new NodeTrouble('bad_answer', `${rpc.name}: ${method} did not answer a block hash`);
}

/** The transactions of a mempool from a node's answer. */
export function asTxids(rpc: Rpc, method: string, value: unknown): readonly string[] {
  if (Array.isArray(value) && value.every((txid) => typeof txid === 'string' && HASH.test(txid))) return value;
  throw new NodeTrouble('bad_answer', `${rpc.name}: ${method} did not answer a list of transactions`);
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
