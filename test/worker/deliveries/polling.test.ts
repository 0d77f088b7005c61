// While many events are written their commits wake nobody: the worker looks by itself. None of them may be left over when that begins or ends.
import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { connect, type Database } from '../../../src/store/postgres/connect.ts';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { startLoop } from '../../../src/worker/loop.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';
import { openRelay } from '../../support/relay.ts';
import { eventually } from '../../support/service.ts';

const TAKEN = { kind: 'answered', status: 204, body: new Uint8Array(), isCut: false, tookMs: 1 } as const;
/** Far more than the look at an interval takes, far less than until the worker looks for any other reason. */
const SOON_MS = 2_000;
/** Within a second they are more than those from which the worker looks by itself. */
const MANY = 500;

let api: ApiServer;
let object: string;
let sequence = 1_000;
const clients: pg.Client[] = [];
const heard: string[] = [];
/** When each event arrived, by its sequence. */
const arrived = new Map<number, number>();
let relay: Awaited<ReturnType<typeof openRelay>> | null = null;
const workers: { readonly name: string; stop(): Promise<void> }[] = [];
beforeAll(async () => {
  api = await makeApi();
  object = (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' })).json.transaction_id;
  await api.call('/create_webhook', { url: 'http://127.0.0.1:1/' });
});
afterAll(() => api.end());
beforeEach(async () => {
  const listener = await client();
  listener.on('notification', ({ channel, payload }) => heard.push(`${channel} ${payload}`));
  await listener.query('listen hurry');
});
afterEach(async () => {
  relay?.thaw();
  for (const one of workers.splice(0)) await one.stop();
  for (const one of clients.splice(0)) await one.end();
  relay?.close();
  relay = null;
});

async function client(): Promise<pg.Client> {
  const made = new pg.Client({ connectionString: api.url });
  made.on('error', () => undefined);
  await made.connect();
  clients.push(made);
  return made;
}

/**
 * The job of a worker with connections of its own, woken as main/worker does.
 * @param counted runs between the answer to how many events were written and what the worker makes of it
 */
async function worker(url = api.url, counted: () => Promise<void> = async () => undefined): Promise<{ readonly name: string }> {
  const name = `worker ${workers.length}`;
  const own = connect({ url, role: 'bursar_app', maxConnections: 4, applicationName: name, silentMs: 60_000 });
  const query: Database['query'] = async (statement) => {
    const answer = await own.query(statement);
    if (statement.name === 'last_event_number') await counted();
    return answer as never;
  };
  const db = { ...own, query };
  const deliveries = createDeliveries(
    { ...api.ctx, db },
    async ({ body }) => {
      arrived.set(JSON.parse(String(body)).sequence, performance.now());
      return TAKEN;
    },
    () => undefined,
  );
  const loop = startLoop([deliveries.job], () => undefined);
  const unlisten = await db.listen(
    ['hurry'],
    (_channel, jobs) => jobs.split(',').includes('deliveries') && loop.hurry('deliveries'),
    () => loop.hurry(),
  );
  const made = {
    name,
    async stop(): Promise<void> {
      await unlisten();
      await loop.stop();
      await deliveries.finish(AbortSignal.timeout(500));
      await db.close();
    },
  };
  workers.push(made);
  return made;
}

/** So many events of the transaction in one statement, committed at once if the client has nothing open; returns the last one's sequence. */
async function write(by: pg.Client, count = 1): Promise<number> {
  const first = sequence;
  sequence += count;
  await by.query(
    `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
       select merchant_id, id, $2 + n, 'transaction.reorged', 'started', 'started', 'test', now()
         from transactions, generate_series(0, $3::int - 1) n where id = $1 order by n`,
    [object, first, count],
  );
  return sequence - 1;
}
const isPolled = async (): Promise<boolean> =>
  (
    await api.sql(`select from pg_locks l join pg_database d on d.oid = l.database and d.datname = current_database(),
                          lateral (select hashtextextended('deliveries polled', 0) as key) k
                    where l.locktype = 'advisory' and l.granted and l.classid::bigint = (k.key >> 32) & 4294967295 and l.objid::bigint = k.key & 4294967295`)
  ).length > 0;
/** Ends the session in which this worker holds the lock by which it alone delivers. */
const endSessionOf = (name: string) =>
  api.sql(
    `select pg_terminate_backend(l.pid) from pg_locks l join pg_stat_activity a on a.pid = l.pid, lateral (select hashtextextended('deliveries', 0) as key) k
      where a.application_name = $1 and l.locktype = 'advisory' and l.classid::bigint = (k.key >> 32) & 4294967295 and l.objid::bigint = k.key & 4294967295`,
    [name],
  );
const atRest = () => eventually('commits tell the worker', async () => ((await isPolled()) ? null : true));
const delivered = (event: number) => eventually(`event ${event} has arrived`, async () => arrived.get(event) ?? null);
/** Writes until the worker looks by itself. */
async function hurryUntilPolled(by: pg.Client): Promise<void> {
  await eventually('the worker looks by itself', async () => {
    await write(by, MANY);
    return (await isPolled()) ? true : null;
  });
}

test('many commits tell nothing and are delivered all the same; the first after them tells again', async () => {
  const writer = await client();
  await worker();
  await hurryUntilPolled(writer);
  heard.length = 0;
  const last = await write(writer, MANY);
  for (let event = last - MANY + 1; event <= last; event++) await delivered(event);
  expect(heard).toEqual([]);
  await atRest();
  await delivered(await write(writer));
  expect(heard).toEqual(['hurry deliveries']);
});

test('a few commits tell the worker, however close together they are', async () => {
  const writer = await client();
  await worker();
  await delivered(await write(writer));
  await atRest();
  for (let n = 0; n < 4; n++) {
    await pause(250);
    let last = 0;
    for (let left = 10; left > 0; left--) last = await write(writer);
    await delivered(last);
    expect(await isPolled()).toBe(false);
  }
});

test('what is committed only after the worker has stopped looking by itself is found, though it told nothing', async () => {
  const [writer, late] = [await client(), await client()];
  await worker();
  await hurryUntilPolled(writer);
  await late.query('begin');
  const event = await write(late);
  await atRest();
  heard.length = 0;
  await late.query('commit');
  await delivered(event);
  expect(heard).toEqual([]);
});

test('what was written under a worker that died is delivered by the next one, whom nothing has told', async () => {
  const writer = await client();
  relay = await openRelay(api.url);
  const first = await worker(relay.url);
  await hurryUntilPolled(writer);
  await worker();
  relay.freeze();
  heard.length = 0;
  const event = await write(writer);
  await api.sql(`select pg_terminate_backend(pid) from pg_stat_activity where application_name like $1`, [`${first.name}%`]);
  await delivered(event);
  expect(heard).toEqual([]);
});

test('a worker that another one has replaced while it began to look by itself keeps nobody from being told', async () => {
  const writer = await client();
  let countedMs = Number.NEGATIVE_INFINITY;
  let goOn: (() => void) | null = null;
  const first = await worker(api.url, async () => {
    const sinceMs = performance.now() - countedMs;
    countedMs = performance.now();
    // what was counted within a second is compared, and is enough
    if (goOn === null && sinceMs < SOON_MS / 4 && !(await isPolled())) await new Promise<void>((resolve) => (goOn = resolve));
  });
  await delivered(await write(writer));
  await atRest();
  await eventually('it is about to look by itself', async () => {
    await write(writer, MANY);
    return goOn;
  });
  await worker();
  await endSessionOf(first.name);
  await eventually('the other one delivers', async () => {
    const event = await write(writer);
    await pause(50);
    return arrived.has(event);
  });
  await atRest();
  goOn!();
  for (let n = 0; n < 3; n++) await delivered(await write(writer));
  await atRest();
  await delivered(await write(writer));
});

test('while the session of a worker before it still holds the lock, a worker looks by itself', async () => {
  const [writer, before] = [await client(), await client()];
  await before.query(`select pg_advisory_lock(hashtextextended('deliveries polled', 0))`);
  await worker();
  await delivered(await write(writer));
  heard.length = 0;
  // for longer than it is counted how few they are
  for (let n = 0; n < 5; n++) {
    await pause(100);
    await delivered(await write(writer));
  }
  expect(heard).toEqual([]);
  await before.query('select pg_advisory_unlock_all()');
  await eventually('its commits tell the worker', async () => {
    await write(writer);
    return heard.length > 0;
  });
});

test('whatever the pace at which events come, each is there soon after its commit', async () => {
  const writers = await Promise.all(Array.from({ length: 6 }, client));
  await worker();
  const written = new Map<number, number>();
  const endMs = performance.now() + 5_000;
  await Promise.all(
    writers.map(async (by) => {
      while (performance.now() < endMs) {
        // crowds and single events in turn, around the pace at which the worker begins to look and ends it
        for (let left = Math.random() < 0.5 ? 1 : 80 * Math.random(); left > 0; left--)
          written.set(await write(by), performance.now());
        await pause(250 * Math.random());
      }
    }),
  );
  for (const event of written.keys()) await delivered(event);
  const longest = Math.max(...[...written].map(([event, atMs]) => arrived.get(event)! - atMs));
  expect(longest).toBeLessThan(SOON_MS);
});
