// What the commit of an event says: one notification, which names all who are to be woken, and none where nobody waits.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { openStream } from '../../support/event-stream.ts';

let api: ApiServer;
let listener: pg.Client;
const heard: string[] = [];
beforeAll(async () => {
  api = await makeApi();
  listener = new pg.Client({ connectionString: api.url });
  await listener.connect();
  listener.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`));
  for (const channel of ['hurry', 'events_written', 'marker']) await listener.query(`listen ${channel}`);
});
afterAll(async () => {
  await listener.end();
  await api.end();
});

/** What is heard when a transaction is made. */
async function saidOf(): Promise<readonly string[]> {
  heard.length = 0;
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  await api.sql(`select pg_notify('marker', '')`);
  while (!heard.includes('marker ')) await new Promise((resolve) => listener.once('notification', resolve));
  return heard.filter((one) => one !== 'marker ');
}

test('a commit wakes who delivers and who streams with one notification, and each of them alone', async () => {
  expect(await saidOf()).toEqual([]);
  const stream = await openStream(api.base, { access_token: await api.tokenOf('shop') });
  await stream.begun();
  expect(await saidOf()).toEqual(['hurry streams']);
  await api.call('/create_webhook', { url: 'http://127.0.0.1:1/' });
  expect(await saidOf()).toEqual(['hurry deliveries,streams']);
  await stream.count(2);
  await stream.close();
});
