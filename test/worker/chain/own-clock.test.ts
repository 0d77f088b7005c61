// A watcher whose own clock is set: it continues to read the chain to its end, on the new clock, and the dates of what waits are shifted.
// test/flow/transactions/clock-set.test.ts has what the rules make of it.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../../src/sandbox/utxo/served-node.ts';
import { createOwnClock } from '../../../src/worker/chain/own-clock.ts';
import { type Owed, type WatchedChain, watchChain } from '../../nodes/watched-chain.ts';

const HOUR = 3_600_000;
const WITHIN_MS = 20_000;
let node: ServedNode;
let chain: WatchedChain;
let owed: Owed;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  chain = await watchChain('BTC', node.url);
  owed = await chain.owe();
  await chain.catchUp();
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const now = (): number => Date.now() + chain.skew;
async function windowEnd(): Promise<number> {
  const { rows } = await chain.db.query<{ at: Date }>({
    text: 'select window_ends_at as at from transactions where id = $1',
    values: [owed.id],
  });
  return rows[0]!.at.getTime();
}
const readAt = async (): Promise<number> => (await chain.cursor())!.caught_up_at.getTime();

test.each([-HOUR, -24 * HOUR])('a clock that is set by %i ms, and forward again, is followed at the next pass', async (byMs) => {
  const [ends, caughtUp] = [await windowEnd(), await readAt()];
  chain.skew += byMs;
  expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
  expect(Math.abs((await windowEnd()) - ends - byMs)).toBeLessThan(WITHIN_MS);
  expect(Math.abs((await readAt()) - now())).toBeLessThan(WITHIN_MS);
  chain.skew -= byMs;
  expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
  expect(Math.abs((await windowEnd()) - ends)).toBeLessThan(WITHIN_MS);
  expect(await readAt()).toBeGreaterThanOrEqual(caughtUp);
});

test('forward, where it was never set back, time has passed', async () => {
  const ends = await windowEnd();
  chain.skew += HOUR;
  expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
  expect(await windowEnd()).toBe(ends);
});

test('a watcher that begins after the clock was set back knows it by the chain, and moves only what is dated in time to come', async () => {
  const ends = await windowEnd();
  const older = await chain.owe({ ageDays: 2 });
  chain.skew -= HOUR;
  await chain.restart();
  expect(await chain.catchUp()).toMatchObject({ caughtUp: true });
  expect(Math.abs((await windowEnd()) - ends + HOUR)).toBeLessThan(WITHIN_MS);
  expect(Math.abs((await readAt()) - now())).toBeLessThan(WITHIN_MS);
  const { rows } = await chain.db.query<{ open: boolean }>({
    text: 'select window_ends_at > created_at as open from transactions where id = $1',
    values: [older.id],
  });
  expect(rows[0]!.open).toBe(true);
});

test('a little is no setting, and what is made since then is on the new clock', async () => {
  const ends = await windowEnd();
  chain.skew -= 1_500;
  await chain.catchUp();
  expect(await windowEnd()).toBe(ends);
  chain.skew -= HOUR;
  const fresh = await chain.owe();
  const { rows } = await chain.db.query<{ at: Date }>({
    text: 'select window_ends_at as at from transactions where id = $1',
    values: [fresh.id],
  });
  await chain.catchUp();
  owed = fresh;
  expect(await windowEnd()).toBe(rows[0]!.at.getTime());
});

test('while the node cannot be asked, the time of a chain does not go on by a clock that is set back', async () => {
  await node.stop();
  chain.skew -= HOUR;
  const own = createOwnClock(chain.ctx, 'BTC');
  await own.look();
  const first = await readAt();
  expect(first).toBeLessThanOrEqual(now());
  chain.skew += HOUR / 2;
  await own.look();
  expect(await readAt()).toBe(first);
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
});
