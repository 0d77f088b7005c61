// A relay between a test and its database that can freeze: a server that is there but does not answer.
import { once as event } from 'node:events';
import { createServer, connect as openSocket, type Socket } from 'node:net';
import { connect } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from './postgres.ts';

/**
 * Carries bytes between a port and the database's socket, until it is frozen: from then on it holds them, as a stopped server would.
 * @param alter what of the bytes to the database arrives there
 */
export async function openRelay(url: string, alter: (bytes: Buffer) => Buffer = (bytes) => bytes) {
  let path = socketOf(url);
  const sockets = new Set<Socket>();
  let frozen = false;
  const server = createServer((near) => {
    const far = openSocket(path);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(one);
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
      one.on('data', (bytes: Buffer) => other.write(one === near ? alter(bytes) : bytes));
      if (frozen) one.pause();
    }
  });
  server.listen(0, '127.0.0.1');
  await event(server, 'listening');
  const relayed = new URL(url);
  relayed.hostname = '127.0.0.1';
  relayed.port = String((server.address() as { port: number }).port);
  relayed.searchParams.delete('host');
  relayed.searchParams.delete('port');
  function cut(): void {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  }
  return {
    url: relayed.href,
    freeze() {
      frozen = true;
      for (const socket of sockets) socket.pause();
    },
    thaw() {
      frozen = false;
      for (const socket of sockets) socket.resume();
    },
    /** Holds the bytes of the connections that are open, which none of their ends learns; later ones are carried: a firewall that has forgotten them. */
    forget() {
      for (const socket of sockets) socket.pause();
    },
    cut,
    /** Leads to another server from now on, whose database has the same name. */
    moveTo(otherUrl: string) {
      path = socketOf(otherUrl);
      cut();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

function socketOf(url: string): string {
  const target = new URL(url);
  return `${target.searchParams.get('host')}/.s.PGSQL.${target.searchParams.get('port') ?? (target.port || '5432')}`;
}

/** A fresh database that the service reaches through a relay only. `answersWithinMs` as in connect. */
export async function openRelayedDatabase(options: { readonly answersWithinMs?: number } = {}) {
  const database = await freshDatabase();
  const relay = await openRelay(database.url);
  const db = connect({ url: relay.url, role: 'bursar_app', maxConnections: 2, applicationName: 'test', ...options });
  return {
    relay,
    db,
    /** The same database without the relay. */
    direct: database.db,
    async close() {
      relay.close();
      await db.close();
      await database.drop();
    },
  };
}
