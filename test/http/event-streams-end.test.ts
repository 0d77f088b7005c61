// The stream of events where something ends: readers who do not read, tokens, accounts, notifications, the database's past, the server.

import { once } from 'node:events';
import { connect as openSocket, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { STREAM_API } from '../../src/contract/webhook-api.ts';
import { STREAM_LIMITS } from '../../src/http/stream-places.ts';
import { type OpenStream, openStream } from '../support/event-stream.ts';
import { makeApi, PASSWORD } from './api-server.ts';
import { useStreams } from './stream-calls.ts';

const PATH = STREAM_API.streamEvents.path;
const calls = useStreams();
const { open, started } = calls;
const ended = (stream: OpenStream) => stream.messages.at(-1);

test('a reader that does not read costs no memory, delays nobody, and gets everything once it reads', async () => {
  const quick = await open();
  const body = JSON.stringify({ access_token: await calls.api.tokenOf('shop') });
  const socket = openSocket(Number(new URL(calls.api.base).port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(
    `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  await once(socket, 'readable');
  socket.pause();
  const id = await started();
  const count = 20_000;
  await calls.api.ctx.db.transaction((sql) =>
    sql.query({
      text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
               select merchant_id, id, n, 'transaction.reorged', 'started', 'started', 'a test', now()
                 from transactions, generate_series(2, $2) n where id = $1`,
      values: [id, count],
    }),
  );
  await quick.count(count);
  const mine = [...(await serverSockets())].filter((one) => one.writableLength > 0);
  expect(mine).toHaveLength(1);
  // 20,000 events are 12 MB
  expect(mine[0]?.writableLength).toBeLessThan(200_000);
  let text = '';
  socket.setEncoding('utf8');
  socket.on('data', (part) => {
    text += part;
  });
  socket.resume();
  while (!text.slice(-5_000).includes(`"sequence":${count},`)) await once(socket, 'data');
  const told = [...text.matchAll(/"sequence":(\d+),/g)].map(([, n]) => Number(n));
  expect(told).toEqual(Array.from({ length: count }, (_, n) => n + 1));
  socket.destroy();

  async function serverSockets() {
    const handles = (process as unknown as { _getActiveHandles(): object[] })._getActiveHandles();
    return handles.filter(
      (one): one is Socket => 'writableLength' in one && 'server' in one && one.server === calls.api.app.server,
    );
  }
});

test('clients that left before their stream began take no place from those who come after', async () => {
  const body = JSON.stringify({ access_token: await calls.api.tokenOf('shop') });
  const request = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  await calls.api.ctx.db.transaction(async (sql) => {
    // whoever opens a stream waits for this
    await sql.query({ text: 'lock table event_streams in access exclusive mode' });
    const port = Number(new URL(calls.api.base).port);
    const sockets = Array.from({ length: STREAM_LIMITS.ofOne + 1 }, () => openSocket(port, '127.0.0.1'));
    const refused = Promise.race(sockets.map((socket) => once(socket, 'data')));
    for (const socket of sockets) socket.write(request);
    // all places are taken
    expect(String(await refused)).toContain('HTTP/1.1 429');
    for (const socket of sockets) socket.resetAndDestroy();
    for (const socket of sockets) if (!socket.closed) await once(socket, 'close');
  });
  await expect.poll(async () => (await open()).response.status, { timeout: 20_000 }).toBe(200);
  const stream = await open();
  await started();
  await stream.count(1);
});

describe('a stream ends', () => {
  test('with its sign-in, at once, and no other', async () => {
    const { json } = await calls.api.send('/auth', { username: 'shop', password: PASSWORD });
    const mine = await open({ access_token: json.access_token });
    const stays = await open();
    await calls.api.send('/sign_out', { access_token: json.access_token });
    await mine.over();
    expect(ended(mine)).toMatchObject({ event: 'end', data: '{"reason":"invalid_token"}' });
    await started();
    await stays.count(1);
    expect(stays.messages).toHaveLength(1);
  });

  test('when the account is suspended', async () => {
    const stream = await open({}, {}, 'other');
    await calls.api.sql('update merchants set suspended_at = now() where affiliate_id = $1', [calls.api.otherAffiliateId]);
    await stream.over();
    expect(ended(stream)).toMatchObject({ event: 'end', data: '{"reason":"account_suspended"}' });
    await calls.api.sql('update merchants set suspended_at = null where affiliate_id = $1', [calls.api.otherAffiliateId]);
  });

  test('before the first event after its token has expired', async () => {
    const stream = await open();
    calls.api.advance(901);
    await calls.api.reopen();
    calls.api.tokens.clear();
    await started();
    await stream.over();
    expect(stream.messages).toEqual([expect.objectContaining({ event: 'end', data: '{"reason":"token_expired"}' })]);
  });

  test('where the database was put back to an earlier state, and a client comes back by its cursor', async () => {
    const [{ last }] = await calls.api.sql('select last_value as last from events_id_seq');
    const stream = await open();
    await calls.api.sql(`select setval('events_id_seq', 1)`);
    await calls.api.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()`,
    );
    await stream.over();
    expect(ended(stream)).toMatchObject({ event: 'end', data: '{"reason":"server_closing"}' });
    await calls.api.sql(`select setval('events_id_seq', $1)`, [last]);
  });

  test('where the database was put back, and has written more than was lost before anybody looked', async () => {
    const stream = await open();
    await started();
    await stream.count(1);
    // as the next session finds it: the last event is another one, and there are as many as there were
    const { api } = calls;
    await api.sql('begin');
    await api.sql('set local session_replication_role = replica');
    await api.sql(`update events set object_id = 'txn_' || repeat('z', 22) where id = (select max(id) from events)`);
    await api.sql('commit');
    await api.sql(
      `select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()`,
    );
    await stream.over();
    expect(ended(stream)).toMatchObject({ event: 'end', data: '{"reason":"server_closing"}' });
    // nobody goes by that event any more
    while ((await api.sql('select from event_streams')).length > 0) await delay(10);
    await api.sql('begin');
    await api.sql('set local session_replication_role = replica');
    await api.sql(`delete from events where object_id = 'txn_' || repeat('z', 22)`);
    await api.sql('commit');
  });
});

test('what is written while the notifications are away is told when they are back', async () => {
  const stream = await open();
  await calls.api.sql(
    `select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen %' and datname = current_database()`,
  );
  const id = await started();
  await stream.count(1);
  expect(stream.events()[0].data.object.transaction_id).toBe(id);
});

test('at rest there is no row of a stream, and nobody is notified', async () => {
  const stream = await open();
  expect(await calls.api.sql('select from event_streams')).toHaveLength(1);
  await stream.close();
  while ((await calls.api.sql('select from event_streams')).length > 0) await started();
});

test('a server that closes ends its streams and says so', async () => {
  const own = await makeApi();
  const stream = await openStream(own.base, { access_token: await own.tokenOf('shop') });
  await stream.begun();
  await own.end();
  await stream.over();
  expect(ended(stream)).toMatchObject({ event: 'end', data: '{"reason":"server_closing"}' });
});
