// What a new endpoint's answer waits for: those who were writing events when it was made, nobody else, and not for ever.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { awaitEventsBefore } from '../../../src/flow/events/webhooks.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let service: ServiceOnDatabase;
let object: string;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  object = (await service.create()).transactionId;
});
afterAll(() => service.drop());

let sequence = 100;
/** Somebody who has written an event and has not committed it. */
async function writer() {
  const [written, ended] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  sequence += 1;
  const over = service.ctx.db.transaction(async (sql) => {
    await sql.query({
      text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
             select merchant_id, id, $2, 'transaction.reorged', 'started', 'started', 'a test', now() from transactions where id = $1`,
      values: [object, sequence],
    });
    written.resolve();
    await ended.promise;
  });
  await written.promise;
  return { end: () => ended.resolve(), over };
}
/** How often it has asked, and when it ended. */
function waiting() {
  const looks: (() => void)[] = [];
  let asked = 0;
  const query = ((statement) => {
    asked += 1;
    for (const look of looks.splice(0)) look();
    return service.ctx.db.query(statement);
  }) as Sql['query'];
  const began = performance.now();
  const over = awaitEventsBefore({ ...service.ctx, db: { ...service.ctx.db, query } }).then(() => performance.now() - began);
  return { asked: () => asked, looked: () => new Promise<void>((resolve) => looks.push(resolve)), over };
}

test('where nobody writes it has asked once', async () => {
  const one = waiting();
  await one.over;
  expect(one.asked()).toBe(1);
});

test('it ends with the last of those who were there, whoever has begun since', async () => {
  const [first, second] = [await writer(), await writer()];
  const one = waiting();
  await one.looked();
  const later = await writer();
  first.end();
  await first.over;
  let isOver = false;
  void one.over.then(() => {
    isOver = true;
  });
  // the look that is under way may be older than the end of the first
  await one.looked();
  await one.looked();
  expect(isOver).toBe(false);
  second.end();
  await one.over;
  later.end();
  await Promise.all([second.over, later.over]);
});

test('one that does not end keeps it five seconds', async () => {
  const stuck = await writer();
  const one = waiting();
  const tookMs = await one.over;
  expect(tookMs).toBeGreaterThan(4_990);
  expect(tookMs).toBeLessThan(15_000);
  // it looks less and less often
  expect(one.asked()).toBeLessThan(60);
  stuck.end();
  await stuck.over;
});

test('a database that is away fails nothing', async () => {
  const query = (() => Promise.reject(new Error('away'))) as Sql['query'];
  await expect(awaitEventsBefore({ ...service.ctx, db: { ...service.ctx.db, query } })).resolves.toBeUndefined();
});
