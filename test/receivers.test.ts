// The receivers of docs/receivers, each run in its language: they take what is signed, refuse what is not, and apply an event once, whatever
// the order.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { createOutbound } from '../src/outside/outbound/outbound.ts';
import { ANYWHERE } from '../src/outside/outbound/policy.ts';
import { createWebhookSender } from '../src/outside/webhooks/sender.ts';
import { freePort } from './support/core-daemon.ts';
import { documentTool } from './support/document-tools.ts';
import { eventually } from './support/service.ts';

const FOLDER = join(import.meta.dirname, '../docs/receivers');
const outbound = createOutbound(ANYWHERE);
const closing: (() => unknown)[] = [];
afterAll(async () => {
  for (const close of closing) close();
  await outbound.close();
});

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0;
const libraries = await documentTool('webhook-libraries');
const php = await documentTool('php');
const secretOf = (): string => `whsec_${randomBytes(32).toString('base64')}`;

type Command = (port: string, secret: string) => readonly string[];
describe.each<[string, Command, boolean]>([
  ['Node', (...given) => [process.execPath, join(FOLDER, 'receiver.mjs'), ...given], true],
  ['Python', (...given) => ['python3', join(FOLDER, 'receiver.py'), ...given], has('python3')],
  ['Go', (...given) => [join(libraries.path ?? '', 'receiver-go'), ...given], libraries.path !== null],
  ['PHP', (port) => [php.path ?? '', '-S', `127.0.0.1:${port}`, join(FOLDER, 'receiver.php')], php.path !== null],
])('the receiver in %s', (_language, command, isThere) => {
  test.skipIf(!isThere)('applies what is genuine and new, and nothing else', { timeout: 60_000 }, async () => {
    const [secret, port] = [secretOf(), await freePort()];
    const [program = '', ...args] = command(String(port), secret);
    // what the one in PHP keeps between two requests lies there
    const folder = mkdtempSync(join(tmpdir(), 'bursar-receiver-'));
    const child = spawn(program, args, { stdio: 'pipe', env: { ...process.env, SECRET: secret, TMPDIR: folder } });
    closing.push(() => {
      child.kill('SIGKILL');
      rmSync(folder, { recursive: true });
    });
    let [printed, said] = ['', ''];
    child.stdout.setEncoding('utf8').on('data', (text) => (printed += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (said += text));
    const event = (sequence: number, status: string) =>
      JSON.stringify({
        id: 'evt_t',
        type: `transaction.${status}`,
        sequence,
        data: { object: { transaction_id: 'txn_1', status } },
      });
    const deliver = async (body: string, more: { secrets?: string[]; atMs?: number } = {}) => {
      const { secrets = [secret], atMs = Date.now() } = more;
      const request = {
        webhook: 'wh_1',
        merchantId: 1n,
        url: `http://127.0.0.1:${port}/`,
        id: 'evt_t',
        body,
        secrets,
        signal: new AbortController().signal,
      };
      const result = await createWebhookSender(outbound, () => atMs)(request);
      return result.kind === 'answered' ? result.status : null;
    };
    await eventually('it answers', async () => (await deliver(event(2, 'pending'))) === 204, 30_000);
    const all: [number, Promise<number | null>][] = [
      [400, deliver(event(9, 'settled'), { secrets: [secretOf()] })],
      [400, deliver(event(9, 'settled'), { atMs: Date.now() - 600_000 })],
      // during a rotation two sign
      [204, deliver(event(4, 'succeeded'), { secrets: [secretOf(), secret] })],
    ];
    for (const [status, answer] of all) expect(await answer).toBe(status);
    // what is no time, of whoever knows no secret: digits of another script, and more than Python makes a number of
    for (const time of ['', 'now', '²', '9'.repeat(5_000)]) {
      const headers = { 'webhook-id': 'evt_t', 'webhook-timestamp': time, 'webhook-signature': 'v1,AAAA' };
      const answer = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body: event(9, 'settled'), headers });
      expect([time, answer.status]).toEqual([time, 400]);
    }
    for (const late of [event(3, 'confirmed'), event(4, 'succeeded')]) expect(await deliver(late), said).toBe(204);
    const wanted = 'transaction.pending txn_1 is pending\ntransaction.succeeded txn_1 is succeeded\n';
    await eventually('it has printed both', () => printed.length >= wanted.length);
    expect(printed, said).toBe(wanted);
  });
});
