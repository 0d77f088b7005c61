// `npm test`: fetches the third-party programs that the tests run against (scripts/peers), runs every test, prints which peers were used
// and ends with `N passed, N failed`. Arguments go to vitest (`npm test -- test/core`).
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, 'node_modules', '.bin');
const PEERS = ['bitcoind', 'litecoind', 'bchd', 'achcheck', 'schemathesis', 'openapi-typescript'];
const debian = existsSync('/etc/debian_version');

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

function vitest(report) {
  const args = [
    join(root, 'node_modules/vitest/vitest.mjs'),
    'run',
    '--reporter=default',
    '--reporter=json',
    `--outputFile.json=${report}`,
    ...process.argv.slice(2),
  ];
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, PATH: `${bin}:${process.env.PATH}` },
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => child.kill(signal));
  return new Promise((resolve) => child.on('close', (code) => resolve(code ?? 1)));
}

function count(report) {
  try {
    const { numPassedTests, numFailedTests, numPendingTests, testResults } = JSON.parse(readFileSync(report, 'utf8'));
    // a file that does not even load has no tests, but is a failure all the same
    const broken = testResults.filter(
      ({ status, assertionResults }) => status === 'failed' && assertionResults.every((one) => one.status !== 'failed'),
    ).length;
    return { passed: numPassedTests, failed: numFailedTests + broken, skipped: numPendingTests };
  } catch {
    return { passed: 0, failed: 1, skipped: 0 };
  }
}

const started = performance.now();
console.log(`peers: fetching ${PEERS.join(', ')} …`);
const peers = await Promise.all(PEERS.map(fetchPeer));
for (const { name, path, reason } of peers)
  console.log(`peers: ${name} ${path === null ? `is not to be had: ${reason}` : `${path} (${reason})`}`);

const folder = mkdtempSync(join(tmpdir(), 'bursar-report-'));
const code = await vitest(join(folder, 'report.json'));
const { passed, failed, skipped } = count(join(folder, 'report.json'));
rmSync(folder, { recursive: true, force: true });

console.log(`took ${Math.round((performance.now() - started) / 1000)} s`);
for (const { name, path, reason } of peers) {
  if (path !== null) console.log(`real peer used: ${name} (${path})`);
  else
    console.log(`real peer ${debian ? 'MISSING' : 'skipped'}: ${name}: ${reason}${debian ? '' : ' (its suite runs on Debian)'}`);
}
if (skipped > 0) console.log(`${skipped} skipped`);
const failures = code === 0 ? failed : Math.max(failed, 1);
console.log(`${passed} passed, ${failures} failed`);
process.exitCode = failures === 0 ? 0 : 1;
