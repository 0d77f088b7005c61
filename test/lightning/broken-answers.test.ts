// The connection breaks in the middle of the answer to a request to pay, in whatever way: the node may have it, so nobody has answered.
import { once } from 'node:events';
import net from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { AMOUNT, at, close, engine, invoice, looks, open, outgoing, status } from './funded-payouts.ts';

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
