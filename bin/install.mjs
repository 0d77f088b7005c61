// Installs the dependencies when they are missing or not those of package-lock.json, and finds the Node that runs everything. Called by
// bin/launch.mjs before anything else; plain JavaScript for Node 18.
import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const OLDEST = [24, 12];

/** Sees to the dependencies of the checkout; returns the path of a Node that is new enough. Throws an Error with one clear line. */
export async function install(root, say) {
  const lockfile = readFileSync(join(root, 'package-lock.json'));
  const marker = join(root, 'node_modules', '.bursar-installed');
  const hash = createHash('sha256').update(lockfile).digest('hex');
  if (read(marker) !== hash || missing(root).length > 0) {
    if (!holds(root, JSON.parse(lockfile))) await npmInstall(root, say);
    tryWrite(marker, hash);
  }
  return findNode(root);
}

// Someone may have installed by hand: npm notes inside node_modules what it put there.
function holds(root, wanted) {
  const note = read(join(root, 'node_modules', '.package-lock.json'));
  if (note === null) return false;
  if (missing(root).length > 0) return false;
  const there = JSON.parse(note).packages ?? {};
  return Object.entries(wanted.packages).every(
    ([path, entry]) =>
      path === '' || (there[path] === undefined ? entry.optional === true : there[path].version === entry.version),
  );
}

// Packages that npm has put there and somebody has taken away since; a look at each costs some milliseconds at every start.
function missing(root) {
  const note = read(join(root, 'node_modules', '.package-lock.json'));
  const paths = note === null ? [] : Object.keys(JSON.parse(note).packages ?? {});
  return paths.filter((path) => !existsSync(join(root, path, 'package.json')));
}

// Not `npm ci`: it refuses a lockfile without the binaries of platforms that the registry at hand does not carry. What the lockfile names
// is installed exactly as it says, integrity checked; the lockfile itself is left alone.
async function npmInstall(root, say) {
  const started = Date.now();
  const why = existsSync(join(root, 'node_modules'))
    ? 'node_modules is not that of package-lock.json'
    : 'node_modules is missing';
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
    '--include=dev',
    '--include=optional',
  ];
  const code = await new Promise((resolve, reject) => {
    const child = spawn(program, args, { cwd: root, stdio: ['ignore', 2, 2], env: environmentForNpm() });
    for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => child.kill(signal));
    child.on('error', (error) => reject(new Error(`install: npm does not run: ${error.message}`)));
    child.on('exit', resolve);
  });
  for (const signal of ['SIGINT', 'SIGTERM']) process.removeAllListeners(signal);
  if (code !== 0) throw new Error(`install: npm install failed (exit ${code}); its own words stand above`);
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

function read(file) {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return null;
  }
}

// A checkout that belongs to another user is used as it is.
function tryWrite(file, text) {
  try {
    writeFileSync(file, text);
  } catch {}
}
