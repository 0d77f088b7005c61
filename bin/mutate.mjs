// `npm run mutate [-- <part of a file's path> …]`: breaks one comparison, operator, number or statement of the money code at a time and runs the
// tests that must notice (bin/mutation/areas.mjs). Each mutant is printed with what became of it; one that survives wants a test, or a line in
// test/mutants.json that says why it changes nothing. Works in a copy of the repository. Not part of `npm test`: a whole run takes hours.
// The tests are run without a mutant before and after those of each file. If they fail then, a failure says nothing, and nothing is counted:
// exit 2. Interrupted, it prints what it has found.
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { AREAS } from './mutation/areas.mjs';
import { mutantsOf, nameOf } from './mutation/mutants.mjs';
import { openTests } from './mutation/test-runs.mjs';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const wanted = process.argv.slice(2);
const equivalent = JSON.parse(readFileSync(join(root, 'test/mutants.json'), 'utf8'));
const found = { killed: 0, excused: 0, survivors: [] };
let isStopped = false;

const copy = mkdtempSync(join(tmpdir(), 'bursar-mutate-'));
for (const name of readdirSync(root).filter((one) => !['node_modules', '.git', 'data'].includes(one)))
  cpSync(join(root, name), join(copy, name), { recursive: true });
symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'));
process.chdir(copy);

class UnchangedFails extends Error {}

/** Once more where something fails: a busy machine makes a test slow now and then. @throws where it fails both times */
async function checkUnchanged(tests, { area, path, when }) {
  const first = await tests.run(area.tests);
  if (first.length === 0) return [];
  const second = await tests.run(area.tests);
  if (second.length === 0) return first;
  const told = [...first, ...second].map(({ test, why }) => `\n    ${test}: ${why}`).join('');
  throw new UnchangedFails(`${when} the mutants of ${path} these tests fail without any, twice:${told}`);
}

/** Every mutant of a file. What is killed by a test that also fails without one is told as doubtful. */
async function mutate(tests, { area, path }) {
  const text = readFileSync(join(copy, path), 'utf8');
  const mutants = mutantsOf(path, text);
  const killers = new Map();
  const unstable = await checkUnchanged(tests, { area, path, when: 'before' });
  for (const [index, mutant] of mutants.entries()) {
    if (isStopped) return;
    const name = nameOf(text, mutant);
    const place = `${path}:${text.slice(0, mutant.start).split('\n').length}  ${name}`;
    const tell = (what) => console.log(`  ${index + 1}/${mutants.length} ${what}  ${place}`);
    if (equivalent[path]?.[name] !== undefined) {
      found.excused += 1;
      tell('equivalent');
      continue;
    }
    writeFileSync(join(copy, path), text.slice(0, mutant.start) + mutant.to + text.slice(mutant.end));
    tests.changed(path);
    const began = performance.now();
    const [killer] = await tests.run(area.tests);
    if (isStopped) return;
    const seconds = `(${((performance.now() - began) / 1000).toFixed(1)} s)`;
    if (killer === undefined) {
      found.survivors.push(place);
      tell(`SURVIVES ${seconds}`);
    } else {
      found.killed += 1;
      killers.set(place, killer.test);
      tell(`killed ${seconds} by ${killer.test}`);
    }
  }
  writeFileSync(join(copy, path), text);
  tests.changed(path);
  unstable.push(...(await checkUnchanged(tests, { area, path, when: 'after' })));
  for (const { test, why } of unstable) console.log(`  UNSTABLE without a mutant: ${test}: ${why}`);
  for (const [place, killer] of killers)
    if (unstable.some(({ test }) => test === killer)) console.log(`  DOUBTFUL, killed by an unstable test: ${place}`);
}

async function stop() {
  isStopped = true;
  await open?.close();
  end(130);
}

function end(code) {
  rmSync(copy, { recursive: true, force: true });
  for (const place of found.survivors) console.log(`SURVIVES ${place}`);
  const { killed, excused, survivors } = found;
  console.log(`${killed} killed, ${excused} equivalent, ${survivors.length} survive${isStopped ? '; interrupted' : ''}`);
  process.exit(code);
}

let open = null;
process.once('SIGINT', stop);
process.once('SIGTERM', stop);
const files = readdirSync(join(copy, 'src'), { recursive: true, encoding: 'utf8' })
  .map((name) => `src/${name}`)
  .filter((path) => wanted.length === 0 || wanted.some((one) => path.includes(one)))
  .flatMap((path) => ({ path, area: AREAS.find(({ code }) => code.test(path)) ?? [] }))
  .filter(({ area }) => area.tests !== undefined)
  .sort((a, b) => (a.path < b.path ? -1 : 1));
if (files.length === 0) throw new Error(`no tests are named in bin/mutation/areas.mjs for ${wanted.join(', ')}`);
for (const file of files) {
  // an interrupted run is being ended
  if (isStopped) break;
  console.log(`${file.path}, tested by ${file.area.tests.join(', ')}`);
  open = await openTests(root, copy);
  try {
    await mutate(open, file);
  } catch (error) {
    if (!(error instanceof UnchangedFails)) throw error;
    console.log(`NOTHING COUNTS: ${error.message}`);
    await open.close();
    end(2);
  }
  await open.close();
}
if (!isStopped) end(found.survivors.length === 0 ? 0 : 1);
