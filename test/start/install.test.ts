// What `npm start` and `npm test` install, with the real npm on a small project whose packages are files beside it.
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { eventually } from '../support/service.ts';

type Install = (root: string, say: (line: string) => void, set: 'service' | 'all') => Promise<string>;
const { install } = (await import('../../bin/install.mjs' as string)) as { install: Install };
const TIMEOUT = 120_000;

let root: string;
let said: string[];
const packages = mkdtempSync(join(tmpdir(), 'bursar-packages-'));
beforeAll(() => {
  for (const name of ['needed', 'extra', 'tests']) for (const version of ['1.0.0', '1.1.0']) pack(name, version);
}, TIMEOUT);
afterAll(() => rmSync(packages, { recursive: true }));
beforeEach(() => {
  root = mkdtempSync(join(tmpdir(), 'bursar-install-'));
  said = [];
  project({ needed: '1.0.0', tests: '1.0.0' });
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

const npm = (folder: string, ...args: string[]): string =>
  execFileSync('npm', [...args, '--no-audit', '--no-fund', '--loglevel=error'], { cwd: folder, encoding: 'utf8', stdio: 'pipe' });

function pack(name: string, version: string): void {
  const folder = join(packages, `${name}-${version}`);
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'package.json'), JSON.stringify({ name, version }));
  writeFileSync(join(folder, 'index.js'), '');
  npm(folder, 'pack', '--pack-destination', packages);
}

/** Writes package.json and its lockfile, as a checkout brings them. */
function project(versions: { readonly needed: string; readonly tests: string }): void {
  const from = (name: string, version: string) => ({ [name]: `file:${join(packages, `${name}-${version}.tgz`)}` });
  const dependencies = from('needed', versions.needed);
  const optionalDependencies = from('extra', '1.0.0');
  const devDependencies = from('tests', versions.tests);
  const manifest = { name: 'project', version: '1.0.0', dependencies, optionalDependencies, devDependencies };
  writeFileSync(join(root, 'package.json'), JSON.stringify(manifest));
  npm(root, 'install', '--package-lock-only');
}

const run = async (set: 'service' | 'all'): Promise<string> => {
  said = [];
  await install(root, (line) => said.push(line), set);
  return said.join('\n');
};
const versionOf = (name: string): string | null => {
  const file = join(root, 'node_modules', name, 'package.json');
  return existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version : null;
};
const versions = (): Record<string, string | null> => ({
  needed: versionOf('needed'),
  extra: versionOf('extra'),
  tests: versionOf('tests'),
});

describe('what is installed', { timeout: TIMEOUT }, () => {
  test('for the service it is nothing of the tests; for the tests they are added; then neither installs again', async () => {
    expect(await run('service')).toMatch(/^install: dependencies \(node_modules is missing\) …\ninstall: done in /);
    expect(versions()).toEqual({ needed: '1.0.0', extra: '1.0.0', tests: null });
    expect(await run('service')).toBe('');
    expect(await run('all')).toMatch(/^install: dependencies \(those of the tests are missing\) …/);
    expect(versions()).toEqual({ needed: '1.0.0', extra: '1.0.0', tests: '1.0.0' });
    for (const set of ['service', 'all', 'service'] as const) expect(await run(set)).toBe('');
    expect(versions()).toEqual({ needed: '1.0.0', extra: '1.0.0', tests: '1.0.0' });
  });

  test('what was installed by hand is taken as it is, in either size', async () => {
    npm(root, 'ci', '--omit=dev');
    expect(await run('service')).toBe('');
    npm(root, 'ci');
    expect(await run('service')).toBe('');
    expect(await run('all')).toBe('');
    npm(root, 'prune', '--omit=dev');
    expect(await run('service')).toBe('');
    expect(await run('all')).toContain('those of the tests are missing');
  });

  test('another lockfile is installed by whoever comes first, and the packages of the tests stay where they were', async () => {
    await run('all');
    project({ needed: '1.1.0', tests: '1.1.0' });
    expect(await run('service')).toContain('node_modules/needed is not that of package-lock.json');
    expect(versions()).toEqual({ needed: '1.1.0', extra: '1.0.0', tests: '1.1.0' });
    expect(await run('all')).toBe('');
  });

  test('a new package for the tests alone is no reason to install for the service', async () => {
    await run('service');
    project({ needed: '1.0.0', tests: '1.1.0' });
    expect(await run('service')).toBe('');
    expect(await run('all')).toContain('install: done in');
    expect(versionOf('tests')).toBe('1.1.0');
    expect(await run('all')).toBe('');
  });

  test('what somebody has taken away comes back; what is optional may be missing', async () => {
    await run('service');
    rmSync(join(root, 'node_modules/needed'), { recursive: true });
    expect(await run('service')).toContain('node_modules/needed is missing');
    expect(versionOf('needed')).toBe('1.0.0');
    npm(root, 'ci', '--omit=dev', '--omit=optional');
    expect(await run('service')).toBe('');
    expect(versionOf('extra')).toBeNull();
  });

  test('an installation that was killed is done again from the beginning', async () => {
    const script = `import { install } from ${JSON.stringify(resolve('bin/install.mjs'))};
      await install(${JSON.stringify(root)}, () => undefined, 'service');`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', script], { detached: true, stdio: 'ignore' });
    await eventually('npm is at work', () => existsSync(join(root, 'node_modules/.bursar-installing')));
    process.kill(-(child.pid as number), 'SIGKILL');
    await once(child, 'close');
    // as far as a package was unpacked, npm would believe it
    mkdirSync(join(root, 'node_modules/needed'), { recursive: true });
    writeFileSync(join(root, 'node_modules/needed/package.json'), JSON.stringify({ name: 'needed', version: '1.0.0' }));
    rmSync(join(root, 'node_modules/needed/index.js'), { force: true });
    expect(await run('service')).toContain('the last installation was broken off');
    expect(existsSync(join(root, 'node_modules/needed/index.js'))).toBe(true);
    expect(await run('service')).toBe('');
  });

  test('two at once do not get into each other’s way: the second waits', async () => {
    const first = install(root, () => undefined, 'service');
    await eventually('npm is at work', () => existsSync(join(root, 'node_modules/.bursar-installing')));
    expect(await run('all')).toMatch(/^install: another process installs the dependencies; waiting for it …\ninstall: depend/);
    await first;
    expect(versions()).toEqual({ needed: '1.0.0', extra: '1.0.0', tests: '1.0.0' });
  });

  test('the lockfile is left alone', async () => {
    const file = join(root, 'package-lock.json');
    const before = [readFileSync(file, 'utf8'), statSync(file).mtimeMs];
    await run('service');
    await run('all');
    expect([readFileSync(file, 'utf8'), statSync(file).mtimeMs]).toEqual(before);
  });

  test('the settings of the npm that called do not reach it', async () => {
    process.env.NODE_ENV = 'production';
    process.env.npm_config_omit = 'dev';
    try {
      await run('all');
    } finally {
      process.env.NODE_ENV = 'test';
      delete process.env.npm_config_omit;
    }
    expect(versionOf('tests')).toBe('1.0.0');
  });
});

test('the lockfile has everything that it names with a checksum, and nothing native that the service cannot do without', () => {
  type Entry = { integrity?: string; optional?: boolean; dev?: boolean; hasInstallScript?: boolean };
  const lockfile = readFileSync(resolve(import.meta.dirname, '../../package-lock.json'), 'utf8');
  const packages = Object.entries((JSON.parse(lockfile) as { packages: Record<string, Entry> }).packages).slice(1);
  expect(packages.filter(([, { integrity }]) => integrity === undefined)).toEqual([]);
  const needed = packages.filter(([, { optional, dev }]) => optional !== true && dev !== true);
  expect(needed.filter(([, { hasInstallScript }]) => hasInstallScript === true)).toEqual([]);
});
