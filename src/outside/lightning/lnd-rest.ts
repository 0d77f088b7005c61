// LND's REST interface, as bytes on the wire: TLS with a pinned certificate, the macaroon, deadlines, answers that stream. What an answer
// means is lnd.ts's business.
import type { ClientRequest, IncomingMessage, RequestOptions } from 'node:http';
import { NodeTrouble, plainText, type TroubleState } from '../utxo/node/trouble.ts';
import { leavingOut } from './left-out.ts';
import { type KeptConnections, keptConnections } from './lnd-connections.ts';

// not by an import: see http/server.ts
const http = process.getBuiltinModule('node:http');
const https = process.getBuiltinModule('node:https');

/** Where a node is, and how it is spoken to. */
export type LndTarget = {
  readonly url: string;
  /** The node's certificate, or the one that signed it, as PEM; null = the system's authorities decide. */
  readonly certificate: string | null;
  /** Hex. */
  readonly macaroon: string;
};

/** The node works but refuses this one call. */
export class LndRefusal extends Error {
  readonly httpStatus: number;
  /** gRPC's status code; 5 = there is none. */
  readonly code: number;
  /** In LND's own words. */
  readonly said: string;
  constructor(path: string, httpStatus: number, code: number, message: string) {
    super(`${path}: ${plainText(message, 300)}`);
    this.name = 'LndRefusal';
    this.httpStatus = httpStatus;
    this.code = code;
    this.said = plainText(message, 300);
  }
}

/** Of one answer, and of one line of a stream. */
const MOST_BYTES = 32 * 1024 * 1024;
/** How long an answer may still take to end once all that is wanted of it was read: only then can its connection serve the next call. */
const END_MS = 1_000;

/** The cause of trouble with an answer that is not read to its end, or that did not come in time. */
class AnswerTooLong extends Error {}
/** The cause of trouble with an answer of which nothing came in time. */
class NothingCame extends Error {}

/** gRPC's resource exhausted: an answer is larger than the node makes them. */
const EXHAUSTED = 8;

/** Whether a list was too much for one answer, of the node or for us: half of it may not be. */
const isTooLong = (error: unknown): boolean =>
  (error as Error).cause instanceof AnswerTooLong || (error instanceof LndRefusal && error.code === EXHAUSTED);

/** In this time comes what is short, also of a node that is at work on something long. */
const SHORT_MS = 2_000;

/** Texts of LND that say something of the node as a whole, not of the call. */
const STATES: readonly (readonly [pattern: RegExp, state: TroubleState])[] = [
  [/wallet not created|wallet locked|process of starting up|waiting to start/, 'warming_up'],
  [/macaroon|encoding\/hex|verification failed|permission denied|not satisfied/, 'unauthorized'],
];

const OTHER = 'is BURSAR_LND_CERT the certificate of this node?';
const EXPIRED = 'LND makes another when it is started again: BURSAR_LND_CERT has to be that one then, or the path of its file';
/** What an error of the connection says. */
function troubleOf(url: string, error: unknown): NodeTrouble {
  if (error instanceof NodeTrouble) return error;
  const { code = '', message } = error as NodeJS.ErrnoException;
  const isCertificate = /^(?:CERT_|DEPTH_|SELF_SIGNED|UNABLE_TO_|ERR_TLS_CERT|ERR_OSSL|ERR_SSL)/.test(code);
  const state: TroubleState = isCertificate ? 'unauthorized' : 'down';
  const hint = isCertificate ? ` (${code === 'CERT_HAS_EXPIRED' ? EXPIRED : OTHER})` : '';
  return new NodeTrouble(state, `LND at ${new URL(url).host}: ${message === '' ? code : message}${hint}`, { cause: error });
}

/** @param target asked for each connection: in the sandbox the address is known only when it runs */
export function createLndRest(target: () => Promise<LndTarget>) {
  let kept: KeptConnections | null = null;
  function connections(certificate: string | null): KeptConnections {
    if (kept?.certificate !== certificate) {
      kept?.close();
      kept = keptConnections(certificate);
    }
    return kept;
  }

  /** `narrowed` makes of our macaroon the one that this call is sent with. */
  type Asked = {
    readonly body?: unknown;
    readonly narrowed?: (macaroon: string) => string;
    /** The lists of this name that the answer is read without. */
    readonly without?: string;
    /** Told of the node's clock as the head of its answer says it (`Date`), which is in whole seconds that have begun. */
    readonly onClock?: (atMs: number) => void;
  };
  type Sent = { readonly url: string; readonly response: IncomingMessage };

  /** Resolves when the headers are there, which a stream sends only with its first line. */
  async function send(verb: string, path: string, asked: Asked, signal: AbortSignal, isStream: boolean): Promise<Sent> {
    const { url, certificate, macaroon } = await target();
    const { body, narrowed } = asked;
    const text = body === undefined ? null : JSON.stringify(body);
    const place = new URL(path, url);
    const isPlain = place.protocol === 'http:';
    const { calls, streams } = connections(certificate);
    const options: RequestOptions = {
      method: verb,
      agent: (isStream ? streams : calls)[isPlain ? 'http' : 'https'],
      headers: {
        'Grpc-Metadata-macaroon': narrowed === undefined ? macaroon : narrowed(macaroon),
        ...(text === null ? {} : { 'content-type': 'application/json', 'content-length': Buffer.byteLength(text) }),
      },
    };
    try {
      return await new Promise<Sent>((resolve, reject) => {
        const request = isPlain ? http.request(place, options) : https.request(place, options);
        request.on('error', reject);
        request.once('response', (response) => resolve({ url, response }));
        endBy(signal, request);
        request.end(text ?? undefined);
      });
    } catch (error) {
      throw troubleOf(url, error);
    }
  }

  return {
    /**
     * One call and its answer.
     * @param options.deadlineMs after which the node counts as down; what it did is then unknown
     * @throws NodeTrouble, LndRefusal
     */
    async call(
      verb: 'GET' | 'POST',
      path: string,
      options: { readonly deadlineMs: number; readonly body?: unknown; readonly without?: string },
    ): Promise<Answer> {
      const ending = new AbortController();
      const timer = setTimeout(() => ending.abort(), options.deadlineMs);
      let url = '';
      try {
        const { url: asked, response } = await send(verb, path, options, ending.signal, false);
        url = asked;
        const text = await textOf(response, leavingOut(options.without));
        return answerOf(url, path, response.statusCode ?? 0, text);
      } catch (error) {
        if (ending.signal.aborted) {
          const late = `LND did not answer ${pathOnly(path)} within ${options.deadlineMs} ms`;
          throw new NodeTrouble('down', late, { cause: url === '' ? new NothingCame(late) : new AnswerTooLong(late) });
        }
        if (error instanceof LndRefusal) throw error;
        throw url === '' ? error : troubleOf(url, error);
      } finally {
        clearTimeout(timer);
      }
    },

    /** Whether a list was too much for one answer: half of it may not be. Of what it makes slowly nothing comes before it is made, and a node that is away sends nothing either. */
    async isTooMuch(error: unknown): Promise<boolean> {
      if (isTooLong(error) || !((error as Error).cause instanceof NothingCame)) return isTooLong(error);
      return this.call('GET', '/v1/state', { deadlineMs: SHORT_MS }).then(
        () => true,
        () => false,
      );
    },

    /**
     * Reads an answer line by line, until it ends or breaks, or the signal ends it. When the reader leaves, the answer has a second more to end,
     * unless the signal ends it: then its connection serves the next call.
     * @param asked what is sent; without a body: nothing, by GET
     * @throws NodeTrouble, LndRefusal
     */
    async *lines(path: string, signal: AbortSignal, asked: Asked = {}): AsyncGenerator<Answer> {
      const { url, response } = await send(asked.body === undefined ? 'GET' : 'POST', path, asked, signal, true);
      const atMs = Date.parse(response.headers.date ?? '');
      if (!Number.isNaN(atMs)) asked.onClock?.(atMs);
      try {
        /** A line as far as it has come. */
        let begun: string[] = [];
        let size = 0;
        response.setEncoding('utf8');
        const read = leavingOut(asked.without);
        for await (const chunk of response.iterator({ destroyOnReturn: false })) {
          const [first = '', ...others] = read(chunk as string).split('\n');
          begun.push(first);
          size += first.length;
          for (const next of others) {
            const line = begun.join('');
            [begun, size] = [[next], next.length];
            if (line.trim() !== '') yield streamed(url, path, response.statusCode ?? 0, line);
          }
          if (size > MOST_BYTES)
            throw new NodeTrouble('bad_answer', `LND at ${new URL(url).host}: a line of ${pathOnly(path)} does not end`);
        }
        const last = begun.join('');
        if (last.trim() !== '') yield streamed(url, path, response.statusCode ?? 0, last);
      } catch (error) {
        if (error instanceof LndRefusal) throw error;
        response.destroy();
        throw troubleOf(url, error);
      } finally {
        leave(response);
      }
    },

    close: () => kept?.close(),
  };
}

/**
 * Ends a request, and its answer, when the signal says so. Node's own `signal` ends the socket with an error, and nobody hears that once the end of
 * the answer has come: the process would end.
 */
function endBy(signal: AbortSignal, request: ClientRequest): void {
  const end = (): void => void request.destroy();
  if (signal.aborted) end();
  signal.addEventListener('abort', end, { once: true });
  request.once('close', () => signal.removeEventListener('abort', end));
}

/** Reads what is left of an answer, without looking at it, as long as that takes no time. */
function leave(response: IncomingMessage): void {
  if (response.readableEnded || response.destroyed) return;
  const timer = setTimeout(() => response.destroy(), END_MS);
  response.on('error', () => undefined);
  response.once('close', () => clearTimeout(timer));
  response.resume();
}

export type Answer = Readonly<Record<string, unknown>>;

const pathOnly = (path: string): string => path.split('?')[0] ?? path;

async function textOf(response: IncomingMessage, read: (piece: string) => string): Promise<string> {
  const parts: string[] = [];
  let size = 0;
  response.setEncoding('utf8');
  for await (const piece of response) {
    const part = read(piece as string);
    size += part.length;
    if (size > MOST_BYTES) throw new AnswerTooLong(`an answer of more than ${MOST_BYTES} bytes`);
    parts.push(part);
  }
  return parts.join('');
}

function parsed(url: string, path: string, status: number, text: string): Answer {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null) return value as Answer;
  } catch {}
  throw new NodeTrouble(
    'bad_answer',
    `LND at ${new URL(url).host} answered ${pathOnly(path)} with HTTP ${status}: ${text.slice(0, 200)}`,
  );
}

function answerOf(url: string, path: string, status: number, text: string): Answer {
  const answer = parsed(url, path, status, text);
  if (status === 200) return answer;
  throw refusalOf(url, path, status, answer);
}

function streamed(url: string, path: string, status: number, line: string): Answer {
  const { result, error } = parsed(url, path, status, line);
  if (typeof result === 'object' && result !== null) return result as Answer;
  throw refusalOf(url, path, status, (error ?? {}) as Answer);
}

function refusalOf(url: string, path: string, status: number, answer: Answer): Error {
  const message = typeof answer.message === 'string' ? answer.message : JSON.stringify(answer).slice(0, 200);
  const state = STATES.find(([pattern]) => pattern.test(message))?.[1];
  if (state !== undefined) return new NodeTrouble(state, `LND at ${new URL(url).host}: ${message} (${pathOnly(path)})`);
  return new LndRefusal(pathOnly(path), status, typeof answer.code === 'number' ? answer.code : 0, message);
}
