// `npm run mutate [-- <part of a file's path> …]`: breaks one comparison, operator, number or statement of the money code at a time and runs the
// tests that must notice (bin/mutation/areas.mjs). Each mutant is printed with what became of it; one that survives wants a test, or a line in
// test/mutants.json that says why it changes nothing. Works in a copy of the repository. Not part of `npm test`: a whole run takes hours.
// The tests are run without a mutant before and after those of each file. If they fail then, a failure says nothing, and nothing is counted:
// exit 2. Interrupted, it prints what it has found, and with which `--from` to go on.
//   --from N      begins with the Nth mutant of the first file, where a run before was interrupted
//   --only N,N,…  these mutants of it alone
//   --quick       leaves out the slow tests: what survives then may still be killed by them
//   --workers N   N copies, each with every Nth mutant: half of a test's time is waiting
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { AREAS } from './mutation/areas.mjs';
import { mutantsOf, nameOf } from './mutation/mutants.mjs';
import { runPure } from './mutation/pure-runs.mjs';
import { switchedText } from './mutation/switched.mjs';
import { openTests } from './mutation/test-runs.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const { values: options, positionals: wanted } = parseArgs({
  allowPositionals: true,
  options: {
    from: { type: 'string', default: '1' },
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    workers: { type: 'string', default: '1' },
    /** Which of several workers this process is: `2/3`. */
    share: { type: 'string', default: '1/1' },
  },
});
const [share, shares] = options.share.split('/').map(Number);
const only = options.only?.split(',').map(Number);
const equivalent = JSON.parse(readFileSync(join(root, 'test/mutants.json'), 'utf8'));
/** `next`: of an interrupted run, the file and the number of the mutant that was not tried any more. */
const found = { killed: 0, excused: 0, survivors: [], next: null };
let isStopped = false;
/** What runs tests now. */
const opened = new Set();
/** With `--quick` no test of pure code counts that takes more CPU than this. */
const QUICK_MS = 2_000;

class UnchangedFails extends Error {}

/** A copy of the repository, in which this process works from now on. */
function enterCopy() {
  const copy = mkdtempSync(join(tmpdir(), 'bursar-mutate-'));
  for (const name of readdirSync(root).filter((one) => !['node_modules', '.git', 'data'].includes(one)))
    cpSync(join(root, name), join(copy, name), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
  process.chdir(copy);
  return copy;
}

const testsOf = ({ tests, slow = [] }) => (options.quick ? { tests, slow: [], left: slow } : { tests, slow, left: [] });

/** Once more where something fails: a busy machine makes a test slow now and then. @throws where it fails both times */
async function checkUnchanged(tests, { area, path, when }) {
  const first = await tests.run(testsOf(area));
  if (first.length === 0) return [];
  const second = await tests.run(testsOf(area));
  if (second.length === 0) return first;
  const told = [...first, ...second].map(({ test, why }) => `\n    ${test}: ${why}`).join('');
  throw new UnchangedFails(`${when} the mutants of ${path} these tests fail without any, twice:${told}`);
}

/** The mutants of a file that this process tries, each with its number. */
function chosen(mutants, isFirstFile) {
  return [...mutants.entries()]
    .map(([index, mutant]) => ({ number: index + 1, mutant }))
    .filter(({ number }) => only === undefined || only.includes(number))
    .filter(({ number }) => !isFirstFile || number >= Number(options.from))
    .filter(({ number }) => number % shares === share % shares);
}

/** What became of a mutant: `killer` is the test that fails with it, null when none does. */
function tell({ path, text, total }, { number, mutant, killer, ms }) {
  const place = `${path}:${text.slice(0, mutant.start).split('\n').length}  ${nameOf(text, mutant)}`;
  const seconds = `(${(ms / 1000).toFixed(2)} s)`;
  if (killer === undefined) found.excused += 1;
  else if (killer === null) found.survivors.push(`${number}/${total} ${place}`);
  else found.killed += 1;
  const what = killer === undefined ? 'equivalent' : killer === null ? `SURVIVES ${seconds}` : `killed ${seconds} by ${killer}`;
  console.log(`  ${number}/${total} ${what}  ${place}`);
  return place;
}

/** Every mutant of a file. What is killed by a test that also fails without one is told as doubtful. */
async function mutate({ copy, area, path, isFirstFile }) {
  const text = readFileSync(join(copy, path), 'utf8');
  const mutants = mutantsOf(path, text);
  const file = { path, text, total: mutants.length };
  const wantedOnes = [];
  for (const { number, mutant } of chosen(mutants, isFirstFile)) {
    if (equivalent[path]?.[nameOf(text, mutant)] === undefined) wantedOnes.push({ number, mutant });
    else tell(file, { number, mutant, ms: 0 });
  }
  const rest = area.isPure ? await mutatePure(file, { copy, area, wantedOnes }) : wantedOnes;
  if (rest.length === 0 || isStopped) return;
  const tests = await openTests(root, copy, area.isPure);
  opened.add(tests);
  const killers = new Map();
  const unstable = await checkUnchanged(tests, { area, path, when: 'before' });
  for (const { number, mutant } of rest) {
    found.next = `${path} --from ${number}`;
    if (isStopped) return;
    writeFileSync(join(copy, path), text.slice(0, mutant.start) + mutant.to + text.slice(mutant.end));
    tests.changed(path);
    const began = performance.now();
    const [killer] = await tests.run(testsOf(area));
    if (isStopped) return;
    const place = tell(file, { number, mutant, killer: killer?.test ?? null, ms: performance.now() - began });
    if (killer !== undefined) killers.set(place, killer.test);
  }
  writeFileSync(join(copy, path), text);
  tests.changed(path);
  unstable.push(...(await checkUnchanged(tests, { area, path, when: 'after' })));
  for (const { test, why } of unstable) console.log(`  UNSTABLE without a mutant: ${test}: ${why}`);
  for (const [place, killer] of killers)
    if (unstable.some(({ test }) => test === killer)) console.log(`  DOUBTFUL, killed by an unstable test: ${place}`);
  await tests.close();
  opened.delete(tests);
}

/** Those mutants of pure code that are functions' own; returns the others, which change what is worked out when the file is loaded. */
async function mutatePure(file, { copy, area, wantedOnes }) {
  const { path, text } = file;
  const switched = switchedText(path, text, mutantsOf(path, text));
  const mutantOf = new Map(wantedOnes.map(({ number, mutant }) => [number, mutant]));
  const numbers = [...mutantOf.keys()].filter((number) => switched.numbers.has(number));
  if (numbers.length > 0) {
    writeFileSync(join(copy, path), switched.text);
    const left = await runPure({
      root,
      copy,
      tests: [...testsOf(area).tests, ...testsOf(area).slow],
      left: testsOf(area).left,
      numbers,
      longestMs: options.quick ? QUICK_MS : Number.MAX_SAFE_INTEGER,
      isStopped: () => isStopped,
      tell({ number, killer, ms, unusable, tests, left: tooLong, ms: all }) {
        if (unusable !== undefined) console.log(`  FAILS WITHOUT A MUTANT, and is left out: ${relative(copy, unusable)}`);
        if (tests !== undefined)
          console.log(`  ${tests} tests, ${(all / 1000).toFixed(1)} s of CPU; ${tooLong} more are left out`);
        if (number === undefined) return;
        const by = killer === null ? null : `${relative(copy, killer.file)}: ${killer.name}`;
        tell(file, { number, mutant: mutantOf.get(number), killer: by, ms });
      },
    });
    found.next = `${path} --from ${left[0]}`;
    writeFileSync(join(copy, path), text);
  }
  return wantedOnes.filter(({ number }) => !switched.numbers.has(number));
}

/** One file after the other, in a copy. Returns the exit status. */
async function mutateAll() {
  const copy = enterCopy();
  for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => opened.forEach((tests) => void tests.close()));
  try {
    const files = readdirSync(join(copy, 'src'), { recursive: true, encoding: 'utf8' })
      .map((name) => `src/${name}`)
      .filter((path) => wanted.length === 0 || wanted.some((one) => path.includes(one)))
      .flatMap((path) => ({ path, area: AREAS.find(({ code }) => code.test(path)) ?? [] }))
      .filter(({ area }) => area.tests !== undefined)
      .sort((a, b) => (a.path < b.path ? -1 : 1));
    if (files.length === 0) throw new Error(`no tests are named in bin/mutation/areas.mjs for ${wanted.join(', ')}`);
    for (const [index, file] of files.entries()) {
      // an interrupted run is being ended
      if (isStopped) break;
      console.log(`${file.path}, tested by ${[...testsOf(file.area).tests, ...testsOf(file.area).slow].join(', ')}`);
      await mutate({ copy, ...file, isFirstFile: index === 0 });
    }
    return isStopped ? 130 : found.survivors.length === 0 ? 0 : 1;
  } catch (error) {
    if (isStopped) return 130;
    if (!(error instanceof UnchangedFails)) throw error;
    console.log(`NOTHING COUNTS: ${error.message}`);
    for (const tests of opened) await tests.close();
    return 2;
  } finally {
    rmSync(copy, { recursive: true, force: true });
  }
}

/** Has several processes try a share of the mutants each. Returns the highest of their exit statuses. */
async function mutateByWorkers(count) {
  const stops = [];
  const ends = Array.from({ length: count }, async (_, index) => {
    const child = fork(fileURLToPath(import.meta.url), [
      ...process.argv.slice(2),
      '--workers',
      '1',
      '--share',
      `${index + 1}/${count}`,
    ]);
    stops.push(() => child.kill('SIGTERM'));
    child.on('message', (part) => {
      found.killed += part.killed;
      found.excused += part.excused;
      found.survivors.push(...part.survivors);
      found.next = [found.next, part.next].filter((one) => one !== null).sort(byNumber)[0] ?? null;
    });
    const [code] = await once(child, 'exit');
    return code ?? 1;
  });
  process.once('SIGINT', () => stops.forEach((stop) => void stop()));
  process.once('SIGTERM', () => stops.forEach((stop) => void stop()));
  return Math.max(...(await Promise.all(ends)));
}

const byNumber = (one, other) => Number(one.split(' ').at(-1)) - Number(other.split(' ').at(-1));

function noteStop() {
  isStopped = true;
}
for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, noteStop);
const workers = Number(options.workers);
const code = workers > 1 ? await mutateByWorkers(workers) : await mutateAll();
if (process.send !== undefined) process.send({ ...found, next: isStopped ? found.next : null });
else {
  for (const one of found.survivors) console.log(`SURVIVES ${one}`);
  const { killed, excused, survivors } = found;
  console.log(`${killed} killed, ${excused} equivalent, ${survivors.length} survive`);
  if (isStopped && found.next !== null) console.log(`interrupted: go on with npm run mutate -- ${found.next}`);
}
process.exit(code);
