// Every connection ends: one whose request does not arrive, whose answers are not read, or that sends no request, whatever its client does.
// One timer checks all of them, so that a request costs nothing; this file has its own timer because a silent client gives no event to
// react to.
import type { Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { addressKey } from './client-address.ts';

export type ConnectionLimits = {
  /** The whole request must have arrived within this time of its first byte (or of the connection's opening). Receiving only. */
  readonly requestMs: number;
  /** The client must have read what was answered within this time. */
  readonly takenMs: number;
  /** A connection may be kept open this long without a request. */
  readonly idleMs: number;
  /** A connection is reset this long after its last answer. */
  readonly lingerMs: number;
  /** How often the connections are checked, and so how far each of these times may be exceeded. */
  readonly lookMs: number;
  /** Connections at once. One more replaces one of the address that has the most. */
  readonly most: number;
};

/** The time for a request plus one check, plus lingering and one check: less than the 35 s that behaviour §1 allows. */
export const CONNECTION_LIMITS: ConnectionLimits = {
  requestMs: 30_000,
  takenMs: 30_000,
  idleMs: 72_000,
  lingerMs: 2_000,
  lookMs: 500,
  most: 4_000,
};

/** A client that reads this much within the time is slow, not gone. */
const TAKEN_BYTES = 65_536;

type Watched = {
  readonly key: string;
  /** Bytes written at the last check. */
  written: number;
  /** Since when there has been neither a request nor an answer. */
  quietSinceMs: number;
  /** Since when bytes wait for the client to read them, and how many it has read since; NaN: none wait. */
  waitingSinceMs: number;
  taken: number;
  /** At the last check: the bytes that were finished, and those handed to the system. */
  done: number;
  queued: number;
  /** When the last answer was given; NaN: not yet. */
  lastAnswerMs: number;
};

export type Connections = {
  /** This connection has had its last answer: it is reset soon, unless its client closes it first. */
  endSoon(socket: Socket): void;
  /** Ends those on which nothing has ever arrived: Node counts them as busy, and a server that closes would wait for them. */
  endUnused(): void;
};

/** The answer that has the socket now; Node's own handler of broken requests finds it by this name too. */
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
    endUnused() {
      for (const socket of [...watched.keys()]) if (socket.bytesRead === 0) socket.destroy();
    },
  };
}

/** Records how a connection has changed since the last check, and returns whether it must end now. */
function isOver(socket: Socket, state: Watched, nowMs: number, limits: ConnectionLimits): boolean {
  const { bytesWritten, writableLength } = socket;
  noteTaken(socket, state);
  if (writableLength === 0) state.waitingSinceMs = Number.NaN;
  else if (Number.isNaN(state.waitingSinceMs) || state.taken >= TAKEN_BYTES) {
    state.waitingSinceMs = nowMs;
    state.taken = 0;
  }
  // an empty line before a request is no request: only an answer shows that there was one
  if (answerOn(socket) !== null || bytesWritten !== state.written) state.quietSinceMs = nowMs;
  state.written = bytesWritten;
  return (
    nowMs - state.lastAnswerMs >= limits.lingerMs ||
    nowMs - state.waitingSinceMs >= limits.takenMs ||
    nowMs - state.quietSinceMs >= limits.idleMs + limits.requestMs
  );
}

/** Counts what the client has read since the last check, including part of a large write in progress (which may count twice). */
function noteTaken(socket: Socket, state: Watched): void {
  const done = socket.bytesWritten - socket.writableLength;
  // what libuv has not handed to the system yet; Node's own socket time-outs use it too
  const queued = (socket as { _handle?: { writeQueueSize?: number } | null })._handle?.writeQueueSize ?? 0;
  state.taken += done - state.done + Math.max(0, state.queued - queued);
  state.done = done;
  state.queued = queued;
}

/** Of the address with the most connections, the oldest one on which nothing is being answered: no client can keep the others out. */
function oneOfTheMost(byAddress: ReadonlyMap<string, ReadonlySet<Socket>>): Socket {
  let most: ReadonlySet<Socket> = new Set();
  for (const sockets of byAddress.values()) if (sockets.size > most.size) most = sockets;
  for (const socket of most) if (answerOn(socket) === null) return socket;
  return most.values().next().value as Socket;
}
