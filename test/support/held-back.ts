// A way to a Lightning node on which what that node says can be held back from a point on: it is there then, and never says that it has what it is sent.
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';

export type HeldBack = {
  /** Where others connect to it. */
  readonly peer: string;
  /** Ends the connections that are open; of what it says on each one after that so many bytes pass. */
  pass(bytes: number): void;
  close(): Promise<void>;
};

/**
 * What an LND says of itself, and of its only channel, when it is connected to: the second act of the handshake, `init` and `channel_reestablish` as 0.21 writes
 * them, each message with its length before it. What it says after that is held back.
 */
export const THERE = 50 + (18 + 277) + 149;

/** @param to where the node listens */
export async function holdingBack(to: string): Promise<HeldBack> {
  const [host, port] = to.split(':');
  const open = new Set<Socket>();
  let most = Number.POSITIVE_INFINITY;
  const server = createServer((caller) => {
    const node = connect(Number(port), host);
    let left = most;
    const ends = [caller, node];
    for (const end of ends) {
      open.add(end);
      end
        .on('error', () => undefined)
        .on('close', () => {
          for (const one of ends) one.destroy();
          open.delete(end);
        });
    }
    caller.on('data', (bytes) => node.write(bytes));
    node.on('data', (bytes) => {
      const passed = bytes.subarray(0, left);
      left -= passed.length;
      if (passed.length > 0) caller.write(passed);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const end = (): void => {
    for (const one of open) one.destroy();
  };
  return {
    peer: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    pass(bytes) {
      most = bytes;
      end();
    },
    async close() {
      const closed = once(server, 'close');
      server.close();
      end();
      await closed;
    },
  };
}
