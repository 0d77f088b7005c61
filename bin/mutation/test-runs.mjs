// Runs parts of the tests in a copy of the repository, for `npm run mutate`: each file's mutants with a PostgreSQL and workers of their own, so
// that what the mutants of one file have left behind disturbs no other.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

const RUN_WITHIN_MS = 120_000;
/** A part of the tests is ended when it takes this many times as long as without a mutant. */
const SLOWER = 4;
const LONGEST_MESSAGE = 300;
const LOOK_MS = 2_000;

/** Ends what hangs: a mutant may never come to an end, and no test's time limit can stop it. */
function endWorkers() {
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

/** @param root where node_modules is; @param copy where the tests run */
export async function openTests(root, copy) {
  const { createVitest } = await import(pathToFileURL(join(root, 'node_modules/vitest/dist/node.js')).href);
  const vitest = await createVitest('test', { root: copy, watch: false, bail: 1, reporters: [{}], silent: true, retry: 0 });
  await vitest.standalone?.();
  /** How long each part takes without a mutant. */
  const usualMs = new Map();

  async function failures(part) {
    const specs = await vitest.globTestSpecifications([join(copy, part)]);
    if (specs.length === 0) throw new Error(`there is no test ${part}`);
    const withinMs = Math.max(RUN_WITHIN_MS, SLOWER * (usualMs.get(part) ?? Number.POSITIVE_INFINITY));
    // the file after one that was ended begins in a worker of its own, and hangs as well
    const dueMs = performance.now() + withinMs;
    const watchdog = setInterval(() => performance.now() > dueMs && endWorkers(), LOOK_MS);
    try {
      return failuresOf(await vitest.runTestSpecifications(specs, true), new Set(specs.map(({ moduleId }) => moduleId)));
    } finally {
      clearInterval(watchdog);
    }
  }

  return {
    /** Part by part, in their order: the first that fails ends it. Returns what failed, nothing when all is green. */
    async run(parts) {
      for (const part of parts) {
        const began = performance.now();
        const found = await failures(part);
        if (found.length > 0) return found;
        if (!usualMs.has(part)) usualMs.set(part, performance.now() - began);
      }
      return [];
    },
    changed: (path) => vitest.invalidateFile(join(copy, path)),
    close: () => vitest.close(),
  };
}
