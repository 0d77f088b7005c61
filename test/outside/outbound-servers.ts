// Servers on loopback that a call may meet, and how a test calls.
import { once } from 'node:events';
import { createServer as createHttpServer, type RequestListener } from 'node:http';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { afterEach } from 'vitest';
import type { Outbound, OutboundRequest } from '../../src/core/outbound.ts';

export const closing: (() => unknown)[] = [];
/** Closes what a test of the file has opened. */
export function outboundServersForEach(): void {
  afterEach(async () => {
    for (const close of closing.splice(0)) await close();
  });
}

export const asking: Omit<OutboundRequest, 'url'> = {
  method: 'POST',
  headers: {},
  body: '{}',
  connectionsOf: 'wh_1',
  merchantId: 1n,
  withinMs: 5_000,
  mostBytes: 1024,
};

export function opened(outbound: Outbound): Outbound {
  closing.push(() => outbound.close());
  return outbound;
}

/** A server on loopback that speaks bytes; it counts who connects. */
export async function listening(
  onConnection: (socket: Socket) => void = () => undefined,
): Promise<{ port: number; connections(): number }> {
  let connections = 0;
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    connections++;
    sockets.add(socket.on('error', () => undefined));
    onConnection(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, connections: () => connections };
}

export async function serving(listener: RequestListener): Promise<string> {
  const server = createHttpServer(listener).listen(0, '127.0.0.1');
  await once(server, 'listening');
  closing.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
