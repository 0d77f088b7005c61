// The first lines of every npm script. Plain JavaScript for the host's Node (18 or newer): installs what is missing, then hands over to
// Node 24 from node_modules and passes signals on. `node bin/launch.mjs start|test|bench|check|simulate|cli [arguments]`
import { spawn } from 'node:child_process';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { install } from './install.mjs';

const STOPS = ['SIGINT', 'SIGTERM', 'SIGHUP'];
const GROUP_ENDS_WITHIN_MS = 6000;
const root = dirname(dirname(fileURLToPath(import.meta.url)));
const PROGRAMS = {
  start: 'src/main/start.ts',
  cli: 'src/main/cli.ts',
  bench: 'bench/run.ts',
  test: 'bin/test.mjs',
  check: 'bin/check.mjs',
  simulate: 'bin/simulate.mjs',
};

/** What needs nothing of the packages for tests, checks and measurements. */
const SERVICE = ['start', 'cli'];

const [command = 'start', ...rest] = process.argv.slice(2);
const program = PROGRAMS[command];
if (program === undefined) {
  console.error(`launch: unknown command ${command}; known are ${Object.keys(PROGRAMS).join(', ')}`);
  process.exit(1);
}

try {
  // what a command prints may be read by a program: only the start talks about the installation on standard output
  const node = await install(
    root,
    command === 'start' ? console.log : console.error,
    SERVICE.includes(command) ? 'service' : 'all',
  );
  run(node, [join(root, program), ...rest, ...(command === 'start' ? ['--launched'] : [])]);
} catch (error) {
  console.error(error.message);
  process.exit(1);
}

function run(node, args) {
  // the channel tells the child when we are gone, however we went; the pipe tells us when the last process of a group is gone
  const child = spawn(node, args, {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc', 'pipe'],
    env: {
      ...process.env,
      PATH: `${join(root, 'node_modules/.bin')}:${process.env.PATH ?? ''}`,
      // every process keeps its compiled code, types stripped: the next start loads in half the time and a sixth of the memory less
      NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE ?? join(root, 'node_modules/.cache/compiled'),
    },
  });
  child.stdio[4].on('error', () => undefined).resume();
  for (const signal of STOPS) process.on(signal, () => child.kill(signal));
  // npm passes SIGTERM on, but cannot when it is killed: then our parent is another one
  const parent = process.ppid;
  const watch = setInterval(() => {
    if (process.env.npm_lifecycle_event !== undefined && process.ppid !== parent) child.kill('SIGTERM');
  }, 500);
  watch.unref();
  child.on('error', (error) => {
    console.error(`${node} does not run: ${error.message}`);
    process.exit(1);
  });
  child.on('exit', (code, signal) => {
    if (signal === null) process.exit(code ?? 1);
    if (!STOPS.includes(signal)) {
      // the others have lost their parent and say so: ours is the last line
      child.on('close', () => wasKilled(signal));
      setTimeout(() => wasKilled(signal), GROUP_ENDS_WITHIN_MS);
      return;
    }
    for (const name of STOPS) process.removeAllListeners(name);
    process.kill(process.pid, signal);
    setTimeout(() => process.exit(1), 1000);
  });
}

function wasKilled(signal) {
  const what = command === 'start' ? 'the process that ran the service' : `the process of ${command}`;
  console.error(`launch: ends because ${what} was killed (${signal})`);
  process.exit(1);
}
