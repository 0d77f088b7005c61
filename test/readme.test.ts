// The README shows what is true: each of its commands is run as it stands (on a free port and a folder of its own), in its order, and what
// it says of the demo is what the demo prints.
import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { freePort } from './support/core-daemon.ts';
import { dataFolderFor, type Service, startService } from './support/service.ts';

const ROOT = resolve(import.meta.dirname, '..');
const README = readFileSync(join(ROOT, 'README.md'), 'utf8');
const BLOCKS = [...README.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map((match) => ({
  language: match[1] ?? '',
  text: (match[2] ?? '').trim(),
}));
const COMMANDS = BLOCKS.filter((block) => block.language === 'sh').map((block) => block.text);
const TIMEOUT = 120_000;
/** Run by whoever runs this test: they must exist, and are not run inside themselves. */
const ELSEWHERE = ['npm start', 'npm test'];

type Ran = { readonly code: number; readonly out: string };

describe('README', { timeout: TIMEOUT }, () => {
  const { folder, remove } = dataFolderFor();
  let service: Service;
  let base = '';
  let receiverPort = 0;

  beforeAll(async () => {
    service = startService({ dataFolder: folder });
    base = await service.ready;
    receiverPort = await freePort();
  }, TIMEOUT);
  afterAll(async () => {
    await service.stop();
    remove();
  }, TIMEOUT);

  function run(command: string): Promise<Ran> {
    const here = command.replaceAll('http://127.0.0.1:8080', base).replaceAll('3000', String(receiverPort));
    const env = {
      ...process.env,
      XDG_CONFIG_HOME: join(folder, 'home'),
      BURSAR_DATA_DIR: folder,
      PORT: new URL(base).port,
      npm_config_loglevel: 'error',
    };
    return new Promise((resolveRun) => {
      execFile('sh', ['-c', here], { cwd: ROOT, env, timeout: TIMEOUT }, (error, out) => {
        resolveRun({ code: error === null ? 0 : Number(error.code ?? -1), out });
      });
    });
  }

  test('names the commands that start and test it, and they exist', () => {
    const scripts = (JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as { scripts: Record<string, string> }).scripts;
    expect(COMMANDS).toEqual(expect.arrayContaining(ELSEWHERE));
    for (const name of ['start', 'test', 'check', 'bench', 'bursar']) expect(scripts[name], name).toBeTypeOf('string');
    for (const [, name] of README.matchAll(/`npm run (\w+)/g)) expect(scripts[name as string], name).toBeTypeOf('string');
  });

  test('its blocks work as they stand, pasted one after the other into one shell', async () => {
    const blocks = COMMANDS.filter((one) => !ELSEWHERE.includes(one));
    const mark = '-- block';
    const { code, out } = await run(blocks.map((block, n) => `${block}\necho; echo "${mark} ${n} $?"`).join('\n'));
    expect(code, out).toBe(0);
    const said = out.split(/^-- block \d+ /m);
    expect(said.slice(1).map((text) => text.split('\n')[0])).toEqual(blocks.map(() => '0'));
    const of = (part: string): string =>
      said[blocks.findIndex((block) => block.includes(part))]?.replace(/^\d+\n/, '').trim() ?? '';
    expect(of('/auth ')).toMatch(/^[\w-]+\.[\w-]+\.[\w-]+$/);
    expect(of('/create_transaction')).toMatch(/^txn_\w+$/);
    expect(JSON.parse(of('/sandbox/pay'))).toEqual({ txid: expect.stringMatching(/^[0-9a-f]{64}$/) });
    expect(JSON.parse(of('/check_transaction'))).toMatchObject({
      transaction_id: expect.stringMatching(/^txn_/),
      usd_amount: '25.00',
    });
    expect(of('--silent bursar -- demo')).toMatch(/^transaction\.succeeded txn_\w+ is succeeded$/m);
    expect(of('-- login')).toMatch(/^Signed in at http:\S+ as demo /);
    const [, triggered] = /^(?:transaction\.succeeded) {2}txn_\w+ {2}(evt_\w+)$/m.exec(of('-- trigger')) ?? [];
    // what was listened to stands wherever it came out
    expect(out).toMatch(new RegExp(`Z {2}transaction\\.succeeded {2}txn_\\w+ {2}${triggered}`));
    // paid, and seen while it waited
    expect(JSON.parse(of('/check_transaction')).status).toMatch(/^(pending|confirmed|succeeded)$/);
  });

  test('the demo prints what it shows', async () => {
    const shown = BLOCKS.find((block) => block.text.includes('The payment succeeded.'))?.text ?? '';
    const { out } = await run('npm run --silent bursar -- demo');
    const form = (text: string) =>
      text
        .trim()
        .split('\n')
        .map((line) =>
          line
            .replace(/txn_\w+/, 'txn_…')
            .replace(/bcrt1\w+/, 'bcrt1…')
            .replace(/\b[0-9a-f]{64}\b/, '(txid)')
            .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/, '(time)')
            .replace(/^balance [\d.]+/, 'balance (amount)')
            .replace(/, \d+ confirmations$/, ', n confirmations'),
        );
    expect(form(out)).toEqual(form(shown));
  });

  test('names files that exist', () => {
    const named = [...README.matchAll(/`((?:test|bench|src|db)\/[\w/.-]+|[A-Z]+\.md|\.env\.example)`/g)].map(
      (match) => match[1] as string,
    );
    expect(named.length).toBeGreaterThan(5);
    for (const path of named) expect(() => readFileSync(join(ROOT, path)), path).not.toThrow(/ENOENT/);
  });
});
