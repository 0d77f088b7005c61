// Every connection ends: one whose request does not arrive, whose answers are not taken, or that asks for nothing, whatever its client does. One
// clock looks at all of them, so that a request costs nothing; it has a timer of its own, because who is waited for here says nothing.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey } from './client-address.ts';

export type ConnectionLimits = {
  /** A request must have arrived whole within this, from its first byte on (or from the connection's opening). Receiving only. */
  readonly requestMs: number;
  /** What was answered must have been taken within this. */
  readonly takenMs: number;
  /** A connection may be kept open this long without a request. */
  readonly idleMs: number;
  /** After its last answer a connection has this long until it is reset. */
  readonly lingerMs: number;
  /** How often the connections are looked at: what comes on top of each of these times, at most. */
  readonly lookMs: number;
  /** Connections at once. One more takes the place of one of the address that has the most. */
  readonly most: number;
};

/** The time of a request, plus a look, plus lingering and a look: less than the 35 s that behaviour §1 allows. */
export const CONNECTION_LIMITS: ConnectionLimits = {
  requestMs: 30_000,
  takenMs: 30_000,
  idleMs: 72_000,
  lingerMs: 2_000,
  lookMs: 500,
  most: 4_000,
};

/** A client that takes this much within the time is slow, not gone. */
const TAKEN_BYTES = 65_536;

type Watched = {
  readonly key: string;
  /** Bytes written at the last look. */
  written: number;
  /** Since when nothing was asked for or answered. */
  quietSinceMs: number;
  /** Since when bytes wait to be taken, and how many were taken since then; NaN: none wait. */
  waitingSinceMs: number;
  taken: number;
  /** At the last look: the bytes that were done with, and those that the system was to take. */
  done: number;
  queued: number;
  /** When the last answer was given; NaN: it was not. */
  lastAnswerMs: number;
};

export type Connections = {
  /** This connection has had its last answer: it is reset soon, unless its client closes it before. */
  endSoon(socket: Socket): void;
};

/** The answer that has the socket now; Node's own handler of broken requests asks for it by this name too. */
export function answerOn(socket: Socket): ServerResponse | null {
  return (socket as { _httpMessage?: ServerResponse | null })._httpMessage ?? null;
}

/** Watches every connection of a server from its opening to its end. */
export function watchConnections(server: Server, limits: ConnectionLimits): Connections {
  const watched = new Map<Socket, Watched>();
  const byAddress = new Map<string, Set<Socket>>();
  const now = (): number => performance.now();
  let timer: NodeJS.Timeout | undefined;

  function forget(socket: Socket): void {
    const state = watched.get(socket);
    if (state === undefined) return;
    watched.delete(socket);
    const others = byAddress.get(state.key);
    others?.delete(socket);
    if (others?.size === 0) byAddress.delete(state.key);
    if (watched.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  }

  function look(): void {
    const nowMs = now();
    for (const [socket, state] of watched) if (isOver(socket, state, nowMs, limits)) socket.resetAndDestroy();
  }

  server.on('connection', (socket: Socket) => {
    if (watched.size >= limits.most) {
      const given = oneOfTheMost(byAddress);
      forget(given);
      given.destroy();
    }
    const key = addressKey(socket.remoteAddress);
    watched.set(socket, {
      key,
      written: 0,
      quietSinceMs: now(),
      waitingSinceMs: Number.NaN,
      taken: 0,
      done: 0,
      queued: 0,
      lastAnswerMs: Number.NaN,
    });
    const others = byAddress.get(key);
    if (others === undefined) byAddress.set(key, new Set([socket]));
    else others.add(socket);
    socket.once('close', () => forget(socket));
    timer ??= setInterval(look, limits.lookMs).unref();
  });

  return {
    endSoon(socket) {
      const state = watched.get(socket);
      if (state !== undefined && Number.isNaN(state.lastAnswerMs)) state.lastAnswerMs = now();
    },
  };
}

/** Notes what has become of a connection since the last look, and tells whether it must end now. */
function isOver(socket: Socket, state: Watched, nowMs: number, limits: ConnectionLimits): boolean {
  const { bytesWritten, writableLength } = socket;
  noteTaken(socket, state);
  if (writableLength === 0) state.waitingSinceMs = Number.NaN;
  else if (Number.isNaN(state.waitingSinceMs) || state.taken >= TAKEN_BYTES) {
    state.waitingSinceMs = nowMs;
    state.taken = 0;
  }
  // an empty line before a request is no request: only an answer shows that something was asked for
  if (answerOn(socket) !== null || bytesWritten !== state.written) state.quietSinceMs = nowMs;
  state.written = bytesWritten;
  return (
    nowMs - state.lastAnswerMs >= limits.lingerMs ||
    nowMs - state.waitingSinceMs >= limits.takenMs ||
    nowMs - state.quietSinceMs >= limits.idleMs + limits.requestMs
  );
}

/** Counts what the client has taken since the last look, also of a large write that is not done yet (that may count twice). */
function noteTaken(socket: Socket, state: Watched): void {
  const done = socket.bytesWritten - socket.writableLength;
  // what libuv has not handed to the system yet; Node's own time-outs of sockets look at it too
  const queued = (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
  state.taken += done - state.done + Math.max(0, state.queued - queued);
  state.done = done;
  state.queued = queued;
}

/** Of the address that has the most connections the oldest on which nothing is being answered: nobody can keep the others out. */
function oneOfTheMost(byAddress: ReadonlyMap<string, ReadonlySet<Socket>>): Socket {
  let most: ReadonlySet<Socket> = new Set();
  for (const sockets of byAddress.values()) if (sockets.size > most.size) most = sockets;
  for (const socket of most) if (answerOn(socket) === null) return socket;
  return most.values().next().value as Socket;
}
