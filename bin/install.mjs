// Installs the dependencies when they are missing or not those of package-lock.json, and finds the Node that runs everything. bin/launch.sh
// runs it before anything else, with the set to install; plain JavaScript for Node 18.
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const OLDEST = [24, 12];
const NOTE = 'node_modules/.package-lock.json';
/** Exists while we install: a file with the pids of the processes that do. */
const UNDER_WAY = 'node_modules/.bursar-installing';
const LOOK_EVERY_MS = 200;
const LONGEST_INSTALLATION_MS = 900_000;

/**
 * Ensures that the dependencies of the checkout are there; returns the path of a Node that is new enough. Throws an Error with one clear
 * line.
 * @param set `service`: what the service needs to run; `all`: also what the tests, checks and measurements need. `all` suffices for the
 * service too, and is kept: neither removes what was installed for the other.
 */
export async function install(root, say, set) {
  const wanted = read(join(root, 'package-lock.json')).packages;
  await untilNobodyInstalls(root, say);
  const trouble = whatIsWrong(root, wanted, set);
  if (trouble !== null) {
    const isThere = ([path, { dev }]) => dev === true && existsSync(join(root, path));
    const keepsAll = set === 'all' || Object.entries(wanted).some(isThere);
    await npmInstall(root, say, keepsAll ? 'all' : 'service', trouble);
  }
  return findNode(root);
}

function whatIsWrong(root, wanted, set) {
  // npm's own record of what it installed, written at the end; it may list more than there is (npm install --package-lock-only)
  const noted = read(join(root, NOTE))?.packages;
  if (existsSync(join(root, UNDER_WAY))) return 'the last installation was broken off';
  if (noted === undefined) return 'node_modules is missing';
  for (const [path, { version, dev, optional, devOptional }] of Object.entries(wanted)) {
    if (path === '' || (dev === true && set !== 'all')) continue;
    // an optional package that is missing does not exist for this platform
    if (noted[path] === undefined && (optional === true || devOptional === true)) continue;
    const there = noted[path] === undefined ? undefined : read(join(root, path, 'package.json'))?.version;
    if (there === undefined) return dev === true ? 'those of the tests are missing' : `${path} is missing`;
    if (there !== version || noted[path].version !== version) return `${path} is not that of package-lock.json`;
  }
  return null;
}

// When two start at once in a fresh checkout, the second waits for the first.
async function untilNobodyInstalls(root, say) {
  const mark = join(root, UNDER_WAY);
  for (let told = false; (read(mark) ?? []).some(isAlive); told = true) {
    if (!told) say('install: another process installs the dependencies; waiting for it …');
    // its pid may belong to another process by now
    if (Date.now() - statSync(mark, { throwIfNoEntry: false })?.mtimeMs > LONGEST_INSTALLATION_MS) return;
    await new Promise((resolve) => setTimeout(resolve, LOOK_EVERY_MS));
  }
}

function isAlive(pid) {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    return error.code === 'EPERM';
  }
}

// Not `npm ci`: it refuses a lockfile without the binaries of platforms that the registry in use does not have. What the lockfile names is
// installed exactly, with its integrity checked; the lockfile itself is not changed.
async function npmInstall(root, say, set, why) {
  const started = Date.now();
  say(`install: dependencies (${why}) …`);
  const npm = process.env.npm_execpath;
  const [program, first] = npm !== undefined && /npm-cli\.c?js$/.test(npm) ? [process.execPath, [npm]] : ['npm', []];
  const args = [
    ...first,
    'install',
    '--no-save',
    '--prefer-offline',
    '--no-audit',
    '--no-fund',
    '--loglevel=error',
    set === 'all' ? '--include=dev' : '--omit=dev',
    '--include=optional',
  ];
  const mark = join(root, UNDER_WAY);
  // npm takes a package that was only half unpacked for a complete one
  if (existsSync(mark)) rmSync(join(root, 'node_modules'), { recursive: true, force: true });
  mkdirSync(join(root, 'node_modules'), { recursive: true });
  writeFileSync(mark, JSON.stringify([process.pid]));
  // without its record npm checks what is really there
  rmSync(join(root, NOTE), { force: true });
  const code = await new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 2, 2], env: environmentForNpm() });
    writeFileSync(mark, JSON.stringify([process.pid, child.pid ?? process.pid]));
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => child.kill(signal));
    // the shell in front of us may be gone
    const parent = process.ppid;
    const watch = setInterval(() => (process.ppid === parent ? null : child.kill()), LOOK_EVERY_MS);
    child.on('error', (error) => reject(new Error(`install: npm does not run: ${error.message}`)));
    child.on('exit', (exitCode) => {
      clearInterval(watch);
      resolve(exitCode);
    });
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal);
  if (code !== 0) throw new Error(`install: npm install failed (exit ${code}); its own words stand above`);
  rmSync(mark, { force: true });
  say(`install: done in ${((Date.now() - started) / 1000).toFixed(1)} s`);
}

// npm_config_* of the npm that called us (such as --omit) are not meant for this installation
function environmentForNpm() {
  const environment = { ...process.env };
  for (const name of ['NODE_ENV', 'npm_config_omit', 'npm_config_production', 'npm_config_only']) delete environment[name];
  return environment;
}

function findNode(root) {
  const bundled = join(root, 'node_modules', `node-${process.platform}-${process.arch}`, 'bin', 'node');
  if (existsSync(bundled) && isNew(versionOf(bundled))) return bundled;
  if (isNew(process.versions.node)) return process.execPath;
  throw new Error(
    `Bursar runs on Node ${OLDEST.join('.')} or newer; this is ${process.versions.node}, and there is no packaged Node for ${process.platform}-${process.arch}: install Node 24`,
  );
}

function versionOf(node) {
  const { status, stdout } = spawnSync(node, ['--version'], { encoding: 'utf8' });
  return status === 0 ? stdout.trim().replace(/^v/, '') : '0.0.0';
}

function isNew(version) {
  const [major = 0, minor = 0] = version.split('.').map(Number);
  return major > OLDEST[0] || (major === OLDEST[0] && minor >= OLDEST[1]);
}

/** A JSON file; undefined when it is not there or no JSON. */
function read(file) {
  try {
    return JSON.parse(readFileSync(file, 'utf8'));
  } catch {
    return undefined;
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  try {
    const node = await install(dirname(dirname(process.argv[1])), console.log, process.argv[2]);
    // standard output is for messages
    writeFileSync(3, node);
  } catch (error) {
    console.error(error.message);
    process.exit(1);
  }
}
