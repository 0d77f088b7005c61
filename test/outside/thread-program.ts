// A program of a thread, for thread.test.ts.
import { answerQuestions, given } from '../../src/outside/outbound/thread-answers.ts';
import { WORKING } from './thread-words.ts';

export type Question =
  | 'your data'
  | 'throw'
  | 'never end'
  | 'fill the memory'
  | 'wait until nobody waits'
  | 'work for 7'
  | 'work for 7 for ever'
  | 'work for 7 in pieces';

const { data, work } = given<string>();

/** Hears when something is computed. */
const told = new BroadcastChannel(WORKING);

/** Longer than one piece of work may last. */
const LONG_MS = 4_000;
function computeFor(ms: number): void {
  told.postMessage('computes');
  for (const began = performance.now(); performance.now() - began < ms; );
}

answerQuestions<Question, string>(async (question, signal) => {
  if (question === 'your data') return data;
  if (question === 'throw')
    return new Promise(() =>
      setImmediate(() => {
        throw new Error('a fault of its own');
      }),
    );
  if (question === 'never end') for (;;);
  if (question === 'fill the memory') for (const kept: unknown[] = []; ; ) kept.push(Array.from({ length: 1_000 }, () => ({})));
  if (question === 'wait until nobody waits')
    return new Promise((resolve) => signal.addEventListener('abort', () => resolve('nobody waits')));
  const isForEver = question === 'work for 7 for ever';
  if (question === 'work for 7 in pieces')
    for (const began = performance.now(); performance.now() - began < LONG_MS; ) work.do(7n, () => computeFor(10));
  else work.do(7n, () => computeFor(isForEver ? Number.POSITIVE_INFINITY : 1));
  return 'done';
});
