// A subscriber of ZeroMQ's wire protocol (ZMTP 3.0, RFC 23 of ZeroMQ: NULL mechanism, SUB socket), by which full nodes publish. It
// reconnects by itself, again and again.
import { connect, type Socket } from 'node:net';
import { COMMAND, frame, GREETING, GREETING_BYTES, LONG, MORE, pong, ready as readyFrame } from '../../../core/zmtp-frames.ts';

export type SubscriberOptions = {
  /** `tcp://host:port` (an IPv6 host in brackets) or `ipc://path`. */
  readonly address: string;
  readonly topics: readonly string[];
  /** A whole message: its first part is the topic. */
  readonly onMessage: (parts: readonly Buffer[]) => void;
  /** Connected, for the first time or again: messages published before were missed. */
  readonly onGap: () => void;
};

export type Subscription = {
  /** Whether it is connected and subscribed: published messages arrive. */
  isLive(): boolean;
  close(): void;
};

/** A block of 32 MB, and a margin. */
const LARGEST_FRAME = 40 * 1024 * 1024;
const MOST_PARTS = 16;
const FIRST_PAUSE_MS = 100;
const READY = readyFrame('SUB');
const LONGEST_PAUSE_MS = 5_000;
const CONNECT_WITHIN_MS = 10_000;
const KEEP_ALIVE_MS = 30_000;

class NotZmtp extends Error {}

/** Whether an address is one that `subscribe` takes. */
export const isPublisherAddress = (address: string): boolean => targetOf(address) !== null;

/**
 * Subscribes; a publisher that is not there, goes away or violates the protocol is tried again after a pause of at most 5 s. Throws
 * TypeError for an address that is neither of the two.
 */
export function subscribe(options: SubscriberOptions): Subscription {
  const target = targetOf(options.address);
  if (target === null) throw new TypeError(`${options.address}: accepted are tcp://host:port and ipc://path`);
  let socket: Socket | null = null;
  let timer: NodeJS.Timeout | null = null;
  let pauseMs = FIRST_PAUSE_MS;
  let closed = false;
  let live = false;

  function open(to: Target): void {
    const current = connect(to);
    socket = current;
    // an announcement must not keep the process alive
    current.unref();
    const giveUp = setTimeout(() => current.destroy(), CONNECT_WITHIN_MS).unref();
    const read = createReader(current, options, () => {
      clearTimeout(giveUp);
      pauseMs = FIRST_PAUSE_MS;
      live = true;
      options.onGap();
    });
    current.setKeepAlive(true, KEEP_ALIVE_MS);
    current.setNoDelay(true);
    current.on('data', (chunk: Buffer) => {
      try {
        if (!closed) read(chunk);
      } catch (error) {
        if (!(error instanceof NotZmtp)) throw error;
        current.destroy();
      }
    });
    current.on('end', () => current.destroy());
    current.on('error', () => undefined); // 'close' follows
    current.on('close', () => {
      clearTimeout(giveUp);
      live = false;
      if (closed) return;
      timer = setTimeout(() => open(to), pauseMs).unref();
      pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS);
    });
  }

  open(target);
  return {
    isLive: () => live && !closed,
    close() {
      closed = true;
      if (timer !== null) clearTimeout(timer);
      socket?.destroy();
    },
  };
}

type Target = { readonly host: string; readonly port: number } | { readonly path: string };

function targetOf(address: string): Target | null {
  const tcp = /^tcp:\/\/(\[[^\]]+\]|[^:[\]]+):(\d{1,5})$/.exec(address);
  if (tcp !== null && Number(tcp[2]) < 65_536) return { host: (tcp[1] as string).replace(/^\[|\]$/g, ''), port: Number(tcp[2]) };
  const ipc = /^ipc:\/\/(.+)$/.exec(address);
  return ipc === null ? null : { path: (ipc[1] as string).replace(/^@/, '\0') };
}

/** Greets on a connection and returns the function for incoming bytes. Throws NotZmtp for what no publisher sends. */
function createReader(
  socket: Socket,
  { topics, onMessage }: Pick<SubscriberOptions, 'topics' | 'onMessage'>,
  onReady: () => void,
): (chunk: Buffer) => void {
  const input = createInput();
  let greeted = false;
  let ready = false;
  let parts: Buffer[] = [];

  function onCommand(body: Buffer): void {
    const name = body.toString('latin1', 1, 1 + (body[0] ?? 0));
    if (name === 'READY' && !ready) {
      ready = true;
      // in one write: the second of two waits until the publisher has acknowledged the first, some 40 ms in which it drops that topic
      socket.write(Buffer.concat(topics.map((topic) => frame(0, Buffer.concat([Buffer.of(1), Buffer.from(topic, 'latin1')])))));
      onReady();
    } else if (name === 'PING') {
      // two bytes of time-to-live, then a context that is sent back
      socket.write(pong(body));
    } else if (name === 'ERROR') throw new NotZmtp('refused by the publisher');
  }

  function onFrame(flags: number, body: Buffer): void {
    if ((flags & COMMAND) !== 0) {
      onCommand(body);
      return;
    }
    if (!ready) throw new NotZmtp('a message before READY');
    if (parts.length === MOST_PARTS) throw new NotZmtp('a message of too many parts');
    parts.push(body);
    if ((flags & MORE) !== 0) return;
    const whole = parts;
    parts = [];
    onMessage(whole);
  }

  socket.write(GREETING);
  return (chunk) => {
    input.add(chunk);
    if (!greeted) {
      const greeting = input.take(GREETING_BYTES);
      if (greeting === null) return;
      checkGreeting(greeting);
      greeted = true;
      socket.write(READY);
    }
    for (;;) {
      const head = input.peek(9);
      if (head.length < 2) return;
      const flags = head[0] as number;
      const isLong = (flags & LONG) !== 0;
      if (isLong && head.length < 9) return;
      const size = isLong ? Number(head.readBigUInt64BE(1)) : (head[1] as number);
      if (flags > 7 || size > LARGEST_FRAME) throw new NotZmtp('a frame that no publisher sends');
      const headBytes = isLong ? 9 : 2;
      const whole = input.take(headBytes + size);
      if (whole === null) return;
      onFrame(flags, whole.subarray(headBytes));
    }
  };
}

/** Bytes that arrived in pieces; joined once per frame, however many pieces there were. */
function createInput() {
  let pieces: Buffer[] = [];
  let length = 0;
  function first(bytes: number): Buffer {
    if ((pieces[0]?.length ?? 0) < bytes) pieces = [Buffer.concat(pieces, length)];
    return pieces[0] as Buffer;
  }
  return {
    add(piece: Buffer): void {
      pieces.push(piece);
      length += piece.length;
    },
    /** Up to this many bytes, without consuming them. */
    peek(bytes: number): Buffer {
      const [one] = pieces;
      return (one !== undefined && one.length >= bytes ? one : Buffer.concat(pieces.slice(0, bytes))).subarray(0, bytes);
    },
    /** Exactly this many bytes; null when they are not all there. */
    take(bytes: number): Buffer | null {
      if (length < bytes) return null;
      const from = first(bytes);
      const taken = from.subarray(0, bytes);
      length -= bytes;
      if (from.length === bytes) pieces.shift();
      else pieces[0] = from.subarray(bytes);
      return taken;
    },
  };
}

function checkGreeting(greeting: Buffer): void {
  const isZmtp = greeting[0] === 0xff && greeting[9] === 0x7f && (greeting[10] as number) >= 3;
  if (!isZmtp || greeting.toString('latin1', 12, 32).replace(/\0+$/, '') !== 'NULL') throw new NotZmtp('another protocol');
}
