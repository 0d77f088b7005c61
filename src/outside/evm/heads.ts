// New blocks as an Ethereum node announces them over a WebSocket (eth_subscribe, newHeads). Only hints: each makes the watchers look now, and
// everything is read by polling all the same. A socket that is dead, silent or wrong costs what it would have saved, and nothing else.
import type { Socket } from 'node:net';
import { Agent, buildConnector, WebSocket } from 'undici';
import { authorizationOf } from '../utxo/node/rpc-transport.ts';
import { plainText } from '../utxo/node/trouble.ts';

export type Heads = {
  /**
   * Calls back when a block may be there. The first listener connects, the end of the last one disconnects.
   * @returns ends this listening
   */
  listen(onHead: () => void): () => void;
  /** Why it has told of no block for a minute or longer; null while all is well, or nobody listens. */
  trouble(): string | null;
  close(): Promise<void>;
};

/** A head has some 2 KB. */
const MOST_BYTES = 64 * 1024;
/** Announcements that come closer together are one: each look costs the node some requests. */
const LEAST_BETWEEN_MS = 200;
/** No chain makes more announcements than this in that time; more would only be work for us. */
const MOST_MESSAGES = 2_000;
const COUNTED_MS = 10_000;
/** Five slots of the main chain without a block do not happen: this connection is dead, whatever it looks like. */
const SILENT_MS = 60_000;
const CONNECT_WITHIN_MS = 5_000;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;
const TOLD_AFTER_MS = 60_000;
const SUBSCRIBE = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] });

/**
 * @param url ws(s)://user:password@host:port[/path]
 * @param options `silentMs`: how long a connection may tell of nothing before it is made anew
 */
export function createHeads(url: string, options: { readonly silentMs?: number } = {}): Heads {
  const { silentMs = SILENT_MS } = options;
  const address = new URL(url);
  const headers = authorizationOf(address);
  address.username = '';
  address.password = '';
  const listeners = new Set<() => void>();
  const tell = createTelling(listeners);
  let end: (() => void) | null = null;
  let again: NodeJS.Timeout | undefined;
  let pauseMs = FIRST_PAUSE_MS;
  let reason = 'it has not answered yet';
  /** When it began to tell of nothing. */
  let wrongSinceMs: number | null = null;

  function connect(): void {
    wrongSinceMs ??= performance.now();
    end = openSocket(address.href, headers, silentMs, {
      onSubscribed() {
        pauseMs = FIRST_PAUSE_MS;
        wrongSinceMs = null;
        tell.now(); // what came while we were not connected
      },
      onHead: tell.now,
      onEnd(why) {
        end = null;
        reason = why;
        wrongSinceMs ??= performance.now();
        again = setTimeout(connect, pauseMs);
        pauseMs = Math.min(LONGEST_PAUSE_MS, pauseMs * 2);
      },
    });
  }
  function disconnect(): void {
    clearTimeout(again);
    tell.stop();
    end?.();
    end = null;
    wrongSinceMs = null;
    pauseMs = FIRST_PAUSE_MS;
  }

  return {
    listen(onHead) {
      const own = (): void => onHead();
      listeners.add(own);
      if (listeners.size === 1) connect();
      return () => {
        if (listeners.delete(own) && listeners.size === 0) disconnect();
      };
    },
    trouble: () =>
      wrongSinceMs === null || performance.now() - wrongSinceMs < TOLD_AFTER_MS
        ? null
        : `${address.host}: it announces no blocks (${reason}): they are found by polling`,
    async close() {
      listeners.clear();
      disconnect();
    },
  };
}

/** Tells all listeners, at once and then not more often than they can use. */
function createTelling(listeners: ReadonlySet<() => void>) {
  let timer: NodeJS.Timeout | undefined;
  let isWaiting = false;
  function now(): void {
    isWaiting = timer !== undefined;
    if (isWaiting) return;
    for (const tell of listeners) tell();
    timer = setTimeout(() => {
      timer = undefined;
      if (isWaiting) now();
    }, LEAST_BETWEEN_MS);
  }
  return {
    now,
    stop(): void {
      clearTimeout(timer);
      timer = undefined;
      isWaiting = false;
    },
  };
}

type Told = { onSubscribed(): void; onHead(): void; onEnd(why: string): void };

/** One connection. @returns ends it, without telling */
function openSocket(url: string, headers: Record<string, string>, silentMs: number, told: Told): () => void {
  const connect = buildConnector({ timeout: CONNECT_WITHIN_MS });
  let connection: Socket | null = null;
  const dispatcher = new Agent({
    connect(options, callback) {
      connect(options, (...made) => {
        connection = made[1];
        callback(...made);
      });
    },
    headersTimeout: CONNECT_WITHIN_MS,
    webSocket: { maxPayloadSize: MOST_BYTES },
  });
  const socket = new WebSocket(url, { dispatcher, headers });
  let isOver = false;
  let silence: NodeJS.Timeout | undefined;
  let counted = 0;
  let countedSinceMs = performance.now();

  function over(why: string | null): void {
    if (isOver) return;
    isOver = true;
    clearTimeout(silence);
    // whoever is not there any more answers no farewell either; an upgraded connection is no longer the dispatcher's
    connection?.destroy();
    void dispatcher.destroy().catch(() => undefined);
    if (why !== null) told.onEnd(plainText(why, 200));
  }
  function listenOn(): void {
    clearTimeout(silence);
    silence = setTimeout(() => over(`nothing for ${silentMs / 1000} s`), silentMs);
  }
  /** Whether it tells more than any chain has to tell. */
  function isFlood(): boolean {
    const nowMs = performance.now();
    if (nowMs - countedSinceMs > COUNTED_MS) {
      counted = 0;
      countedSinceMs = nowMs;
    }
    counted++;
    return counted > MOST_MESSAGES;
  }

  socket.addEventListener('open', () => socket.send(SUBSCRIBE));
  socket.addEventListener('message', ({ data }: { readonly data: unknown }) => {
    if (isOver) return;
    if (isFlood()) return over('it announces without end');
    const what = typeof data === 'string' ? kindOf(data) : 'other';
    if (what === 'refusal') return over('it refuses eth_subscribe');
    if (what === 'other') return;
    listenOn();
    if (what === 'subscribed') told.onSubscribed();
    else told.onHead();
  });
  socket.addEventListener('error', (event) => over(messageOf(event)));
  socket.addEventListener('close', () => over('the connection was closed'));
  listenOn();
  return () => over(null);
}

/** What a message says: our call was taken or refused, or there is news. */
function kindOf(text: string): 'subscribed' | 'refusal' | 'head' | 'other' {
  let message: unknown;
  try {
    message = JSON.parse(text);
  } catch {
    return 'other';
  }
  if (typeof message !== 'object' || message === null) return 'other';
  const { method, id, error, result } = message as Record<string, unknown>;
  if (method === 'eth_subscription') return 'head';
  if (id !== 1 && error === undefined) return 'other';
  return error === undefined && typeof result === 'string' ? 'subscribed' : 'refusal';
}

function messageOf(event: object): string {
  const { error, message } = event as {
    readonly error?: { readonly cause?: Error; readonly message?: string };
    readonly message?: string;
  };
  return error?.cause?.message ?? error?.message ?? message ?? 'no connection';
}
