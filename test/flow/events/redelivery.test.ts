// `bursar webhook resend` of very much: in steps, and none is left out.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { redeliverAll } from '../../../src/flow/events/redelivery.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('more than a step holds is made due at once, with all attempts: what waits, and what was given up in the last 30 days', async () => {
  const { webhook } = (await api.call('/create_webhook', { url: 'http://127.0.0.1:9/' })).json;
  const [{ number }] = await api.sql('select number from webhooks where id = $1', [webhook.id]);
  await api.sql(
    `insert into deliveries (webhook, event_id, due_at, failures) select $1, n, now() + interval '1 hour', 3 from generate_series(1, 2500) n`,
    [number],
  );
  const tried = (from: number, to: number, status: number, daysAgo: number) =>
    api.sql(
      `insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer)
         select $1, n, $5::timestamptz - make_interval(days => $6::int), 1, $4::int, '' from generate_series($2::int, $3::int) n`,
      [number, from, to, status, new Date(api.now()), daysAgo],
    );
  await tried(1, 4_000, 500, 1);
  // taken at last, and too long ago
  await tried(4_000, 4_010, 200, 1);
  await tried(5_000, 5_010, 500, 31);
  expect(await redeliverAll(api.ctx, BigInt(number))).toEqual({ waiting: 2_500, givenUp: 1_499 });
  const [left] = await api.sql(
    `select count(*)::int as count, min(event_id)::int as first, max(event_id)::int as last, max(failures) as failures, bool_or(isfinite(due_at)) as later from deliveries`,
  );
  expect(left).toEqual({ count: 3_999, first: 1, last: 3_999, failures: 0, later: false });
  expect(await redeliverAll(api.ctx, BigInt(number))).toEqual({ waiting: 3_999, givenUp: 0 });
});
