// Streams of events when no place is left: nobody keeps the others out, and whoever is ended for another goes on where he was.
import { once } from 'node:events';
import { connect as openSocket } from 'node:net';
import { expect, test } from 'vitest';
import { addMerchant } from '../../src/flow/merchants/merchants.ts';
import { type OpenStream, openStream } from '../support/event-stream.ts';
import { eventually } from '../support/service.ts';
import { makeApi, PASSWORD } from './api-server.ts';
import { useStreams } from './stream-calls.ts';

const streamLimits = { ofAll: 6, ofOne: 5 };
const calls = useStreams({ streamLimits });
const { open, started } = calls;
const statusOf = async (username: string): Promise<number> => (await open({}, {}, username)).response.status;

test('a merchant who has fewer gets the oldest of whoever has most, until nobody has two more than he', async () => {
  const other = [await open({}, {}, 'other'), await open({}, {}, 'other')];
  const shop = [await open(), await open(), await open(), await open()];
  await addMerchant(calls.api.ctx, { username: 'third', password: PASSWORD, email: 't@example.com', businessName: 'T' });
  // of the shop, which then has three
  expect(await statusOf('third')).toBe(200);
  await shop[0]!.over();
  expect(shop[0]!.messages).toMatchObject([{ event: 'end', data: '{"reason":"overloaded"}' }]);
  // the shop would have no more than he then
  expect(await statusOf('other')).toBe(503);
  // then all have two
  expect(await statusOf('third')).toBe(200);
  await shop[1]!.over();
  for (const username of ['third', 'shop', 'other']) {
    const reply = await calls.api.call('/stream_events', {}, {}, username);
    expect([reply.status, reply.json.error]).toEqual([503, 'overloaded']);
  }
  const id = await started();
  for (const stream of shop.slice(2)) await stream.count(1);
  await calls.api.call('/create_transaction', { amount: '1.00', crypto_selected: 'BTC' }, {}, 'other');
  for (const stream of other) await stream.count(1);
  // when there is a place again
  await other[0]!.close();
  const again = await eventually('there is a place again', async () => {
    const stream = await open({ starting_after: shop[0]!.cursor() });
    return stream.response.status === 200 ? stream : null;
  });
  await again.count(1);
  expect(again.events()[0].data.object.transaction_id).toBe(id);
});

test('whoever is ended gives the place at once, also one that does not read', async () => {
  const api = await makeApi({ streamLimits });
  const body = JSON.stringify({ access_token: await api.tokenOf('shop') });
  const sockets = Array.from({ length: 5 }, () => openSocket(Number(new URL(api.base).port), '127.0.0.1'));
  for (const socket of sockets) {
    socket.write(
      `POST /stream_events HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    );
    await once(socket, 'readable');
    socket.pause();
  }
  const streams: OpenStream[] = [];
  for (let n = 0; n < 4; n++) streams.push(await openStream(api.base, { access_token: await api.tokenOf('other') }));
  expect(streams.map(({ response }) => response.status)).toEqual([200, 200, 200, 503]);
  for (const socket of sockets) socket.destroy();
  for (const stream of streams) await stream.close();
  await api.end();
});
