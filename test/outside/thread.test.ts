// A thread that answers questions, and what is told to whoever asks when it does not.
import { expect, test } from 'vitest';
import { openThread, ThreadEnded } from '../../src/outside/outbound/thread.ts';
import { closing, outboundServersForEach } from './outbound-servers.ts';
import type { Question } from './thread-program.ts';

outboundServersForEach();

const LONG_MS = 60_000;

function thread() {
  const limits = { maxOldGenerationSizeMb: 32, maxYoungGenerationSizeMb: 4 };
  const opened = openThread<Question, string>(new URL('./thread-program.ts', import.meta.url), 'what it was given', limits);
  closing.push(() => opened.close());
  return opened;
}

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
  const { ask } = thread();
  expect(await ask('your data', LONG_MS)).toBe('what it was given');
  const others = ask('wait until nobody waits', LONG_MS);
  const failed = await Promise.allSettled([ask('never end', 200), others]);
  expect(failed.map((one) => one.status === 'rejected' && one.reason.message)).toEqual(
    Array.from({ length: 2 }, () => 'the thread does not answer'),
  );
  expect(await ask('your data', LONG_MS)).toBe('what it was given');
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
});
