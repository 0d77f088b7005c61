// The settings file: its forms, which source takes precedence, and what only the signer gets to know of it.

import { execFile } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { readSettingsFile } from '../../src/main/config/dotenv-file.ts';
import { describeSettings, readConfig, readConfigOfAll, readSignerSecrets } from '../../src/main/config/read-config.ts';

const ROOT = resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(join(tmpdir(), 'bursar-env-'));
const file = join(folder, '.env');
let environment: Record<string, string>;
beforeEach(() => {
  environment = { BURSAR_ENV_FILE: file };
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const write = (text: string | Buffer): void => writeFileSync(file, text);
const values = (text: string | Buffer): Record<string, string> => {
  write(text);
  const { settings, problems } = readSettingsFile(file, () => true)!;
  expect(problems).toEqual([]);
  return Object.fromEntries([...settings].map(([name, { value }]) => [name, value]));
};
const problems = (text: string | Buffer, read: (from: typeof environment) => unknown = readConfig): string[] => {
  write(text);
  try {
    read(environment);
  } catch (error) {
    return (error as Error).message.split('\n');
  }
  return [];
};

test.each<[string, string]>([
  ['A=b', 'b'],
  ['A=', ''],
  ['  export A = b c \r\n', 'b c'],
  ['# a comment\n\n\t# another\nA=b # and a third', 'b'],
  ['A=b#c', 'b#c'],
  ['A=#c', '#c'],
  ['A= # nothing', ''],
  [`A='b "c" # d\\n' # e`, 'b "c" # d\\n'],
  ['A="b\\n\\"c\\" \\\\ \\d $E"', 'b\n"c" \\ \\d $E'],
  ['A="b\nc=d\n" \nE=f', 'b\nc=d\n'],
  [`A=it's`, `it's`],
  ['A=b=c==', 'b=c=='],
  ['A=grün', 'grün'],
  ['\uFEFFA=b', 'b'],
  ['A=b\nA=c', 'c'],
])('%j is read', (text, value) => {
  expect(values(text).A).toBe(value);
});

test('a line of another form is named by file and line, and never shown', () => {
  expect(problems("PORT=1\n\nBURSAR_SIGNER_PASSPHRASE hunter2\n: x\nexport\n1A=b\nHOST=\"open\nBURSAR_FEE_BPS='1'2\n")).toEqual([
    `${file}, line 3: accepted is NAME=value, a comment that begins with #, or an empty line`,
    `${file}, line 4: accepted is NAME=value, a comment that begins with #, or an empty line`,
    `${file}, line 5: accepted is NAME=value, a comment that begins with #, or an empty line`,
    `${file}, line 6: accepted is NAME=value, a comment that begins with #, or an empty line`,
    `${file}, line 7: the quotation mark is not closed`,
    `${file}, line 8: only a comment may follow the closing quotation mark`,
  ]);
  expect(problems(Buffer.from([0x48, 0x4f, 0x53, 0x54, 0x3d, 0xff]))).toEqual([
    `${file}, line 1: the value of HOST is not text in UTF-8`,
  ]);
});

test('everything wrong with the file, its settings and the environment is reported at once, with the line', () => {
  environment.BURSAR_FEE_BPS = 'many';
  expect(problems('PORT=70000\nnonsense\nBURSAR_NETWROK=mainnet\nBURSAR_NETWORK=main\nOTHER=1\nBURSAR_ENV_FILE=x')).toEqual([
    `${file}, line 2: accepted is NAME=value, a comment that begins with #, or an empty line`,
    `BURSAR_ENV_FILE can be set in the environment only (${file}, line 6)`,
    `BURSAR_NETWROK is not a variable of Bursar; the nearest known one is BURSAR_NETWORK (${file}, line 3)`,
    `PORT: "70000" is not accepted; accepted is a whole number from 0 to 65535 (${file}, line 1)`,
    `BURSAR_NETWORK: "main" is not accepted; accepted is one of sandbox, regtest, testnet, mainnet (${file}, line 4)`,
    'BURSAR_FEE_BPS: "many" is not accepted; accepted is a whole number from 0 to 10000',
  ]);
});

test('the environment wins, also over the file that holds a secret; an empty variable counts as not set in both', () => {
  write('PORT=8181\nHOST=\nBURSAR_NETWORK=regtest\nDATABASE_URL_FILE=/nonexistent\nBURSAR_DEMO_PASSWORD=from the file\n');
  const config = readConfig({ ...environment, PORT: '8282', BURSAR_NETWORK: '', DATABASE_URL: 'postgres://u@h/d' });
  expect(config).toMatchObject({
    port: 8282,
    host: '127.0.0.1',
    network: 'regtest',
    databaseUrl: 'postgres://u@h/d',
    demoPassword: 'from the file',
  });
});

test('a relative path begins at the folder of the file, in the environment where one stands', () => {
  write('BURSAR_DATA_DIR=money\nBURSAR_DEMO_PASSWORD_FILE=demo-password\n');
  writeFileSync(join(folder, 'demo-password'), 'from-a-file\n');
  expect(readConfig(environment)).toMatchObject({ dataFolder: join(folder, 'money'), demoPassword: 'from-a-file' });
  expect(readConfig({ ...environment, BURSAR_DATA_DIR: 'here' }).dataFolder).toBe(resolve('here'));
  expect(readConfig({}).dataFolder).toBe(join(ROOT, 'data'));
});

test("the signer's secrets are taken out of the file by who opens the seed only, and by who starts it only looked at", () => {
  write('BURSAR_SIGNER_PASSPHRASE=opens the seed\nPORT=8181\n');
  const read = readSettingsFile(file, (name) => name === 'PORT')!;
  expect([...read.settings.keys()]).toEqual(['PORT']);
  expect([...read.names.keys()]).toEqual(['BURSAR_SIGNER_PASSPHRASE', 'PORT']);
  for (const config of [readConfig(environment), readConfigOfAll(environment)])
    expect(Object.values(config)).not.toContain('opens the seed');
  expect(readSignerSecrets(environment).signerPassphrase).toBe('opens the seed');
  const short = [`BURSAR_SIGNER_PASSPHRASE: what is set is not accepted; accepted is 12 to 128 characters (${file}, line 1)`];
  expect(problems('BURSAR_SIGNER_PASSPHRASE=short', readConfigOfAll)).toEqual(short);
  expect(problems('BURSAR_SIGNER_PASSPHRASE=short', readSignerSecrets)).toEqual(short);
  expect(problems('BURSAR_SIGNER_PASSPHRASE=short')).toEqual([]);
});

test('a file that is named and not there, or cannot be read, ends the start', () => {
  const missing = join(folder, 'missing');
  expect(() => readConfig({ BURSAR_ENV_FILE: missing })).toThrow(`BURSAR_ENV_FILE: ${missing} cannot be read (ENOENT)`);
  expect(() => readConfig({ BURSAR_ENV_FILE: folder })).toThrow(`${folder} cannot be read (EISDIR)`);
  expect(readConfig({ BURSAR_ENV_FILE: '/dev/null' }).network).toBe('sandbox');
});

test('what is set and has no effect is reported', () => {
  write('BURSAR_LND_PAY_MACAROON=abc\nBURSAR_RATE_SOURCES=kraken,coinbase\n');
  const { file: read, isRead, unused } = describeSettings(readConfig(environment), environment);
  expect({ read, isRead }).toEqual({ read: file, isRead: true });
  expect(unused).toEqual([
    'BURSAR_RATE_SOURCES is set and not used: the sandbox has exchanges of its own',
    'BURSAR_LND_PAY_MACAROON is set and not used: the sandbox has a Lightning node of its own',
  ]);
});

test('what nothing reads yet ends the start, wherever it is set', () => {
  const valkey = 'several servers share their rate limits through the database; remove it';
  write('BURSAR_VALKEY_URL=redis://localhost\n');
  expect(() => readConfig(environment)).toThrow(`BURSAR_VALKEY_URL is set, and nothing reads it: ${valkey} (${file}, line 1)`);
  write('BURSAR_VALKEY_URL_FILE=/run/valkey\n');
  expect(() => readConfig(environment)).toThrow(`BURSAR_VALKEY_URL_FILE is set, and nothing reads it: ${valkey}`);
});

test('a file .env beside package.json is read by every command, from wherever it is called', async () => {
  const copy = join(folder, 'copy');
  cpSync(join(ROOT, 'src'), join(copy, 'src'), { recursive: true });
  cpSync(join(ROOT, 'package.json'), join(copy, 'package.json'));
  symlinkSync(join(ROOT, 'node_modules'), join(copy, 'node_modules'));
  writeFileSync(join(copy, '.env'), 'BURSAR_NETWORK=mainnet\nBURSAR_DATA_DIR=./money\nPORT=8181\n');
  const said = await new Promise<string>((done, failed) => {
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, PORT: '8282' };
    execFile(process.execPath, [join(copy, 'src/main/cli.ts'), 'config', 'check', '--json'], { cwd: '/', env }, (error, out) =>
      error === null ? done(out) : failed(error),
    );
  });
  expect(JSON.parse(said)).toMatchObject({
    file: join(copy, '.env'),
    settings: { BURSAR_NETWORK: 'mainnet', BURSAR_DATA_DIR: join(copy, 'money'), PORT: '8282' },
  });
});
