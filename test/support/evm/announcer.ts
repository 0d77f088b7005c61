// A WebSocket server (RFC 6455) that announces blocks as Ethereum's nodes do, or does not: honest, silent, wrong, flooding, refusing.
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';

const MAGIC = '258EAFA5-E914-47DA-95CA-C5AB0DC85B11';
const TEXT = 0x81;

export type Manner =
  /** Takes the subscription. */
  | 'honest'
  /** Takes the connection and answers nothing. */
  | 'silent'
  /** Takes the TCP connection and not even the handshake. */
  | 'mute'
  /** Refuses the subscription. */
  | 'refusing'
  /** Answers the handshake with 403. */
  | 'forbidding';

/** One text frame of a server, which is not masked. */
function frame(text: string): Buffer {
  const body = Buffer.from(text);
  if (body.length < 126) return Buffer.concat([Buffer.from([TEXT, body.length]), body]);
  const head = Buffer.alloc(body.length < 65_536 ? 4 : 10);
  head[0] = TEXT;
  head[1] = body.length < 65_536 ? 126 : 127;
  if (body.length < 65_536) head.writeUInt16BE(body.length, 2);
  else head.writeBigUInt64BE(BigInt(body.length), 2);
  return Buffer.concat([head, body]);
}

const reply = (body: object): Buffer => frame(JSON.stringify({ jsonrpc: '2.0', ...body }));
const head = (number: number): Buffer =>
  reply({
    method: 'eth_subscription',
    params: { subscription: '0x1', result: { number: `0x${number.toString(16)}`, hash: `0x${'1'.repeat(64)}` } },
  });

export async function startAnnouncer(manner: Manner) {
  const sockets = new Set<Socket>();
  const asked: IncomingMessage[] = [];
  const server = createServer();
  server.on('connection', (socket) => {
    sockets.add(socket);
    // Node's HTTP server keeps its half of an upgraded connection open otherwise
    socket.on('end', () => socket.destroy());
    socket.on('close', () => sockets.delete(socket)).on('error', () => undefined);
  });
  server.on('upgrade', (request: IncomingMessage, socket: Socket) => {
    asked.push(request);
    if (manner === 'mute') return;
    if (manner === 'forbidding') return void socket.end('HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n');
    const accept = createHash('sha1').update(`${request.headers['sec-websocket-key']}${MAGIC}`).digest('base64');
    socket.write(
      `HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: ${accept}\r\n\r\n`,
    );
    // the first frame of a client is its subscription
    socket.once('data', () => {
      if (manner === 'honest') socket.write(reply({ id: 1, result: '0x1' }));
      if (manner === 'refusing') socket.write(reply({ id: 1, error: { code: -32601, message: 'notifications not supported' } }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as { port: number };
  const write = (bytes: Buffer): void => {
    for (const socket of sockets) if (!socket.destroyed) socket.write(bytes);
  };
  return {
    url: `ws://user:secret@127.0.0.1:${port}/announcements`,
    /** How many connections it was asked for, and with which credentials. */
    asked,
    connections: () => sockets.size,
    announce: (number = 1) => write(head(number)),
    say: (text: string) => write(frame(text)),
    cut(): void {
      for (const socket of sockets) socket.destroy();
    },
    async close(): Promise<void> {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close');
    },
  };
}
