// `npm run check`: types, format and lint, lint that knows types (floating promises, exhaustive switches, cycles), unused code. All at
// once; prints the output of each, then one line each, then how many passed.
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(fileURLToPath(import.meta.url)));
const bin = join(root, 'node_modules', '.bin');
const CHECKS = [
  ['types', 'tsc', ['-p', '.']],
  ['format and lint', 'biome', ['ci', '--colors=off', '--error-on-warnings', '.']],
  ['cycles and promises', 'oxlint', ['--type-aware', '--deny-warnings', 'src', 'test', 'bench', 'bin']],
  ['unused code', 'knip', ['--no-progress']],
];

function run([title, program, args]) {
  const started = performance.now();
  return new Promise((resolve) => {
    // the same Node for all: the tools' first lines name whichever `node` is in the path
    const child = spawn(join(bin, program), args, {
      cwd: root,
      env: { ...process.env, NO_COLOR: '1', FORCE_COLOR: '0', CI: '', PATH: `${bin}:${process.env.PATH}` },
    });
    let output = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output += chunk));
    child.on('error', (error) => resolve({ title, passed: false, output: `${output}${error.message}`, seconds: 0 }));
    child.on('close', (code) => resolve({ title, passed: code === 0, output, seconds: (performance.now() - started) / 1000 }));
  });
}

const results = await Promise.all(CHECKS.map(run));
for (const { title, passed, output } of results) {
  if (!passed) console.log(`\n── ${title}\n${output.trim()}`);
}
console.log('');
for (const { title, passed, seconds } of results)
  console.log(`${passed ? 'ok    ' : 'FAILED'} ${title} (${seconds.toFixed(1)} s)`);
const failed = results.filter(({ passed }) => !passed).length;
console.log(`${results.length - failed} passed, ${failed} failed`);
process.exitCode = failed === 0 ? 0 : 1;
