// When the worker looks for deliveries by itself, and when it is told: each step of it by itself, with no look in between that hides what it says.
import pg from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPolling, type Polling } from '../../../src/worker/deliveries/polling.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { eventually } from '../../support/service.ts';

/** Within a second they are more than those from which the worker looks by itself. */
const MANY = 500;

let api: ApiServer;
let writer: pg.Client;
let object: string;
let sequence = 1_000;
beforeAll(async () => {
  api = await makeApi();
  writer = new pg.Client({ connectionString: api.url });
  await writer.connect();
  object = (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' })).json.transaction_id;
});
afterAll(async () => {
  await writer.end();
  await api.end();
});

async function write(count: number): Promise<void> {
  sequence += count;
  await writer.query(
    `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
       select merchant_id, id, $2 - n, 'transaction.reorged', 'started', 'started', 'test', now()
         from transactions, generate_series(0, $3::int - 1) n where id = $1 order by n`,
    [object, sequence, count],
  );
}
const looksByItself = (polling: Polling): boolean => polling.pauseMs() < 1_000;
const isTold = (polling: Polling): boolean => polling.pauseMs() === Number.POSITIVE_INFINITY;

/** Updated until it says that it must look, which is when nobody that has not told is left. */
const untilTold = (polling: Polling, when = 'commits tell') =>
  eventually(when, async () => {
    const mustLook = await polling.update(false);
    expect(isTold(polling)).toBe(mustLook);
    return mustLook || null;
  });
const untilLooking = (polling: Polling) =>
  eventually('it looks by itself', async () => {
    await write(MANY);
    expect(await polling.update(true)).toBe(false);
    return looksByItself(polling) || null;
  });

test('a worker that begins must look, and looks by itself until it has counted for a while that few events are written', async () => {
  const polling = createPolling(api.ctx.db);
  expect(polling.pauseMs()).toBe(Number.POSITIVE_INFINITY);
  expect(await polling.update(false)).toBe(true);
  expect(looksByItself(polling)).toBe(true);
  // nothing was counted before that it could be compared with
  expect(await polling.update(false)).toBe(false);
  expect(looksByItself(polling)).toBe(true);
  await untilTold(polling);
  await polling.end();
});

test('what it is told of many events makes it look by itself, and while one that has not told is being written it is not told', async () => {
  const polling = createPolling(api.ctx.db);
  await polling.update(false);
  await untilTold(polling);
  await write(MANY);
  for (let n = 0; n < 3; n++) expect(await polling.update(false)).toBe(false);
  expect(isTold(polling)).toBe(true);
  await untilLooking(polling);
  await writer.query('begin');
  await write(1);
  await eventually('it has stopped looking by itself', async () => {
    expect(await polling.update(false)).toBe(false);
    return (await isLockFree()) || null;
  });
  for (let n = 0; n < 3; n++) expect(await polling.update(false)).toBe(false);
  expect(looksByItself(polling)).toBe(true);
  await writer.query('commit');
  await untilTold(polling, 'the last that has not told is written');
  await untilLooking(polling);
  await polling.end();
  expect(polling.pauseMs()).toBe(Number.POSITIVE_INFINITY);
  expect(await isLockFree()).toBe(true);
});

const isLockFree = async (): Promise<boolean> =>
  (
    await api.sql(`select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database(),
                          lateral (select hashtextextended('deliveries polled', 0) as key) k
                    where l.locktype = 'advisory' and l.classid::bigint = (k.key >> 32) & 4294967295 and l.objid::bigint = k.key & 4294967295`)
  ).length === 0;
