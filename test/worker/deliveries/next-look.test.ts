// When the job looks again by itself, without being woken: when the next of what waits is due, and after a minute where nothing is known to wait.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createDeliveries } from '../../../src/worker/deliveries/deliveries.ts';
import { type ApiServer, makeApi } from '../../http/api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(() => api.end());

test('the next look is when the next attempt is due, and a minute away at the most, which finds what was not told', async () => {
  const refusal = { kind: 'answered', status: 500, body: new Uint8Array(), isCut: false, tookMs: 1 } as const;
  const { job, finish } = createDeliveries(
    api.ctx,
    async () => refusal,
    () => undefined,
  );
  const pauseMs = () => (job.everyMs as (chance: number) => number)(0);
  // it has begun by looking at an interval
  do await job.run();
  while (pauseMs() < 60_000);
  await api.call('/create_webhook', { url: 'http://127.0.0.1:1/' });
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
  // nobody has told it
  while ((await api.sql('select from deliveries where failures = 1')).length === 0) await job.run();
  await job.run(true);
  // the first pause of the schedule, up to a tenth longer
  expect(pauseMs()).toBeGreaterThanOrEqual(5_000);
  expect(pauseMs()).toBeLessThanOrEqual(5_500);
  await api.sql('update deliveries set due_at = $1', [new Date(api.now() + 36_000_000)]);
  await job.run(true);
  expect(pauseMs()).toBe(60_000);
  await finish(AbortSignal.timeout(500));
});
