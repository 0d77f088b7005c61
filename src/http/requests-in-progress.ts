// Bounds the requests that have arrived and are not answered yet. HTTP/1.1 lets a client send requests without waiting for answers (RFC 9112
// §9.3.2), as many as fit into what it sends: Node makes a request and a response of each at once. Only a few of one connection are in progress
// here; the rest stays unread until those are answered. When there are many in the whole process, a connection gets only one.
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';

export type RequestLimits = {
  /** Of one connection: then it is read no further. */
  readonly ofOne: number;
  /** Of all connections: then one that has a request in progress is refused another. */
  readonly ofAll: number;
};

export const REQUEST_LIMITS: RequestLimits = { ofOne: 8, ofAll: 2_000 };

export type RequestsInProgress = {
  /** Whether a request of this connection must be refused for want of capacity. */
  isTooMany(socket: Socket): boolean;
};

type State = {
  open: number;
  /** The request that arrived last, while it is not known to be whole. */
  last: IncomingMessage | null;
  /** How much of its body is still to come, at most; 0 when it does not say. */
  bodyLeft: number;
  isStopped: boolean;
};
/** What Node's HTTP server keeps on a connection: its parser (null after CONNECT), and whether it has stopped reading by itself. */
type HttpSocket = Socket & { readonly parser?: object | null; readonly _paused?: boolean };

const HEAD_ENDS = '\r\n\r\n';
/** Pieces are no smaller than `GET / HTTP/1.1` before its end, nor than this within a body that has said its length. */
const LEAST_HEAD = 14;
const LEAST_OF_BODY = 512;

/** Counts and limits the requests of every connection of a server. */
export function limitRequests(server: Server, limits: RequestLimits): RequestsInProgress {
  const states = new WeakMap<Socket, State>();
  let all = 0;

  server.on('connection', (socket: Socket) => {
    const state: State = { open: 0, last: null, bodyLeft: 0, isStopped: false };
    states.set(socket, state);
    readInPieces(socket, state, limits.ofOne);
    // answers that wait behind another one are never closed when their connection is
    socket.once('close', () => {
      states.delete(socket);
      all -= state.open;
    });
  });

  function begin(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request;
    const state = states.get(socket);
    if (state === undefined) return;
    all += 1;
    state.open += 1;
    state.last = request;
    state.bodyLeft = Number(request.headers['content-length'] ?? 0);
    response.once('close', () => {
      if (states.get(socket) !== state) return;
      all -= 1;
      state.open -= 1;
      if (state.last === request && request.complete) state.last = null;
      // not at once: connections take turns, however much each has sent
      if (state.isStopped && state.open <= limits.ofOne / 2) setImmediate(goOn, socket, state);
    });
  }
  for (const event of ['request', 'checkExpectation'] as const) server.prependListener(event, begin);

  return { isTooMany: (socket) => all > limits.ofAll && (states.get(socket)?.open ?? 0) > 1 };
}

function goOn(socket: HttpSocket, state: State): void {
  // Node itself has stopped too, and goes on once its answers have left
  if (!state.isStopped || socket._paused === true || socket.destroyed) return;
  state.isStopped = false;
  socket.resume();
}

/**
 * Passes what arrives to Node's parser in pieces that end where a request does or may, so that it can be stopped between two. What is not
 * passed goes back into the stream, which then reads no more from the system.
 */
function readInPieces(socket: HttpSocket, state: State, most: number): void {
  const [parse] = socket.listeners('data') as ((bytes: Buffer) => void)[];
  if (parse === undefined) throw new Error('Node no longer reads HTTP by a listener');
  function read(bytes: Buffer): void {
    for (let at = 0; at < bytes.length; ) {
      if (socket.parser === null || socket.destroyed) return;
      const inBody = state.last !== null && !state.last.complete;
      const isFull = !inBody && state.open >= most;
      if (isFull || socket._paused === true) {
        state.isStopped = isFull;
        socket.pause();
        socket.unshift(bytes.subarray(at));
        return;
      }
      const hasLength = inBody && state.bodyLeft > 0;
      const whole = pieceEnd(bytes, at + (hasLength ? LEAST_OF_BODY : inBody ? 0 : LEAST_HEAD));
      const end = hasLength ? Math.min(whole, at + state.bodyLeft) : whole;
      state.bodyLeft -= end - at;
      parse!(bytes.subarray(at, end));
      at = end;
    }
  }
  // a listener of ours makes Node take the bytes from the stream and not from the system
  socket.on('data', read);
  socket.removeListener('data', parse);
}

/** Up to the first end of a head from there on if there is another one behind it, so that hardly any piece has more than one; else all. */
function pieceEnd(bytes: Buffer, from: number): number {
  const first = bytes.indexOf(HEAD_ENDS, from, 'latin1') + HEAD_ENDS.length;
  if (first < HEAD_ENDS.length || !bytes.includes(HEAD_ENDS, first, 'latin1')) return bytes.length;
  return first;
}
