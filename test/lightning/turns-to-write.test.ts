// LND writes a payment down in two turns where it first writes which numbers it gives from then on (after a start, and each thousandth): whoever waits for one
// turn of another comes between the two.
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, test } from 'vitest';
import { createLnd } from '../../src/outside/lightning/lnd.ts';

test('a node has had its turn to write once it had two, a second apart', async () => {
  const turns: number[] = [];
  const server = createServer((request, response) => {
    expect(request.url).toBe('/v2/invoices/cancel');
    request.resume().on('end', () => {
      turns.push(performance.now());
      response.writeHead(404, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ code: 5, message: 'unable to locate invoice', details: [] }));
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const port = createLnd(async () => ({ url, certificate: null, macaroon: '00' }), { chain: 'regtest' });
  try {
    await port.writes();
    expect(turns).toHaveLength(2);
    expect((turns[1] ?? 0) - (turns[0] ?? 0)).toBeGreaterThan(900);
  } finally {
    port.close();
    await new Promise((done) => server.close(done));
  }
});
