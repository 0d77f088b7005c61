// Answers of LND as bytes on the wire: one that was read to its end, and is then no longer wanted.
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createLndRest, LndRefusal } from '../../src/outside/lightning/lnd-rest.ts';

const NONE = { error: { code: 5, message: 'payment is unknown' } };
const faults: unknown[] = [];
const uncaught = (error: unknown) => faults.push(error);
let server: Server;
afterEach(() => {
  server.closeAllConnections();
  server.close();
});

test.each(['at once', 'a moment later'])('an answer that has ended can be given up %s', async (when) => {
  server = createServer((_, response) => response.writeHead(404).end(JSON.stringify(NONE)));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const rest = createLndRest(async () => ({ url, certificate: null, macaroon: '00' }));
  process.prependListener('uncaughtException', uncaught);
  for (let n = 0; n < 50; n++) {
    const ending = new AbortController();
    const lines = rest.lines('/v2/router/track/00', ending.signal);
    await expect(lines.next()).rejects.toThrow(LndRefusal);
    if (when === 'a moment later') await new Promise((resolve) => setImmediate(resolve));
    ending.abort();
    await new Promise((resolve) => setImmediate(resolve));
  }
  process.off('uncaughtException', uncaught);
  expect(faults).toEqual([]);
  rest.close();
});
