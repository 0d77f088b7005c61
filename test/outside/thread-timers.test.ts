// When a thread is looked at, and what is left of a question that was answered.
import { once } from 'node:events';
import { afterEach, expect, test, vi } from 'vitest';
import { together } from '../../src/outside/outbound/thread.ts';
import { thread } from './opened-thread.ts';
import { closing, outboundServersForEach } from './outbound-servers.ts';
import { WORKING } from './thread-words.ts';

outboundServersForEach();
afterEach(() => void vi.useRealTimers());

const LONG_MS = 60_000;
/** Between two looks. */
const LOOK_MS = 1_000;

test('a thread that is met in the same piece of work at three looks, a second apart, is ended', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const told = new BroadcastChannel(WORKING);
  closing.push(() => told.close());
  const { ask, stuck } = thread();
  const failed = expect(ask('work for 7 for ever', LONG_MS)).rejects.toMatchObject({ whom: 7n });
  await once(told as unknown as EventTarget, 'message');
  vi.advanceTimersByTime(3 * LOOK_MS - 1);
  expect(stuck).toEqual([]);
  vi.advanceTimersByTime(1);
  expect(stuck).toMatchObject([{ whom: 7n }]);
  await failed;
});

test('of a question that was answered nothing is left, nor of a thread that has ended', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'setInterval', 'clearTimeout', 'clearInterval'] });
  const limit = new AbortController();
  const removed = vi.spyOn(limit.signal, 'removeEventListener');
  const { ask, close } = thread();
  expect(await ask('your data', LONG_MS, limit.signal)).toBe('what it was given');
  // the look
  expect(vi.getTimerCount()).toBe(1);
  const ended = expect(ask('wait until nobody waits', LONG_MS)).rejects.toThrow();
  await close();
  await ended;
  expect(vi.getTimerCount()).toBe(0);
  expect(removed).toHaveBeenCalledTimes(1);
});

test('the end of the process is heard once, however many threads begin', async () => {
  await thread().ask('your data', LONG_MS);
  const heard = process.listenerCount('exit');
  await thread().ask('your data', LONG_MS);
  expect(process.listenerCount('exit')).toBe(heard);
});

test('what is sent in one turn goes together, once', async () => {
  const sent: (readonly number[])[] = [];
  const send = together<number>((all) => sent.push(all));
  for (const number of [1, 2, 3]) send(number);
  for (let turn = 0; turn < 2; turn++) await new Promise((resolve) => setImmediate(resolve));
  expect(sent).toEqual([[1, 2, 3]]);
});
