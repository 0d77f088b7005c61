// Runs parts of the tests in a copy of the repository, for `npm run mutate`: each file's mutants with a PostgreSQL and workers of their own, so
// that what the mutants of one file have left behind disturbs no other. Tests of pure code need neither: they run in one thread of this process,
// one file after the other, which loads what was changed anew for each run.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const RUN_WITHIN_MS = 120_000;
const PURE_RUN_WITHIN_MS = 30_000;
/** A part of the tests is ended when it takes this many times as long as without a mutant. */
const SLOWER = 4;
const LONGEST_MESSAGE = 300;
const LOOK_MS = 2_000;
const SIGNALS = ['SIGINT', 'SIGTERM'];

/** Threads that run tests. */
const threads = new Set();
process.on('worker', (thread) => {
  threads.add(thread);
  thread.once('exit', () => threads.delete(thread));
});

/** Ends what hangs: a mutant may never come to an end, and no test's time limit can stop it. */
function endWorkers() {
  endThreads();
  for (const pid of readdirSync('/proc').filter((name) => /^\d+$/.test(name))) {
    try {
      // proc(5): pid, (name), state, parent; a name may hold spaces
      const [, parent] = readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ');
      if (Number(parent) === process.pid && readlinkSync(`/proc/${pid}/exe`) === process.execPath)
        process.kill(Number(pid), 'SIGKILL');
    } catch {
      // it has ended by itself
    }
  }
}

/**
 * What failed in a run, each with the first line of why.
 * @param files those that were run: a run returns what every file did when it was run last, also those that were not run now
 */
function failuresOf({ testModules, unhandledErrors }, files) {
  const line = (error) =>
    String(error?.message ?? error)
      .split('\n')[0]
      .slice(0, LONGEST_MESSAGE);
  const found = unhandledErrors.map((error) => ({ test: '(outside every test)', why: line(error) }));
  for (const module of testModules.filter((one) => files.has(one.moduleId) && !one.ok())) {
    const tests = [...module.children.allTests('failed')];
    for (const one of tests) found.push({ test: `${module.relativeModuleId}: ${one.name}`, why: line(one.result().errors?.[0]) });
    const others = [...module.errors(), ...[...module.children.allSuites()].flatMap((suite) => suite.errors())];
    if (tests.length === 0) found.push({ test: module.relativeModuleId, why: line(others[0] ?? 'it did not end') });
  }
  return found;
}

/** @param root where node_modules is */
async function openVitest(root, options, plugins = []) {
  const { createVitest } = await import(pathToFileURL(join(root, 'node_modules/vitest/dist/node.js')).href);
  const before = SIGNALS.map((signal) => process.listeners(signal));
  const vitest = await createVitest(
    'test',
    {
      config: join(root, 'bin/mutation/vitest.config.ts'),
      watch: false,
      bail: 1,
      reporters: [{}],
      silent: true,
      retry: 0,
      ...options,
    },
    { plugins },
  );
  // Vitest's own listeners end this process a millisecond after a signal, and its PostgreSQL goes on for ever
  for (const [at, signal] of SIGNALS.entries())
    for (const one of process.listeners(signal)) if (!before[at].includes(one)) process.off(signal, one);
  return vitest;
}

/** Tests of pure code need no PostgreSQL and leave nothing behind: one thread of this process runs all files. */
export function openInOneThread(root, copy, options = {}) {
  // set by a plugin: an empty list among the options would be added to the one of the configuration
  const withoutPostgres = {
    name: 'without-postgres',
    config(config) {
      config.test.globalSetup = [];
    },
  };
  return openVitest(root, { root: copy, pool: 'threads', isolate: false, maxWorkers: 1, ...options }, [withoutPostgres]);
}

/** Ends the threads that run tests, whatever they do. */
export function endThreads() {
  for (const thread of threads) void thread.terminate();
}

/**
 * The order of test files within a part: what has killed the last mutant first, since the next one is often on the same line, then the
 * quickest.
 */
function fileOrder() {
  const usualMs = new Map();
  let lastKiller = null;
  const rank = ({ moduleId }) => (moduleId === lastKiller ? -1 : (usualMs.get(moduleId) ?? Number.POSITIVE_INFINITY));
  return {
    note(modules) {
      for (const module of modules) {
        if (!module.ok()) lastKiller = module.moduleId;
        else if (!usualMs.has(module.moduleId)) usualMs.set(module.moduleId, module.diagnostic().duration);
      }
    },
    Sequencer: class {
      shard = (files) => files;
      sort = (files) => files.toSorted((a, b) => (rank(a) < rank(b) ? -1 : rank(a) > rank(b) ? 1 : 0));
    },
  };
}

/**
 * @param root where node_modules is; @param copy where the tests run
 * @param isPure the tests need no PostgreSQL and leave nothing behind: one thread runs all files
 */
export async function openTests(root, copy, isPure = false) {
  const order = fileOrder();
  const sequence = { sequencer: order.Sequencer };
  const vitest = isPure ? await openInOneThread(root, copy, { sequence }) : await openVitest(root, { root: copy, sequence });
  await vitest.standalone?.();
  /** How long each part takes without a mutant. */
  const usualMs = new Map();

  async function failures(part, done) {
    const found = await vitest.globTestSpecifications([join(copy, part)]);
    if (found.length === 0) throw new Error(`there is no test ${part}`);
    // what another part has run, or is to run by itself at the end
    const specs = found.filter(({ moduleId }) => !done.has(moduleId));
    if (specs.length === 0) return [];
    const files = new Set(specs.map(({ moduleId }) => moduleId));
    for (const file of files) done.add(file);
    const withinMs = Math.max(
      isPure ? PURE_RUN_WITHIN_MS : RUN_WITHIN_MS,
      SLOWER * (usualMs.get(part) ?? Number.POSITIVE_INFINITY),
    );
    // the file after one that was ended begins in a worker of its own, and hangs as well
    const dueMs = performance.now() + withinMs;
    const watchdog = setInterval(() => performance.now() > dueMs && endWorkers(), LOOK_MS);
    try {
      const result = await vitest.runTestSpecifications(specs, true);
      order.note(result.testModules.filter(({ moduleId }) => files.has(moduleId)));
      return failuresOf(result, files);
    } finally {
      clearInterval(watchdog);
    }
  }

  return {
    /**
     * Part by part, in their order: the first that fails ends it. Returns what failed, nothing when all is green.
     * @param tests the parts; a file that several of them name is run once
     * @param slow parts that are run after all others, although others name them; @param left those that are not run at all
     */
    async run({ tests, slow, left }) {
      const later = await Promise.all([...slow, ...left].map((part) => vitest.globTestSpecifications([join(copy, part)])));
      const early = new Set(later.flat().map(({ moduleId }) => moduleId));
      const late = new Set();
      for (const part of [...tests, ...slow]) {
        const began = performance.now();
        const found = await failures(part, slow.includes(part) ? late : early);
        if (found.length > 0) return found;
        if (!usualMs.has(part)) usualMs.set(part, performance.now() - began);
      }
      return [];
    },
    changed: (path) => vitest.invalidateFile(join(copy, path)),
    close: () => vitest.close(),
  };
}
