// A thread that answers questions, and what is told to whoever asks when it does not.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';
import { ThreadEnded } from '../../src/outside/outbound/thread.ts';
import { thread } from './opened-thread.ts';
import { closing, outboundServersForEach } from './outbound-servers.ts';

outboundServersForEach();

const LONG_MS = 60_000;

test.each([
  ['throws', 'throw', 'the thread ended: a fault of its own'],
  ['needs more memory than it may have', 'fill the memory', /^the thread ended: .*memory/],
] as const)(
  'whoever waits for a thread that %s is told so, and the next one asks another thread',
  async (_, question, reason) => {
    const { ask } = thread();
    const others = ask('wait until nobody waits', LONG_MS);
    const failed = await Promise.allSettled([ask(question, LONG_MS), others]);
    for (const one of failed) {
      expect(one).toMatchObject({ status: 'rejected', reason: { message: expect.stringMatching(reason) } });
      expect(one.status === 'rejected' && one.reason).toBeInstanceOf(ThreadEnded);
    }
    expect(await ask('your data', LONG_MS)).toBe('what it was given');
  },
);

test('a thread that computes for ever is ended, and holds up nobody here', async () => {
  const { ask, stuck } = thread();
  expect(await ask('work for 7', LONG_MS)).toBe('done');
  const others = ask('wait until nobody waits', LONG_MS);
  const failed = await Promise.allSettled([ask('never end', 200), others]);
  expect(failed.map((one) => one.status === 'rejected' && one.reason.message)).toEqual(
    Array.from({ length: 2 }, () => 'the thread does not answer'),
  );
  // what it worked at last had ended
  expect(stuck).toEqual([]);
  expect(await ask('your data', LONG_MS)).toBe('what it was given');
});

test('a thread that does not come back from a piece of work is ended, and for whom it worked is told', async () => {
  const { ask, stuck, failed: failedFor } = thread();
  const others = ask('wait until nobody waits', LONG_MS);
  const failed = await Promise.allSettled([ask('work for 7 for ever', LONG_MS), others]);
  for (const one of failed)
    expect(one).toMatchObject({ status: 'rejected', reason: { message: 'the thread does not come back', whom: 7n } });
  expect(await ask('your data', LONG_MS)).toBe('what it was given');
  expect(stuck).toMatchObject([{ whom: 7n }]);
  await stuck[0]?.exited;
  expect(failedFor).toEqual([]);
});

test('a thread that works for long in many pieces is not ended', async () => {
  const { ask, stuck, failed } = thread();
  expect(await ask('work for 7 in pieces', LONG_MS)).toBe('done');
  expect([stuck, failed]).toEqual([[], []]);
});

test.each([
  ['throws', 'throw'],
  ['needs more memory than it may have', 'fill the memory'],
] as const)('when a thread %s, it is told for whom it worked last', async (_, question) => {
  const { ask, stuck, failed } = thread();
  expect(await ask('work for 7', LONG_MS)).toBe('done');
  await expect(ask(question, LONG_MS)).rejects.toMatchObject({ whom: null });
  expect([stuck, failed]).toEqual([[], [7n]]);
});

test('a thread that is closed is lost for nobody', async () => {
  const opened = thread();
  expect(await opened.ask('work for 7', LONG_MS)).toBe('done');
  const waiting = opened.ask('wait until nobody waits', LONG_MS);
  const failed = expect(waiting).rejects.toMatchObject({ whom: null });
  await opened.close();
  await failed;
  expect([opened.stuck, opened.failed]).toEqual([[], []]);
});

test('who was stopped for longer than the thread has is not late to hear it', async () => {
  const { ask } = thread();
  expect(await ask('your data', LONG_MS)).toBe('what it was given');
  const answer = ask('your data', 50);
  // it is sent by then
  await new Promise((resolve) => setImmediate(resolve));
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300);
  expect(await answer).toBe('what it was given');
});

test.each(['before', 'after'] as const)('the thread is told when nobody waits any more, %s it was asked', async (when) => {
  const { ask } = thread();
  const limit = new AbortController();
  if (when === 'before') limit.abort();
  const answer = ask('wait until nobody waits', LONG_MS, limit.signal);
  limit.abort();
  expect(await answer).toBe('nobody waits');
});

test('whoever waits for an answer of a thread that is closed is told so', async () => {
  const opened = thread();
  const waiting = opened.ask('wait until nobody waits', LONG_MS);
  const failed = expect(waiting).rejects.toThrow('the thread was closed');
  await opened.close();
  await failed;
  await expect(opened.ask('your data', LONG_MS)).rejects.toThrow('the thread was closed');
});

/** Runs the program whose thread computes when it ends. @returns it, and what it says */
function exiting(...how: readonly string[]) {
  const child = spawn(process.execPath, [fileURLToPath(new URL('./thread-exit-program.ts', import.meta.url)), ...how]);
  closing.push(() => child.kill('SIGKILL'));
  return Promise.all([once(child.stdout, 'data'), once(child, 'exit')]);
}

test.each([[], ['close'], ['beside an idle one']])(
  'a process ends although a thread does not come back from what native code computes (%s)',
  async (...how) => {
    const [[said], [, signal]] = await exiting(...how);
    expect(String(said)).toBe('exits\n');
    expect(signal).toBe('SIGKILL');
  },
);

test.each(['idle', 'returns'])('a process whose thread works at nothing any more ends as it says (%s)', async (how) => {
  const [, exit] = await exiting(how);
  expect(exit).toEqual([0, null]);
});
