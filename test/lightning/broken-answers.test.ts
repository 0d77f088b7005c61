// The connection breaks in the middle of the answer to a request to pay, in whatever way: the node may have it, so nobody has answered.
import { once } from 'node:events';
import { createServer } from 'node:http';
import net from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LEASE_MS } from '../../src/core/payouts/states.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { AMOUNT, at, close, engine, invoice, looks, open, outgoing, pass, status } from './funded-payouts.ts';

let server: net.Server;
/** What is done to the bytes that the node sends. */
let change: (bytes: Buffer) => Buffer = (bytes) => bytes;
const sockets = new Set<net.Socket>();
let url = '';

beforeEach(async () => {
  change = (bytes) => bytes;
  server = net.createServer((client) => {
    const node = net.connect(Number(new URL(engine.payTarget().url).port), '127.0.0.1');
    for (const socket of [client, node]) {
      sockets.add(socket);
      socket.on('error', () => socket.destroy());
    }
    client.pipe(node);
    node.on('data', (bytes) => client.write(change(bytes)));
    node.on('close', () => client.destroy());
    client.on('close', () => node.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  url = `https://127.0.0.1:${(server.address() as net.AddressInfo).port}`;
  await open({}, () => createLndPayer(async () => ({ ...engine.payTarget(), url })));
});
afterEach(async () => {
  for (const socket of sockets) socket.destroy();
  server.close();
  await close();
});

test('an answer that TLS cannot read is none, though the node was asked', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  change = (bytes) => {
    if (outgoing().payment(to.hash) === null) return bytes;
    const spoilt = Buffer.from(bytes);
    spoilt[spoilt.length - 1]! ^= 1;
    return spoilt;
  };
  await at.look();
  change = (bytes) => bytes;
  expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
  expect((await at.payment(id)).unanswered_until).not.toBeNull();
  await looks(1);
  outgoing().resolve(to.hash, true);
  await looks(1);
  expect(await status(id)).toBe('completed');
});

test.each([
  [2, 'routerrpc server shutting down', 'unanswered'],
  [14, 'transport is closing', 'unanswered'],
  [2, 'max fee exceeds the limit', 'refused'],
  [2, 'wallet locked, unlock it to enable full RPC access', 'refused'],
  [2, 'caveat "time-before 2026-01-01T00:00:00Z" not satisfied: macaroon has expired', 'refused'],
  [2, 'invoice expired. Valid until 2026-01-01 00:00:00 +0000 UTC', 'never'],
  [6, 'payment is in transition', 'known'],
])('of what the node says instead of a payment, code %i %s is %s', async (code, message, state) => {
  const node = createServer((_request, response) =>
    response.writeHead(500).end(JSON.stringify({ error: { code, message, details: [] } })),
  );
  const at = `http://127.0.0.1:${await listen(node, 0)}`;
  const payer = createLndPayer(async () => ({ ...engine.payTarget(), url: at, certificate: null }));
  const order = { paymentRequest: 'lnbc1', amount: null, feeLimit: 10n, notAfterMs: Date.now() + 60_000 };
  expect(await payer.send(order)).toMatchObject({ state });
  payer.close();
  await closeServer(node);
});

test('a node by whose clock a lease has ended refuses the request, and that is told with what may be the reason', async () => {
  const to = invoice();
  const { id } = await at.request(to.request, AMOUNT);
  await at.look({
    send(asked) {
      pass(LEASE_MS + 1_000);
      return at.paying.send(asked);
    },
  });
  expect(outgoing().payment(to.hash)).toBeNull();
  expect((await at.payment(id)).trouble).toMatch(/macaroon has expired .*: is the node's clock ahead/);
  await looks(1);
  expect(await status(id)).toBe('completed');
});
