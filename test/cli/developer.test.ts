// A developer's own loop beside the running sandbox: signing in, listening and forwarding, making events happen, reading and resending them.
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { EVENT_TYPES } from '../../src/core/events.ts';
import { STEPS } from '../../src/main/cli/developer/trigger-steps.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';
import { isSignedBy, type Received, startReceiver } from '../support/webhook-receiver.ts';
import { askCli, type Environment, runCli, SHELL } from './run.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const CLI = fileURLToPath(new URL('../../src/main/cli.ts', import.meta.url));
const place = dataFolderFor();
const home = dataFolderFor();
let service: Service;
let here: Environment;
const listening: ChildProcess[] = [];
const start = () =>
  startService({
    dataFolder: place.folder,
    environment: {
      BURSAR_SANDBOX_BLOCK_SECONDS: '0',
      ...(service === undefined ? {} : { PORT: new URL(here.URL as string).port }),
    },
  });
beforeAll(async () => {
  service = start();
  const url = await service.ready;
  here = { BURSAR_DATA_DIR: place.folder, XDG_CONFIG_HOME: home.folder, URL: url };
});
afterAll(async () => {
  // those of tests that failed
  for (const child of listening) child.kill('SIGKILL');
  await service.stop();
  place.remove();
  home.remove();
});

type Triggered = { data: { event: string; event_id: string; object: string; clock_moved_seconds: number }[] };
const trigger = async (...events: string[]) => (await askCli<Triggered>(['trigger', ...events], here)).data;
const refused = async (...args: string[]) => {
  const { code, err } = await runCli([...args, '--json'], here);
  return { code, ...(JSON.parse(err) as { error: string; message: string }) };
};
const profile = (name = 'default') => join(home.folder, 'bursar', `${name}.json`);

type Line = {
  readonly listening?: { readonly url: string; readonly secret: string; readonly forward_to: string | null };
  // biome-ignore lint/suspicious/noExplicitAny: an event, for the test to look at
  readonly event?: any;
  readonly forwarded?: { readonly ok: boolean; readonly status: number | null; readonly error: string | null } | null;
};

/** `bursar listen --json`, until the test ends it. */
async function listen(...args: string[]) {
  const env = { ...SHELL, ...here };
  const child: ChildProcess = spawn(process.execPath, [CLI, 'listen', '--json', ...args], {
    env,
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  listening.push(child);
  const lines: Line[] = [];
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve));
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => lines.push(JSON.parse(line)));
  const events = () => lines.flatMap(({ event }) => (event === undefined ? [] : [event]));
  await eventually('it listens', () => (lines[0]?.listening === undefined ? null : true));
  return {
    secret: lines[0]?.listening?.secret as string,
    lines,
    events,
    said: () => said,
    ended,
    has: (id: string) =>
      eventually(id, () => (events().some((event) => event.id === id) ? true : null), 60_000).catch((error) => {
        throw new Error(`${error.message}; it said: ${said}`);
      }),
    async end(signal: NodeJS.Signals = 'SIGTERM') {
      child.kill(signal);
      await ended;
    },
  };
}
/** Its place is known from here on: what happens now is told, whether it runs or not. */
const hasBegun = (files: number) =>
  eventually('its place is kept', () =>
    readdirSync(join(home.folder, 'bursar')).filter((name) => name.includes('.listen-')).length >= files ? true : null,
  );

describe('signing in', () => {
  test('is asked for first, refused with a wrong password, and kept in a file that only its user reads', async () => {
    expect(await refused('events', 'list')).toMatchObject({
      code: 1,
      error: 'not_signed_in',
      message: expect.stringContaining('bursar login'),
    });
    expect(await refused('login', '--password', 'wrong')).toMatchObject({ code: 1, error: 'invalid_credentials' });
    expect(existsSync(profile())).toBe(false);
    expect(await refused('login', '--url', 'ftp://x')).toMatchObject({ code: 2 });
    expect(await refused('login', '--profile', '../x')).toMatchObject({ code: 2 });
    expect(await refused('login', '--url', 'http://127.0.0.1:9')).toMatchObject({ code: 1, error: 'unreachable' });
    const made = await askCli<{ url: string; username: string; profile: string }>(['login'], here);
    expect(made).toMatchObject({ url: here.URL, username: 'demo', profile: profile() });
    expect(statSync(profile()).mode & 0o777).toBe(0o600);
    expect(statSync(join(home.folder, 'bursar')).mode & 0o777).toBe(0o700);
    expect(readFileSync(profile(), 'utf8')).not.toContain('demo-demo-demo');
  });

  test('takes the password from standard input, and each profile is its own', async () => {
    const { code, out } = await runCli(['login', '--profile', 'second', '--username', 'demo2'], here, 'not it\n');
    expect([code, out]).toEqual([1, '']);
    await askCli(['login', '--profile', 'second'], here);
    expect(JSON.parse(readFileSync(profile('second'), 'utf8')).access_token).not.toBe(
      JSON.parse(readFileSync(profile(), 'utf8')).access_token,
    );
  });
});

describe('listening', () => {
  /** Where it notes how far it is. */
  const places = (): string[] => {
    const folder = join(home.folder, 'bursar');
    return readdirSync(folder).flatMap((name) => (name.includes('.listen-') ? [join(folder, name)] : []));
  };

  test('forwards each event signed with a secret that stays, and goes on where it was, also after kill -9', async () => {
    const receiver = await startReceiver();
    const to = ['--forward-to', receiver.url.replace('http://', '')];
    const first = await listen(...to);
    await hasBegun(1);
    const [one] = await trigger('transaction.cancelled');
    await first.has(one?.event_id as string);
    // what is printed, and not noted yet, is printed again after a kill
    const isNoted = () => places().some((path) => readFileSync(path, 'utf8').includes(one?.event_id as string));
    await eventually('how far it is is noted', () => (isNoted() ? true : null));
    await first.end('SIGKILL');
    const [off] = await trigger('transaction.cancelled');
    const second = await listen(...to);
    await second.has(off?.event_id as string);
    expect(second.secret).toBe(first.secret);
    expect(second.events().map(({ type, data }) => [type, data.object.transaction_id])).toEqual([
      ['transaction.started', off?.object],
      ['transaction.cancelled', off?.object],
    ]);
    expect(second.lines.slice(1).every(({ forwarded }) => forwarded?.ok === true && forwarded.status === 204)).toBe(true);
    const got = await receiver.until((received) => received.length >= 4);
    for (const each of got) expect(isSignedBy(each as Received, first.secret)).toBe(true);
    // the very bytes that a webhook would bring
    const [listed] = (await askCli<{ data: object[] }>(['events', 'list', '--limit', '1'], here)).data;
    expect(JSON.parse(got.at(-1)?.text as string)).toEqual(listed);
    receiver.answerWith((_got, response) => response.writeHead(500).end());
    const [bad] = await trigger('transaction.started');
    await second.has(bad?.event_id as string);
    expect(second.lines.at(-1)?.forwarded).toMatchObject({ ok: false, status: 500 });
    receiver.close();
    await eventually('nobody is there', () => (second.lines.at(-1)?.forwarded?.status === null ? true : null), 60_000);
    expect(second.lines.at(-1)?.forwarded).toMatchObject({ ok: false, status: null, error: expect.stringMatching(/./) });
    expect(second.lines.at(-1)?.event.id).toBe(bad?.event_id);
    await second.end();
  });

  test('takes a lost connection up: a server that is started again, a token that has expired, and a database that is another', async () => {
    const listener = await listen('--events', 'transaction.cancelled,transaction.timedout');
    await hasBegun(2);
    await service.stop();
    service = start();
    await service.ready;
    const [after] = await trigger('transaction.cancelled');
    await listener.has(after?.event_id as string);
    const [late] = await trigger('transaction.timedout');
    await listener.has(late?.event_id as string);
    // the clock has moved: what other tests started has timed out too
    const both = [after?.event_id, late?.event_id];
    expect(listener.events().flatMap(({ id }) => (both.includes(id) ? [id] : []))).toEqual(both);
    await listener.end();
    const unknown = '{"cursor":"evt_t0352N6Rx3HkOeQLXt3hxlO4"}';
    for (const path of places()) writeFileSync(path, unknown);
    const anew = await listen('--events', 'transaction.cancelled,transaction.timedout', '--count', '1');
    await eventually('it says so', () => (anew.said().includes('it begins now') ? true : null));
    await eventually('it has begun', () => (places().some((path) => readFileSync(path, 'utf8') !== unknown) ? true : null));
    const [last] = await trigger('transaction.cancelled');
    await anew.has(last?.event_id as string);
    expect(await anew.ended).toBe(0);
  });

  test('refuses what it cannot do, in words', async () => {
    const cases: [string[], object][] = [
      [['listen', '--events', 'transaction.paid'], { code: 2, message: expect.stringContaining('transaction.succeeded') }],
      [['listen', '--forward-to', 'http://a b'], { code: 2, message: expect.stringContaining('host:port') }],
      [['listen', '--forward-to', 'ftp://127.0.0.1:9'], { code: 2, message: expect.stringContaining('host:port') }],
      [['listen', '--object', 'txn_1'], { code: 2, message: expect.stringContaining('txn_…') }],
      [['events', 'list', '--object', 'txn_1'], { code: 2, message: expect.stringContaining('txn_…') }],
      [['events', 'list', '--limit', '101'], { code: 2, message: expect.stringContaining('1 to 100') }],
      [['trigger', 'transaction.paid'], { code: 2, message: expect.stringContaining('payout.completed') }],
      [['events', 'show', 'txn_1'], { code: 2 }],
      [['events', 'resend', 'evt_t0352N6Rx3HkOeQLXt3hxlO4'], { code: 1, error: 'not_found' }],
    ];
    for (const [command, answer] of cases) expect(await refused(...command)).toMatchObject(answer);
  });
});

describe('events', () => {
  test('are listed, shown, and delivered to the webhooks again', async () => {
    const receiver = await startReceiver();
    const [made] = await trigger('transaction.started');
    const { data } = await askCli<{ data: { id: string }[] }>(['events', 'list', '--object', made?.object as string], here);
    expect(data.map(({ id }) => id)).toEqual([made?.event_id]);
    expect(await askCli(['events', 'show', made?.event_id as string], here)).toEqual(data[0]);
    expect(await askCli(['events', 'resend', made?.event_id as string], here)).toEqual({ event_id: made?.event_id, webhooks: 0 });
    const { access_token } = JSON.parse(readFileSync(profile(), 'utf8'));
    await fetch(`${here.URL}/create_webhook`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ access_token, url: receiver.url }),
    });
    expect(await askCli(['events', 'resend', made?.event_id as string], here)).toMatchObject({ webhooks: 1 });
    const [again] = await receiver.until((received) => received.length > 0);
    expect(again?.body).toEqual(data[0]);
    const { out } = await runCli(['events', 'list', '--limit', '1'], here);
    expect(out).toMatch(
      /^at +type +object +event\n\S+Z {2}transaction\.started {2}txn_\w+ {2}evt_\w+\nmore: --starting-after evt_\w+\n$/,
    );
    receiver.close();
  });

  test('are made to happen for real, by customers, blocks, the clock and the bank', async () => {
    expect(Object.keys(STEPS).sort()).toEqual([...EVENT_TYPES].sort());
    // those with steps of their own; the other payouts take as long again
    const wanted = [
      ...[
        'succeeded',
        'review',
        'extra_payment',
        'other_asset',
        'reorged',
        'reimbursed',
        'declined',
        'timedout_checked',
        'settled',
      ].map((what) => `transaction.${what}`),
      'payout.failed',
    ];
    const made = await trigger(...wanted);
    expect(made.map(({ event }) => event)).toEqual(wanted);
    const last = made.at(-1);
    const shown = await askCli<{ type: string; data: { object: { id: string } } }>(
      ['events', 'show', last?.event_id as string],
      here,
    );
    expect([shown.type, shown.data.object.id]).toEqual(['payout.failed', last?.object]);
  });
});
