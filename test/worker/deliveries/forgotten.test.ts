// Attempts are forgotten after 30 days, all of them at once also where no worker ran for long.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { workerJobs } from '../../../src/worker/jobs.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('what is older is gone after one run, in steps, although an attempt was dated by a clock that was fast', async () => {
  const add = (count: number, days: number) =>
    api.sql(
      `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
         select n % 5, n, $2::timestamptz - make_interval(days => $3), 1, 204, '' from generate_series(1, $1::int) n`,
      [count, new Date(api.now()), days],
    );
  await add(1, -20);
  await add(2_500, 40);
  await add(3, 29);
  const job = workerJobs(api.ctx, new Map(), () => undefined).find(({ name }) => name === 'forget attempts');
  let steps = 1;
  while (await job?.run()) steps += 1;
  expect(steps).toBe(3);
  expect(await api.sql(`select count(*)::int as n from delivery_attempts`)).toEqual([{ n: 4 }]);
});
