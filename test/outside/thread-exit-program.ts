// A process, and its thread, which computes for minutes in one piece of native code when the process ends, for thread.test.ts.
import { pbkdf2Sync } from 'node:crypto';
import { isMainThread } from 'node:worker_threads';
import { openThread } from '../../src/outside/outbound/thread.ts';
import { answerQuestions, given } from '../../src/outside/outbound/thread-answers.ts';

type Question = 'begin' | 'compute';
const LONG_MS = 60_000;
/** Some minutes. */
const MANY = 1e8;

async function run(): Promise<void> {
  const ignored = { stuck: () => undefined, failed: () => undefined };
  const thread = openThread<Question, null>({ file: new URL(import.meta.url), data: null, limits: {} }, ignored);
  await thread.ask('begin', LONG_MS);
  if (process.argv.includes('idle')) process.exit(0);
  thread.ask('compute', LONG_MS).catch(() => undefined);
  // it has that by then
  await new Promise((resolve) => setTimeout(resolve, 500));
  if (process.argv.includes('close')) await thread.close();
  console.log('exits');
  process.exit(0);
}

function answer(): void {
  const { work } = given();
  answerQuestions<Question, null>(async (question) => {
    if (question === 'compute') work.do(7n, () => void pbkdf2Sync('a', 'b', MANY, 64, 'sha512'));
    return null;
  });
}

if (isMainThread) await run();
else answer();
