// The connections of outbound calls: whose they are, how long they are kept, and how much may come over one in answer to a request.
import { constants } from 'node:crypto';
import type { LookupFunction, Socket } from 'node:net';
import { DEFAULT_CIPHERS, type TLSSocket } from 'node:tls';
import type { buildConnector, Dispatcher, Pool } from 'undici';
import type { OutboundRequest } from '../../core/outbound.ts';
import { countedHandshake, type Passing } from './handshake-bytes.ts';
import { type Handshake, HandshakeTooDear, handshakeCosts, UNWATCHED, type Watch } from './handshake-costs.ts';
import { headLines, passingContinue } from './interim-answers.ts';
import { type WaitingTime, waitingTime } from './waiting-time.ts';

const CONNECT_WITHIN_MS = 10_000;
/** Of each address before the next one is tried. Node's own 250 ms are less than the way to the other side of the earth and back. */
const ADDRESS_WITHIN_MS = 2_500;
/** Not those with a group that the server makes up: one of 10,000 bits is a second and more of computing here, before anything is known of it. */
const CIPHERS = `${DEFAULT_CIPHERS}:!kDHE`;
/** No more than one: before TLS 1.3 a server may ask for others at any time, each with certificates of its own. */
const ONE_HANDSHAKE = constants.SSL_OP_NO_RENEGOTIATION;
const IDLE_CONNECTION_MS = 10_000;
/** Then another one is made, where its name leads by then: calls that never rest would go for ever to a server that was replaced. */
const KEPT_MS = 60_000;
/** What is left of calls that were cut off is some 22 kB each. */
const SWEPT_EVERY_MS = 2_000;
const MOST_HEADER_BYTES = 16 * 1024;
/** What may come in answer to one request: none of it has an end by itself. */
const BOUNDS = {
  /** With a reason phrase, the extensions of chunks and interim answers. */
  bytes: { most: 256 * 1024, name: 'bytes' },
  /** Interim answers: each of their headers is more work here than there. */
  interim: { most: 16 * 1024, name: 'bytes before it' },
  /** Of a head, and of interim ones before it: each is held in memory as two objects until the head ends, and the heads of all calls at once. */
  head: { most: 256, name: 'lines in its head' },
  /** Two for each chunk, which may hold a single byte. */
  lines: { most: 4_096, name: 'lines' },
  /** A TLS record may hold a single byte too, and is some 10 µs of work. */
  parts: { most: 256, name: 'parts' },
  /** For later TLS sessions: a server sends two or so, but each is work here. */
  tickets: { most: 32, name: 'tickets for later TLS sessions' },
  /** What TLS says for itself too, such as changes of keys, of which nothing is told: some 25 µs each. */
  records: { most: 320, name: 'TLS records' },
  wire: { most: 512 * 1024, name: 'bytes with those of TLS' },
} as const;
type Counted = keyof typeof BOUNDS;
const NOTHING = { bytes: 0, head: 0, interim: 0, lines: 0, parts: 0, records: 0, tickets: 0, wire: 0 };
const LF = 10;
/** Connections that are kept for the next call take memory and a file each: where this many are open, a call closes its own. */
const MOST_KEPT = 512;
/** How long a server that has said something unasked gets a connection for each call. */
const SUSPECT_MS = 60 * 60_000;
const MOST_SUSPECTS = 10_000;

/** More came in answer to a request than any answer has. */
export class AnswerTooLong extends Error {}

type Asked = Pick<Dispatcher.RequestOptions, 'headers' | 'body' | 'signal'> & { readonly method: 'GET' | 'POST' };

type Whose = Pick<OutboundRequest, 'connectionsOf' | 'merchantId'>;

export type Connections = {
  /**
   * What HTTP/1.1 says to this request. An answer that nobody asked for, and that comes when the next request is under way, is taken for the answer to
   * that one: so a connection is kept for calls of the same owner only, and for none once its server was seen to do so, or while very many are open.
   */
  request(url: URL, whose: Whose, asked: Asked): Promise<Dispatcher.ResponseData>;
  /** How long such calls have waited for their turn so far, since this is held for them; milliseconds. */
  waitedMs(url: URL, whose: Whose): number;
  /** Of how many owners and hosts something is held in memory: those with a connection, and for a while those without. */
  held(): number;
  close(): Promise<void>;
};

/** Whether a connection ended because what came over it was no answer to a request. */
const isUnasked = ({ name, message }: Error): boolean => name === 'HTTPParserError' || message === 'bad response';

/** Loads what makes them: most processes never make a call. @param lookup gives the addresses that may be connected to */
export async function openConnections(
  lookup: LookupFunction,
  watch: Watch = UNWATCHED,
  { sweptEveryMs = SWEPT_EVERY_MS, keptMs = KEPT_MS } = {},
): Promise<Connections> {
  const { buildConnector, Pool: NewPool } = await import('undici');
  const settings: Pool.Options = {
    // HTTP/1.1 only: its headers and body are what is bounded here
    allowH2: false,
    // who calls bounds what is open; a bound for each host would let one merchant's URL hold up others' on a host that many use
    connections: null,
    pipelining: 1,
    keepAliveTimeout: IDLE_CONNECTION_MS,
    keepAliveMaxTimeout: IDLE_CONNECTION_MS,
    maxHeaderSize: MOST_HEADER_BYTES,
    // the whole call has one limit
    headersTimeout: 0,
    bodyTimeout: 0,
  };
  const connectFor = bounded(
    watch,
    buildConnector({ timeout: CONNECT_WITHIN_MS, lookup, autoSelectFamilyAttemptTimeout: ADDRESS_WITHIN_MS }),
    buildConnector({
      ...{ allowH2: false, timeout: CONNECT_WITHIN_MS, maxCachedSessions: 100 },
      ...{ ciphers: CIPHERS, secureOptions: ONE_HANDSHAKE },
    }),
  );
  let open = 0;
  /** By where they lead and whose they are. */
  const pools = new Map<string, { readonly pool: Pool; readonly waited: WaitingTime; readonly sinceMs: number }>();
  /** Those that were kept for long enough, while calls are under way there. */
  const leaving = new Set<Pool>();
  /** Names of pools and until when none of their connections is kept, the oldest first. */
  const suspects = new Map<string, number>();
  function suspect(name: string): void {
    suspects.delete(name);
    suspects.set(name, performance.now() + SUSPECT_MS);
    if (suspects.size > MOST_SUSPECTS) suspects.delete(suspects.keys().next().value as string);
  }
  const isSuspect = (name: string): boolean => (suspects.get(name) ?? Number.NEGATIVE_INFINITY) > performance.now();

  function poolOf(name: string, origin: string, merchantId: bigint | null): Pool {
    const known = pools.get(name);
    if (known !== undefined && performance.now() - known.sinceMs < keptMs) return known.pool;
    if (known !== undefined) leave(known.pool);
    const waited = known?.waited ?? waitingTime();
    const pool = new NewPool(origin, { ...settings, connect: connectFor(merchantId, waited) });
    pools.set(name, { pool, waited, sinceMs: performance.now() });
    pool.on('connect', () => {
      open += 1;
    });
    return pool.on('disconnect', (_origin, _targets, error) => {
      open -= 1;
      if (isUnasked(error)) suspect(name);
    });
  }
  function leave(pool: Pool): void {
    leaving.add(pool);
    const hasLeft = (): void => void leaving.delete(pool);
    // what is under way has its answer first
    void pool.close().then(hasLeft, hasLeft);
  }
  // whoever is called once, and how that ended, is not remembered for ever
  const sweep = setInterval(() => {
    for (const [name, { pool }] of pools) {
      const { connected, size } = pool.stats;
      if (connected + size > 0) continue;
      pools.delete(name);
      void pool.destroy();
    }
  }, sweptEveryMs).unref();

  const nameOf = (url: URL, { connectionsOf: owner, merchantId }: Whose): string =>
    `${url.origin}#${owner ?? ''}#${merchantId ?? ''}`;
  return {
    request(url, whose, asked) {
      const { connectionsOf: owner, merchantId } = whose;
      const name = nameOf(url, whose);
      const reset = owner === null || open >= MOST_KEPT || isSuspect(name);
      return poolOf(name, url.origin, merchantId).request({ ...asked, path: `${url.pathname}${url.search}`, reset });
    },
    waitedMs: (url, whose) => pools.get(nameOf(url, whose))?.waited.ms() ?? 0,
    held: () => pools.size + leaving.size,
    async close() {
      clearInterval(sweep);
      const all = [...[...pools.values()].map(({ pool }) => pool), ...leaving];
      await Promise.all(all.map((pool) => pool.destroy()));
    },
  };
}

/** Connections for a merchant's calls that end when what comes before, or after, a request is more than any server says. */
function bounded(
  watch: Watch,
  connect: buildConnector.connector,
  secure: buildConnector.connector,
): (merchantId: bigint | null, waited: WaitingTime) => buildConnector.connector {
  const handshakeWith = handshakeCosts(watch);
  return (merchantId, waited) => (options, done) => {
    const isSecure = options.protocol === 'https:';
    if (!isSecure)
      return connect(options, (...result) => {
        if (result[0] === null) boundAnswers(endingOnce(result[1]));
        done(...result);
      });
    const begun = handshakeWith(options.host as string, merchantId);
    const handshake: Handshake = { ...begun, inTurn: (piece) => begun.inTurn(waited.counted(piece)) };
    if (handshake.isRefused()) return process.nextTick(done, new HandshakeTooDear(), null);
    return connect({ ...options, protocol: 'http:', port: options.port || '443' }, (...reached) => {
      const [error, raw] = reached;
      if (error !== null) return done(...reached);
      const { stream, hearKey, endHandshake } = countedHandshake(raw, handshake);
      handshake.inTurn(() => {
        // undici's types name what this is for other callers, and do not say that it returns the socket
        const socket = secure({ ...options, httpSocket: stream as Socket }, (...result) => {
          if (result[0] === null) endHandshake(boundAnswers(counting(endingOnce(result[1]), handshake)));
          done(...result);
        }) as unknown as TLSSocket;
        socket.on('keylog', hearKey);
      });
    });
  };
}

/**
 * What TLS cannot read after the handshake is an error that does not end the connection, and what cannot be written then another one, which may be
 * told when the connection has ended: undici has forgotten it by then, and throws.
 */
function endingOnce(socket: Socket): Socket {
  socket.once('close', () => {
    socket.emit = () => false;
  });
  // by then what came before it has been heard
  return socket.once('error', () => void setImmediate(() => socket.destroy()));
}

/** What HTTP makes of an answer is counted like what TLS does: many lines in many small parts take more than their decryption. */
function counting(socket: Socket, { compute }: Handshake): Socket {
  const emit = socket.emit.bind(socket);
  socket.emit = (event: string, ...what: unknown[]) => {
    if (event !== 'readable') return emit(event, ...what);
    compute(() => void emit(event));
    return true;
  };
  return socket;
}

/** Ends a connection over which too much comes in answer to a request. What came before that is heard: its status may say all. */
function boundAnswers(socket: Socket): Passing {
  const [read, push] = [socket.read.bind(socket), socket.push.bind(socket)];
  let [sent, received, passContinue, linesOfHead, isOver] = [0, NOTHING, passingContinue(), headLines(), false];
  /** How much more may come: where something was sent, what comes since is another answer. */
  function room(what: Counted): number {
    if (sent !== socket.bytesWritten)
      [sent, received, passContinue, linesOfHead] = [socket.bytesWritten, NOTHING, passingContinue(), headLines()];
    return Math.max(0, BOUNDS[what].most - received[what]);
  }
  /** Counts what comes. @returns how much of it is within its bound */
  function count(what: Counted, more: number): number {
    const within = room(what);
    const { most, name } = BOUNDS[what];
    received = { ...received, [what]: received[what] + more };
    if (more <= within) return more;
    // by then what is within has been heard
    if (!isOver) setImmediate(() => socket.destroy(new AnswerTooLong(`an answer of more than ${most} ${name}`)));
    isOver = true;
    return within;
  }
  socket.push = (part: unknown, encoding?: BufferEncoding): boolean => !isOver && count('parts', 1) === 1 && push(part, encoding);
  socket.read = (size?: number): unknown => {
    const part = read(size) as Buffer | null;
    if (part === null) return null;
    const some = part.subarray(0, count('bytes', part.length));
    const lines = linesIn(some);
    const heard = firstLines(some, lines, count('lines', lines));
    const interim = passContinue(heard);
    const head = linesIn(heard.subarray(0, interim)) + linesOfHead(heard.subarray(interim));
    return heard.length > 0 && count('interim', interim) === interim && count('head', head) === head ? heard : null;
  };
  socket.on('session', () => void count('tickets', 1));
  return (part, records, pass) => {
    if (isOver) return;
    pass(part.subarray(0, records[room('records')]).subarray(0, room('wire')));
    count('records', records.length);
    count('wire', part.length);
  };
}

function linesIn(part: Buffer): number {
  let count = 0;
  for (let at = part.indexOf(LF); at !== -1; at = part.indexOf(LF, at + 1)) count++;
  return count;
}

/** @param lines how many it has */
function firstLines(part: Buffer, lines: number, wanted: number): Buffer {
  if (wanted >= lines) return part;
  let end = 0;
  for (let n = 0; n < wanted; n++) end = part.indexOf(LF, end) + 1;
  return part.subarray(0, end);
}
