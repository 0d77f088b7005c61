// Micro-batches: calls that arrive together go together, one batch at a time, no call fails because of another one's bad row, and nothing
// is done twice.
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createBatch, createBatchOfKey } from '../../src/store/postgres/batch.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { freshDatabase } from '../support/postgres.ts';

/** A batch whose runs are answered by hand. */
function held(atOnce = 1) {
  const runs: { items: readonly number[]; answer: () => void }[] = [];
  const ask = createBatch(
    atOnce,
    (items: readonly number[]) =>
      new Promise<readonly string[]>((resolve) => {
        runs.push({ items, answer: () => resolve(items.map(String)) });
      }),
  );
  return { runs, ask };
}
const tick = () => new Promise((resolve) => setImmediate(resolve));

test('calls of one moment are one batch, and those made meanwhile are the next, in their order', async () => {
  const { runs, ask } = held();
  const first = [ask(1), ask(2), ask(3)];
  await tick();
  const second = [ask(4), ask(5)];
  await tick();
  await tick();
  expect(runs.map((run) => run.items)).toEqual([[1, 2, 3]]);
  runs[0]?.answer();
  expect(await Promise.all(first)).toEqual(['1', '2', '3']);
  await tick();
  expect(runs.map((run) => run.items)).toEqual([
    [1, 2, 3],
    [4, 5],
  ]);
  runs[1]?.answer();
  expect(await Promise.all(second)).toEqual(['4', '5']);
});

test('a lone call leaves at once', async () => {
  const { runs, ask } = held();
  void ask(1);
  await tick();
  expect(runs).toHaveLength(1);
});

test('two may be under way together where that is wished', async () => {
  const { runs, ask } = held(2);
  for (const item of [1, 2, 3]) {
    void ask(item);
    await tick();
  }
  expect(runs.map((run) => run.items)).toEqual([[1], [2]]);
  runs[1]?.answer();
  await tick();
  await tick();
  expect(runs.map((run) => run.items)).toEqual([[1], [2], [3]]);
});

test('a batch has at most 64 items', async () => {
  const sizes: number[] = [];
  const ask = createBatch(1, async (items: readonly number[]) => {
    sizes.push(items.length);
    return items;
  });
  const asked = Array.from({ length: 150 }, (_, item) => item);
  expect(await Promise.all(asked.map(ask))).toEqual(asked);
  expect(sizes).toEqual([64, 64, 22]);
});

test('whatever rows are bad, each call gets its own answer or its own error, and those after them go on', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(fc.boolean(), { minLength: 1, maxLength: 100 }), async (good) => {
      const ask = createBatch(1, async (items: readonly number[]) => {
        const bad = items.filter((item) => !good[item]);
        if (bad.length > 0) throw Object.assign(new Error(`bad: ${bad.join()}`), { severity: 'ERROR' });
        return items.map(String);
      });
      const settled = await Promise.allSettled(good.map((_, item) => ask(item)));
      settled.forEach((one, item) => {
        if (good[item]) expect(one).toEqual({ status: 'fulfilled', value: String(item) });
        else expect((one as PromiseRejectedResult).reason.message).toBe(`bad: ${item}`);
      });
    }),
    { numRuns: 50 },
  );
});

test('of each key one batch is under way, and those of different keys run beside each other', async () => {
  const runs: { key: string; items: readonly number[]; answer: () => void }[] = [];
  const ofKey = createBatchOfKey();
  const ask = (key: string, item: number) =>
    ofKey(key, item, (items: readonly number[]) => {
      const made = Promise.withResolvers<readonly string[]>();
      runs.push({ key, items, answer: () => made.resolve(items.map((one) => `${key}${one}`)) });
      return made.promise;
    });
  const [first, other] = [ask('a', 1), ask('b', 1)];
  await tick();
  const rest = [ask('a', 2), ask('a', 3)];
  await tick();
  expect(runs.map(({ key, items }) => [key, items])).toEqual([
    ['a', [1]],
    ['b', [1]],
  ]);
  for (const { answer } of runs) answer();
  expect(await Promise.all([first, other])).toEqual(['a1', 'b1']);
  await tick();
  runs[2]?.answer();
  expect(await Promise.all(rest)).toEqual(['a2', 'a3']);
  // nothing is kept of a key when its last call is answered
  const again = ask('a', 4);
  await tick();
  expect(runs.map(({ items }) => items)).toEqual([[1], [1], [2, 3], [4]]);
  runs[3]?.answer();
  expect(await again).toBe('a4');
});

test('when the connection breaks after the commit and before its answer, nothing is sent again: each call fails with the break', async () => {
  const { url, drop } = await freshDatabase();
  const open = () => connect({ url, role: null, maxConnections: 1, applicationName: 'test' });
  const [service, operator] = [open(), open()];
  try {
    await operator.query({ text: 'create table written (id integer primary key)' });
    // the rows are committed; then the session ends instead of answering
    const ask = createBatch(1, async (ids: readonly number[]) => {
      await service.query({ text: 'insert into written select unnest($1::int[])', values: [ids] });
      await service.query({ text: 'select pg_terminate_backend(pg_backend_pid())' });
      return ids;
    });
    const settled = await Promise.allSettled([1, 2, 3].map(ask));
    // not one of them is told that its own id is taken
    for (const one of settled) expect((one as PromiseRejectedResult).reason).toMatchObject({ code: '57P01' });
    const { rows } = await operator.query<{ n: bigint }>({ text: 'select count(*) as n from written' });
    expect(rows).toEqual([{ n: 3n }]);
  } finally {
    await operator.close();
    await service.close();
    await drop();
  }
});
