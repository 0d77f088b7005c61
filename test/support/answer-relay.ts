// A relay between the service and a real node that loses answers: what was asked is done, and nobody hears of it.
import { once } from 'node:events';
import { createServer, connect as openSocket, type Socket } from 'node:net';

export type AnswerRelay = {
  readonly url: string;
  /** On every connection that is open now the next answer is lost, and the connection with it. */
  loseAnswers(): void;
  /** How many connections were opened so far. */
  opened(): number;
  close(): void;
};

/** @param to the node's URL; its TLS goes through as it is */
export async function openAnswerRelay(to: string): Promise<AnswerRelay> {
  const { hostname, port } = new URL(to);
  const open = new Set<Socket>();
  const doomed = new WeakSet<Socket>();
  let opened = 0;
  const server = createServer((near) => {
    const far = openSocket(Number(port), hostname);
    for (const [one, other] of [
      [near, far],
      [far, near],
    ] as const) {
      one.on('error', () => undefined);
      one.on('close', () => other.destroy());
    }
    open.add(near);
    opened += 1;
    near.on('close', () => open.delete(near));
    near.on('data', (bytes) => far.write(bytes));
    far.on('data', (bytes) => {
      if (doomed.has(near)) near.destroy();
      else near.write(bytes);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `https://127.0.0.1:${(server.address() as { port: number }).port}`,
    loseAnswers() {
      for (const socket of open) doomed.add(socket);
    },
    opened: () => opened,
    close() {
      for (const socket of open) socket.destroy();
      server.close();
    },
  };
}
