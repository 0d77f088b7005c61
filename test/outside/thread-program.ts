// A program of a thread, for thread.test.ts.
import { workerData } from 'node:worker_threads';
import { answerQuestions } from '../../src/outside/outbound/thread-answers.ts';

export type Question = 'your data' | 'throw' | 'never end' | 'fill the memory' | 'wait until nobody waits';

answerQuestions<Question, string>(async (question, signal) => {
  if (question === 'your data') return workerData as string;
  if (question === 'throw')
    setImmediate(() => {
      throw new Error('a fault of its own');
    });
  if (question === 'never end') for (;;);
  if (question === 'fill the memory') for (const kept: unknown[] = []; ; ) kept.push(Array.from({ length: 1_000 }, () => ({})));
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve('nobody waits')));
});
