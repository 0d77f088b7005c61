// The announcements of a simulated node (bitcoind's -zmqpubrawtx and -zmqpubhashblock, both at one address): a publisher of ZeroMQ's wire
// protocol (ZMTP 3.0, RFC 23 of ZeroMQ: NULL mechanism, PUB socket).
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { COMMAND, frame, GREETING, GREETING_BYTES, LONG, MORE, pong, ready } from '../../core/zmtp-frames.ts';
import type { Effect } from './chain-effects.ts';
import { tip } from './chain-state.ts';
import type { SimulatedNode } from './simulated-node.ts';

export type Announcer = {
  /** `tcp://127.0.0.1:port` */
  readonly address: string;
  close(): Promise<void>;
};

const READY = ready('PUB');
const LARGEST_FRAME = 1_024;
/** A subscriber that does not read loses messages while this many bytes wait for it. */
const MOST_WAITING_BYTES = 32 * 1024 * 1024;

/** Publishes what happens to a node from now on, on a free loopback port; while the node is cut off or hangs there are no connections. */
export async function openAnnouncer(node: SimulatedNode): Promise<Announcer> {
  const subscribers = new Map<Socket, Set<string>>();
  const counters = { rawtx: 0, hashblock: 0 };
  const isSilent = (): boolean => node.state.trouble.down || node.state.trouble.fault === 'hang';

  function publish(topic: keyof typeof counters, body: Buffer): void {
    const counter = Buffer.alloc(4);
    counter.writeUInt32LE(counters[topic]);
    counters[topic] = (counters[topic] + 1) >>> 0;
    const message = Buffer.concat([frame(MORE, Buffer.from(topic, 'latin1')), frame(MORE, body), frame(0, counter)]);
    for (const [socket, prefixes] of subscribers) {
      const wanted = [...prefixes].some((prefix) => topic.startsWith(prefix));
      if (wanted && socket.writableLength < MOST_WAITING_BYTES) socket.write(message);
    }
  }

  const server = createServer((socket) => {
    if (isSilent()) {
      socket.destroy();
      return;
    }
    socket.setNoDelay(true); // as nodes do
    const prefixes = new Set<string>();
    subscribers.set(socket, prefixes);
    socket.on('error', () => undefined); // 'close' follows
    socket.on('close', () => subscribers.delete(socket));
    socket.on('data', createReader(socket, prefixes));
    socket.write(GREETING);
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, '127.0.0.1', resolve);
  });
  const cutOff = (): void => {
    for (const socket of subscribers.keys()) socket.destroy();
  };
  const address = `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`;
  node.announce(address, (effects) => {
    for (const [topic, body] of messagesOf(node, effects)) publish(topic, body);
    if (isSilent()) cutOff();
  });
  return {
    address,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        cutOff();
      }),
  };
}

/** What bitcoind publishes of a move: transactions that enter, those of connected and disconnected blocks, and the new tip. */
function* messagesOf({ state }: SimulatedNode, effects: readonly Effect[]): Generator<readonly ['rawtx' | 'hashblock', Buffer]> {
  const mined = state.active.slice(state.active.length - effects.filter(([what]) => what === 'block').length);
  for (const effect of effects) {
    if (effect[0] === 'tx') {
      const raw = Buffer.from(effect[1], 'hex');
      const isDenied = effects.some(([what]) => what === 'deny');
      if (!isDenied) yield ['rawtx', raw];
    } else if (effect[0] === 'rewind') yield ['hashblock', Buffer.from(tip(state).hash, 'hex')];
  }
  for (const block of mined) {
    for (const { raw } of block.transactions) yield ['rawtx', raw];
    yield ['hashblock', Buffer.from(block.hash, 'hex')];
  }
}

/** The function for a subscriber's bytes; a subscriber that violates the protocol is cut off. */
function createReader(socket: Socket, prefixes: Set<string>): (chunk: Buffer) => void {
  let bytes = Buffer.alloc(0);
  let isGreeted = false;
  let isReady = false;

  function onFrame(flags: number, body: Buffer): void {
    const name = (flags & COMMAND) === 0 ? null : body.toString('latin1', 1, 1 + (body[0] ?? 0));
    if (name === 'READY') {
      isReady = true;
      socket.write(READY);
    } else if (name === 'PING') socket.write(pong(body));
    else if (name === null && isReady && body[0] === 1) prefixes.add(body.toString('latin1', 1));
    else if (name === null && isReady && body[0] === 0) prefixes.delete(body.toString('latin1', 1));
    else socket.destroy();
  }

  return (chunk) => {
    bytes = Buffer.concat([bytes, chunk]);
    if (!isGreeted) {
      if (bytes.length < GREETING_BYTES) return;
      isGreeted = true;
      bytes = bytes.subarray(GREETING_BYTES);
    }
    while (bytes.length >= 2) {
      const [flags, length] = bytes as unknown as [number, number];
      if ((flags & LONG) !== 0 || length > LARGEST_FRAME) {
        socket.destroy();
        return;
      }
      if (bytes.length < 2 + length) return;
      onFrame(flags, bytes.subarray(2, 2 + length));
      bytes = bytes.subarray(2 + length);
    }
  };
}
