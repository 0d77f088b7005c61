// The controls wait until the service has done everything due: not longer than their limit, also when the database is there but does not
// answer.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { SILENT_MS, settle, untilRead } from '../../src/main/sandbox/settle.ts';
import { portsFor } from '../support/ports.ts';
import { openRelayedDatabase } from '../support/relay.ts';

let opened: Awaited<ReturnType<typeof openRelayedDatabase>>;
let relay: typeof opened.relay;
let db: typeof opened.db;
beforeEach(async () => {
  opened = await openRelayedDatabase();
  ({ relay, db } = opened);
});
afterEach(() => opened.close());

const context = () => ({ db, ports: portsFor('sandbox', { now: () => Date.now() }) });

/** What it ended with, and after how many milliseconds. */
async function ended(work: Promise<boolean>): Promise<{ readonly how: unknown; readonly tookMs: number }> {
  const startedMs = performance.now();
  const how = await work.catch((error: Error) => error.message);
  return { how, tookMs: performance.now() - startedMs };
}

test('a caller waits for a chain that nobody reads as long as it said', async () => {
  await opened.direct.query({
    text: `insert into node_conditions (currency, state, height, hash, checked_at) values ('BTC', 'ready', 1, repeat('0', 64), '-infinity')`,
  });
  const { how, tookMs } = await ended(untilRead(context(), ['BTC'], 700));
  expect(how).toBe(false);
  expect(tookMs).toBeGreaterThan(690);
  expect(tookMs).toBeLessThan(3_000);
});

test('a frozen database ends the wait in time, and when it answers again everything goes on', async () => {
  expect(await settle(context(), 5_000)).toBe(true);
  relay.freeze();
  const { how, tookMs } = await ended(settle(context(), 700));
  expect(how).toBe('the database does not answer');
  expect(tookMs).toBeLessThan(3_000);
  relay.thaw();
  expect(await settle(context(), 5_000)).toBe(true);
});

test('a caller that would wait longer still gets an answer when the database is frozen', async () => {
  relay.freeze();
  const { how, tookMs } = await ended(settle(context(), 150_000));
  expect(how).toBe('the database does not answer');
  expect(tookMs).toBeLessThan(2 * SILENT_MS);
}, 30_000);
