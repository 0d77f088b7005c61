// Stands before a server's port, counts the requests that pass, and cuts its clients off while it is shut.
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';

/** Opens it on a port of its own. */
export async function openSeverableProxy(port: number) {
  let isShut = false;
  let requests = 0;
  const sockets = new Set<Socket>();
  const server = createServer((near) => {
    near.on('error', () => undefined);
    if (isShut) return void near.destroy();
    const far = connect(port, '127.0.0.1');
    sockets.add(near);
    far.on('error', () => near.destroy());
    near.on('close', () => {
      sockets.delete(near);
      far.destroy();
    });
    far.on('close', () => near.destroy());
    near.on('data', (bytes) => {
      // a request is small: each has its own header
      requests += bytes.toString('latin1').split('POST / ').length - 1;
    });
    near.pipe(far).pipe(near);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
  };
  return {
    url: `http://127.0.0.1:${(server.address() as { port: number }).port}`,
    requests: () => requests,
    shut() {
      isShut = true;
      cut();
    },
    open() {
      isShut = false;
    },
    close() {
      server.close();
      cut();
    },
  };
}
