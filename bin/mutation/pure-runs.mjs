// Tries all mutants of a file of pure code in one thread: file and tests are loaded once (switched.mjs), which takes a tenth of a second for a
// mutant instead of seconds. A mutant with which a test does not end is known by the CPU it takes, since the machine may be busy; its thread is
// ended, and another goes on.
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { BroadcastChannel } from 'node:worker_threads';
import { endThreads, openInOneThread } from './test-runs.mjs';

const LOOK_MS = 500;
/** A test that takes so much CPU does not end any more, or so many times what the longest takes without a mutant. */
const ENDS_WITHIN_CPU_MS = 5_000;
const SLOWER = 6;
/** Until the tests have run once without a mutant. */
const BEGINS_WITHIN_CPU_MS = 300_000;
const LOOP = 'test/mutation-loop.test.ts';

/** Has all tests of the copy register themselves with bin/mutation/collected-tests.mjs. Returns what undoes it. */
function redirectTests(copy) {
  const before = new Map();
  const shim = join(copy, 'bin/mutation/collected-tests.mjs');
  for (const name of readdirSync(join(copy, 'test'), { recursive: true, encoding: 'utf8' })) {
    if (!name.endsWith('.ts')) continue;
    const path = join(copy, 'test', name);
    const text = readFileSync(path, 'utf8');
    const to = relative(dirname(path), shim);
    if (!text.includes("from 'vitest'")) continue;
    before.set(path, text);
    writeFileSync(path, text.replaceAll("from 'vitest'", `from '${to}'`));
  }
  return () => {
    for (const [path, text] of before) writeFileSync(path, text);
  };
}

function testFiles(copy, { tests, left }) {
  return readdirSync(join(copy, 'test'), { recursive: true, encoding: 'utf8' })
    .map((name) => `test/${name}`)
    .filter((path) => path.endsWith('.test.ts') && tests.some((part) => path.startsWith(part)))
    .filter((path) => !left.some((part) => path.startsWith(part)))
    .sort()
    .map((path) => join(copy, path));
}

/**
 * @param copy of the repository, in which `path` already holds all its mutants
 * @param longestMs tests that take more CPU than this are left out
 * @param tell gets each result: `{ number, killer, ms }`
 */
export async function runPure({ root, copy, tests, left: leftOut, numbers, longestMs, tell, isStopped }) {
  const undo = redirectTests(copy);
  const channelName = `mutants-${process.pid}`;
  const channel = new BroadcastChannel(channelName);
  const vitest = await openInOneThread(root, copy, { testTimeout: 0 });
  let [left, begun, cpuAt, withinMs] = [[...numbers], null, process.cpuUsage().user, BEGINS_WITHIN_CPU_MS];
  channel.onmessage = ({ data }) => {
    cpuAt = process.cpuUsage().user;
    if (data.begins !== undefined) begun = data.begins;
    if (data.longestMs !== undefined) withinMs = Math.max(ENDS_WITHIN_CPU_MS, SLOWER * data.longestMs);
    if (data.number !== undefined) {
      left = left.filter((one) => one !== data.number);
      begun = null;
    }
    tell(data);
  };
  const watchdog = setInterval(() => {
    if (isStopped() || (process.cpuUsage().user - cpuAt) / 1000 > withinMs) endThreads();
  }, LOOK_MS);
  try {
    while (left.length > 0 && !isStopped()) {
      const before = left.length;
      const given = { files: testFiles(copy, { tests, left: leftOut }), numbers: left, longestMs };
      writeFileSync(
        join(copy, LOOP),
        `import { test } from 'vitest';\nimport { loop } from '../bin/mutation/test-loop.mjs';\ntest('mutants', () => loop(${JSON.stringify(channelName)}, ${JSON.stringify(given)}));\n`,
      );
      vitest.invalidateFile(join(copy, LOOP));
      [cpuAt, withinMs] = [process.cpuUsage().user, BEGINS_WITHIN_CPU_MS];
      const { testModules, unhandledErrors } = await vitest.runTestSpecifications(
        await vitest.globTestSpecifications([join(copy, LOOP)]),
        true,
      );
      // what it said last is still on its way
      await new Promise((resolve) => setTimeout(resolve, 100));
      if (isStopped()) break;
      if (begun !== null) {
        left = left.filter((one) => one !== begun);
        tell({ number: begun, killer: { file: '', name: '(it does not end)' }, ms: 0 });
        begun = null;
      } else if (left.length === before && left.length > 0) {
        const why = testModules.flatMap((one) => [
          ...one.errors(),
          ...[...one.children.allTests()].flatMap((test) => test.result().errors ?? []),
        ]);
        throw new Error(
          `the tests cannot be loaded: ${[...why, ...unhandledErrors].map((error) => error.stack ?? error.message).join('\n')}`,
        );
      }
    }
  } finally {
    clearInterval(watchdog);
    channel.close();
    await vitest.close();
    undo();
    rmSync(join(copy, LOOP), { force: true });
  }
  return left;
}
