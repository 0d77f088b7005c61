// A process, and its thread, which computes for minutes in one piece of native code when the process ends, or not, for thread.test.ts.
import { pbkdf2Sync } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import { openThread } from '../../src/outside/outbound/thread.ts';
import { answerQuestions, given } from '../../src/outside/outbound/thread-answers.ts';

type Question = 'begin' | 'compute' | 'wait for the end';
const LONG_MS = 60_000;
const RETURNS_WITHIN_MS = 20;
/** Some minutes. */
const MANY = 1e8;

function open(ended: Int32Array) {
  const ignored = { stuck: () => undefined, failed: () => undefined };
  return openThread<Question, null>({ file: new URL(import.meta.url), data: ended, limits: {} }, ignored);
}

async function run(how: string | undefined): Promise<void> {
  const ended = new Int32Array(new SharedArrayBuffer(4));
  // before the thread's own, which looks whether it is stuck
  if (how === 'returns')
    process.on('exit', () => {
      Atomics.store(ended, 0, 1);
      Atomics.notify(ended, 0);
    });
  const thread = open(ended);
  await thread.ask('begin', LONG_MS);
  if (how === 'beside an idle one') await open(ended).ask('begin', LONG_MS);
  if (how !== 'idle') {
    thread.ask(how === 'returns' ? 'wait for the end' : 'compute', LONG_MS).catch(() => undefined);
    // it has that by then
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
  if (how === 'close') await thread.close();
  console.log('exits');
  process.exit(0);
}

function answer(): void {
  const { data: ended, work } = given<Int32Array>();
  answerQuestions<Question, null>(async (question) => {
    if (question === 'compute') work.do(7n, () => void pbkdf2Sync('a', 'b', MANY, 64, 'sha512'));
    if (question === 'wait for the end')
      work.do(7n, () => {
        Atomics.wait(ended, 0, 0);
        // it is met once more by then
        Atomics.wait(ended, 0, 1, RETURNS_WITHIN_MS);
      });
    return null;
  });
}

if (isMainThread) await run(process.argv[2]);
else answer();
