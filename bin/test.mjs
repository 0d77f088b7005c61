// `npm test`: fetches the third-party programs that the tests run against (scripts/peers), runs every test, prints which peers were used
// and ends with `N passed, N failed`. A few files that fail are run again by themselves first. Arguments go to vitest (`npm test -- test/core`):
// then nothing is fetched beforehand, since each test fetches what it needs.
import { spawn } from 'node:child_process';
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, 'node_modules', '.bin');
const PEERS = [
  'bitcoind',
  'litecoind',
  'bchd',
  'lnd',
  'geth',
  'anvil',
  'achcheck',
  'schemathesis',
  'openapi-typescript',
  'webhook-libraries',
  'php',
];
const debian = existsSync('/etc/debian_version');
const MEMORY_FOLDER = '/dev/shm';
const GIB = 2 ** 30;
/** More failing files than this are not a matter of load. */
const MOST_AGAIN = 10;

/** Fetches one peer: its path, or why it is not available. */
function fetchPeer(name) {
  const started = performance.now();
  return new Promise((resolve) => {
    const child = spawn('bash', [join(root, 'scripts', 'peers', `${name}.sh`)], { cwd: root, stdio: ['ignore', 'pipe', 'pipe'] });
    let path = '';
    let said = '';
    child.stdout.on('data', (chunk) => (path += chunk));
    child.stderr.on('data', (chunk) => (said += chunk));
    child.on('error', (error) => resolve({ name, path: null, reason: error.message }));
    child.on('close', (code) => {
      const seconds = ((performance.now() - started) / 1000).toFixed(1);
      if (code === 0) resolve({ name, path: path.trim().split('\n').at(-1), reason: `${seconds} s` });
      else resolve({ name, path: null, reason: said.trim().split('\n').at(-1) || `exit ${code}` });
    });
  });
}

/**
 * The folder for what tests write: databases, nodes and data folders. In memory where there is room: a test's database costs half there, and
 * what was written needs no disk. A TMPDIR that is set stays the folder above it.
 */
async function temporaryFolder() {
  const above = process.env.TMPDIR === undefined && hasRoomInMemory() ? MEMORY_FOLDER : tmpdir();
  for (const name of readdirSync(above)) {
    const owner = /^bursar-tests-(\d+)$/.exec(name)?.[1];
    // of a run that was killed
    if (owner !== undefined && !existsSync(`/proc/${owner}`)) await removeWhole(join(above, name));
  }
  const path = join(above, `bursar-tests-${process.pid}`);
  mkdirSync(path);
  // PostgreSQL's user enters it
  chmodSync(path, 0o711);
  return path;
}

/** Removes the folder of a run. A run that was interrupted has stopped no database: that comes first. */
async function removeWhole(path) {
  const running = () => readdirSync('/proc').filter((pid) => /^\d+$/.test(pid) && commandOf(pid).includes(`-D\0${path}/`));
  for (const pid of running()) {
    try {
      process.kill(Number(pid), 'SIGQUIT');
    } catch {
      // it has ended meanwhile
    }
  }
  const until = performance.now() + 10_000;
  while (running().length > 0 && performance.now() < until) await delay(50);
  rmSync(path, { recursive: true, force: true });
}

function commandOf(pid) {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8');
  } catch {
    return '';
  }
}

function hasRoomInMemory() {
  try {
    const mount = readFileSync('/proc/mounts', 'utf8')
      .split('\n')
      .find((line) => line.split(' ')[1] === MEMORY_FOLDER);
    const { bavail, bsize } = statfsSync(MEMORY_FOLDER);
    const available = Number(/^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync('/proc/meminfo', 'utf8'))?.[1] ?? 0) * 1024;
    const isUsable = mount?.split(' ')[3].split(',').includes('noexec') === false;
    return isUsable && bavail * bsize >= 6 * GIB && available >= 10 * GIB;
  } catch {
    return false;
  }
}

/** Runs vitest with these arguments and reads its report: by file, what passed, failed and was skipped. */
async function vitest(args) {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-report-'));
  const report = join(folder, 'report.json');
  const reporters = ['--reporter=default', '--reporter=json', `--outputFile.json=${report}`];
  const child = spawn(process.execPath, [join(root, 'node_modules/vitest/vitest.mjs'), 'run', ...reporters, ...args], {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}`, TMPDIR: temporary },
  });
  const stop = (signal) => child.kill(signal);
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, stop);
  const code = await new Promise((resolve) => child.on('close', (exit) => resolve(exit ?? 1)));
  for (const signal of ['SIGINT', 'SIGTERM']) process.off(signal, stop);
  const files = filesOf(report);
  rmSync(folder, { recursive: true, force: true });
  return { code, files };
}

function filesOf(report) {
  try {
    const { testResults } = JSON.parse(readFileSync(report, 'utf8'));
    return new Map(testResults.map(({ name, status, assertionResults }) => [name, resultOf(status, assertionResults)]));
  } catch {
    return null;
  }
}

function resultOf(status, tests) {
  const having = (...states) => tests.filter((one) => states.includes(one.status));
  const failed = having('failed').map(({ fullName }) => fullName);
  // a file that does not even load has no failed tests, but is a failure all the same
  if (status === 'failed' && failed.length === 0) failed.push('(the file itself)');
  return { passed: having('passed').length, skipped: having('pending', 'skipped', 'todo').length, failed };
}

/**
 * Few failing files are run once more, each by itself. What passes then depended on the machine's load, not on the code: it counts as passed
 * and is named, so that somebody makes it wait for an event. What fails again is wrong.
 */
async function runAgain(files) {
  const again = [...files].filter(([, { failed }]) => failed.length > 0).map(([name]) => name);
  if (again.length === 0 || again.length > MOST_AGAIN) return [];
  const paths = again.map((name) => relative(root, name));
  console.log(`running again, one after the other: ${paths.join(', ')}`);
  const second = await vitest([...paths, '--maxWorkers=1']);
  return again.flatMap((name) => {
    const now = second.files?.get(name);
    if (now === undefined) return [];
    const passedNow = files.get(name).failed.filter((test) => !now.failed.includes(test));
    files.set(name, now);
    return passedNow.map((test) => `${relative(root, name)}: ${test}`);
  });
}
const temporary = await temporaryFolder();
const started = performance.now();
const args = process.argv.slice(2);
const wanted = args.length === 0 ? PEERS : [];
if (wanted.length > 0) console.log(`peers: fetching ${wanted.join(', ')} …`);
const peers = await Promise.all(wanted.map(fetchPeer));
for (const { name, path, reason } of peers)
  console.log(`peers: ${name} ${path === null ? `is not to be had: ${reason}` : `${path} (${reason})`}`);

const { code, files } = await vitest(args);
const unstable = files === null ? [] : await runAgain(files);
const results = [...(files?.values() ?? [])];
const passed = results.reduce((sum, one) => sum + one.passed, 0);
const skipped = results.reduce((sum, one) => sum + one.skipped, 0);
const failed = results.reduce((sum, one) => sum + one.failed.length, 0);
// vitest also ends with an error where no test failed: a rejection that nobody caught
const failures = files === null || (code !== 0 && unstable.length === 0) ? Math.max(failed, 1) : failed;

await removeWhole(temporary);
console.log(`took ${Math.round((performance.now() - started) / 1000)} s`);
for (const { name, path, reason } of peers) {
  if (path !== null) console.log(`real peer used: ${name} (${path})`);
  else
    console.log(`real peer ${debian ? 'MISSING' : 'skipped'}: ${name}: ${reason}${debian ? '' : ' (its suite runs on Debian)'}`);
}
for (const test of unstable) console.log(`UNSTABLE, failed beside the others and passed by itself: ${test}`);
if (skipped > 0) console.log(`${skipped} skipped`);
console.log(`${passed} passed, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
