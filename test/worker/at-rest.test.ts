// An idle chain: what a watcher asks of the database, what it writes and when, and that this makes no payment and no timer late.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { areRead } from '../../src/store/transactions/due.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { startLoop } from '../../src/worker/loop.ts';
import { type WatchedChain, watchChain } from '../nodes/watched-chain.ts';
import { eventually } from '../support/service.ts';

const QUIET = { quiet: true } as const;

let node: ServedNode;
let chain: WatchedChain;
/** Names of the statements that the watcher sent. */
let sent: string[];
async function open(announces: boolean): Promise<void> {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() + (chain?.skew ?? 0), announces });
  chain = await watchChain('BTC', node.url);
  sent = [];
  await chain.watcher.close();
  chain.watcher = recorded();
  await chain.catchUp();
  // the first list without anything new
  await chain.watcher.pass(QUIET);
  sent.length = 0;
}
/** A watcher on the same chain whose statements are noted. */
function recorded(): ChainWatcher {
  const { db } = chain;
  const noted = (sql: Pick<typeof db, 'query'>): Pick<typeof db, 'query'> => ({
    query(statement) {
      sent.push(statement.name ?? statement.text);
      return sql.query(statement);
    },
  });
  const ctx = {
    ...chain.ctx,
    db: {
      ...db,
      ...noted(db),
      transaction: <T>(work: (sql: Pick<typeof db, 'query'>) => Promise<T>) => db.transaction((sql) => work(noted(sql))),
    },
  };
  return createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx) });
}
beforeEach(() => open(false));
afterEach(async () => {
  await chain.close();
  await node.stop();
});
const written = async (): Promise<number | undefined> => (await chain.cursor())?.caught_up_at.getTime();

test('while nothing happens the database is not asked, and every pass has read to the end', async () => {
  for (let i = 0; i < 5; i++) expect(await chain.watcher.pass(QUIET)).toMatchObject({ state: 'ready', caughtUp: true });
  expect(sent).toEqual([]);
});

test('every twenty seconds one statement writes the chain’s time and the time of the look', async () => {
  const before = (await written()) as number;
  chain.skew += 18_000;
  await chain.watcher.pass(QUIET);
  expect(await written()).toBe(before);
  chain.skew += 2_000;
  const sinceMs = chain.ctx.ports.clock.now();
  await chain.watcher.pass(QUIET);
  expect(sent).toEqual(['go_on']);
  expect(await areRead(chain.db, [{ currencies: ['BTC'], sinceMs }])).toEqual([true]);
});

test('a clock that was set back is no reason to be silent', async () => {
  chain.skew -= 3_600_000;
  const beganMs = chain.ctx.ports.clock.now();
  await chain.watcher.pass(QUIET);
  expect(await written()).toBeGreaterThanOrEqual(beganMs);
  expect(await written()).toBeLessThanOrEqual(chain.ctx.ports.clock.now());
});

test('a waiting caller is answered at once', async () => {
  const sinceMs = chain.ctx.ports.clock.now();
  await chain.watcher.pass();
  expect(await areRead(chain.db, [{ currencies: ['BTC'], sinceMs }])).toEqual([true]);
});

test('what the node says of itself is written when it changes', async () => {
  node.setTrouble({ down: true, fault: null, left: null });
  expect(await chain.watcher.pass(QUIET)).toMatchObject({ state: 'down' });
  expect(sent).toEqual(['record_condition']);
  await chain.watcher.pass(QUIET);
  expect(sent).toEqual(['record_condition']);
  const before = await written();
  chain.skew += 30_000;
  await chain.watcher.pass(QUIET);
  expect(await written()).toBe(before);
  node.setTrouble({ down: false, fault: null, left: null });
  expect(await chain.watcher.pass(QUIET)).toMatchObject({ state: 'ready', caughtUp: true });
  expect(await written()).toBeGreaterThan(before as number);
});

test('a payment carries the time up to which was read, though that was not written', async () => {
  const owed = await chain.owe();
  const before = (await written()) as number;
  chain.skew += 5_000;
  await chain.watcher.pass(QUIET);
  expect(await written()).toBe(before);
  node.pay([{ script: owed.script, minor: 9_000n }]);
  await chain.watcher.pass(QUIET);
  const { rows } = await chain.db.query<{ caught_up_at: Date }>({ text: 'select caught_up_at from payments' });
  expect(rows[0]?.caught_up_at.getTime()).toBeGreaterThanOrEqual(before + 5_000);
});

test('a block, or what another watcher wrote, is looked at in the next pass', async () => {
  const { height } = node.mine(1);
  expect(await chain.watcher.pass(QUIET)).toMatchObject({ height, blocksRead: 1, caughtUp: true });
  await chain.db.query({ text: 'update chain_cursors set epoch = epoch + 1' });
  node.mine(1);
  expect(await chain.watcher.pass(QUIET)).toMatchObject({ caughtUp: false, more: true });
  expect(await chain.watcher.pass(QUIET)).toMatchObject({ height: height + 1, caughtUp: true });
});

test('the time of the chain is written when something falls due, and the judge is woken then', async () => {
  const woken: number[] = [];
  const stopListening = await chain.db.listen(
    ['judge'],
    () => woken.push(performance.now()),
    () => undefined,
  );
  const dueInMs = 700;
  const dueAt = performance.now() + dueInMs;
  chain.watcher.expect(chain.ctx.ports.clock.now() + dueInMs);
  const job = {
    name: 'chain',
    everyMs: () => chain.watcher.restMs(),
    urgent: true,
    run: async () => (await chain.watcher.pass(QUIET)).more,
  };
  const loop = startLoop([job], (_job, error) => expect.unreachable(String(error)));
  await eventually('the judge is woken', async () => (woken.length > 0 ? true : null));
  await loop.stop();
  await stopListening();
  const [atMs] = woken as [number];
  expect(atMs).toBeGreaterThanOrEqual(dueAt - 2);
  expect(sent).toEqual(['go_on']);
  expect(await chain.watcher.pass(QUIET)).toMatchObject({ caughtUp: true });
  expect(sent).toEqual(['go_on']);
});

test('a node that announces nothing is asked less often while no customer can pay, and again twice a second once one can', async () => {
  chain.watcher.expect(null);
  expect(chain.watcher.restMs()).toBeGreaterThan(1_500);
  const nowMs = chain.ctx.ports.clock.now();
  chain.watcher.expect(nowMs + 24 * 3_600_000);
  expect(chain.watcher.restMs()).toBeGreaterThan(1_500);
  chain.watcher.expect(nowMs + 15 * 60_000);
  expect(chain.watcher.restMs()).toBeLessThanOrEqual(500);
  chain.watcher.expect(nowMs - 1);
  expect(chain.watcher.restMs()).toBeLessThanOrEqual(500);
});

test('a node that announces what is new is asked less often, one that does not or is silent twice a second', async () => {
  expect(chain.watcher.restMs()).toBeLessThanOrEqual(500);
  await chain.close();
  await node.stop();
  await open(true);
  const hinted = new Promise<void>((resolve) => chain.watcher.onHint(resolve));
  await eventually('its announcements are heard', async () => {
    await chain.watcher.pass(QUIET);
    return chain.watcher.restMs() > 1_500 ? true : null;
  });
  const owed = await chain.owe();
  node.pay([{ script: owed.script, minor: 9_000n }]);
  await hinted;
  await chain.watcher.pass(QUIET);
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
  node.setTrouble({ down: true, fault: null, left: null });
  await chain.watcher.pass(QUIET);
  expect(chain.watcher.restMs()).toBeLessThanOrEqual(500);
});
