// `bursar listen` loses nothing: what a program does not take is tried again until it does, a foreign answer moves no place, and a database
// that forgot where the listener was is read from before that on.
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { fileURLToPath } from 'node:url';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest';
import { type ApiServer, makeApi, PASSWORD } from '../http/api-server.ts';
import { dataFolderFor, eventually } from '../support/service.ts';
import { type Receiver, startReceiver, take } from '../support/webhook-receiver.ts';
import { askCli, type Environment, SHELL } from './run.ts';

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 });

const CLI = fileURLToPath(new URL('../../src/main/cli.ts', import.meta.url));
let api: ApiServer;
let front: Awaited<ReturnType<typeof openFront>>;
let home: ReturnType<typeof dataFolderFor>;
let here: Environment;
let shop: Receiver;
const listening: ChildProcess[] = [];
beforeAll(async () => {
  api = await makeApi();
  front = await openFront(api.base);
});
afterAll(async () => {
  front.close();
  await api.end();
});
beforeEach(async () => {
  home = dataFolderFor();
  here = { XDG_CONFIG_HOME: home.folder, BURSAR_DATA_DIR: home.folder };
  shop = await startReceiver();
  await askCli(['login', '--url', front.url, '--username', 'shop', '--password', PASSWORD], here);
});
afterEach(() => {
  for (const child of listening.splice(0)) child.kill('SIGKILL');
  shop.close();
  home.remove();
});

/** A proxy before the API, as a merchant's installation has: while the API is exchanged it may say anything. */
async function openFront(base: string) {
  let says: number | null = null;
  let answered = 0;
  const server = createServer((incoming, answer) => {
    if (says !== null) {
      answered += 1;
      answer.writeHead(says, { 'content-type': 'text/html' }).end('<h1>nothing here</h1>');
      return;
    }
    const { method, headers, url } = incoming;
    const onward = request(`${base}${url}`, { method: method ?? 'POST', headers }, (from) => {
      answer.writeHead(from.statusCode ?? 500, from.headers);
      from.on('error', () => answer.destroy()).pipe(answer);
    });
    onward.on('error', () => answer.destroy());
    answer.on('close', () => onward.destroy());
    incoming.pipe(onward);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    /** Ends every connection; from then on it answers this, null = what the API does. */
    say(status: number | null): void {
      says = status;
      answered = 0;
      server.closeAllConnections();
    },
    answered: () => answered,
    close(): void {
      server.closeAllConnections();
      server.close();
    },
  };
}

// biome-ignore lint/suspicious/noExplicitAny: an event, for the test to look at
type Line = { readonly event?: any; readonly forwarded?: { readonly ok: boolean; readonly status: number | null } | null };

/** `bursar listen --json` that has kept its place. */
async function listen(...args: string[]) {
  const listener = await opened(...args);
  await eventually('its place is kept', () => (places().length > 0 ? true : null), 60_000);
  return listener;
}

/** `bursar listen --json` that says that it listens, and what it says. */
async function opened(...args: string[]) {
  const child: ChildProcess = spawn(process.execPath, [CLI, 'listen', '--json', ...args], {
    env: { ...SHELL, ...here },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  listening.push(child);
  const lines: Line[] = [];
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text) => {
    said += text;
  });
  createInterface({ input: child.stdout as NodeJS.ReadableStream }).on('line', (line) => lines.push(JSON.parse(line)));
  const ended = new Promise<void>((resolve) => child.once('close', () => resolve()));
  await eventually('it listens', () => (lines.length > 0 ? true : null), 60_000);
  return {
    said: () => said,
    ended,
    /** As `| head` does after its first line. */
    readNoMore: () => child.stdout?.destroy(),
    /** Of each event that was passed on: its object, and the status of the program's answer. */
    told: () => lines.flatMap(({ event, forwarded }) => (event ? [[event.data.object.transaction_id, forwarded?.status]] : [])),
    async end(signal: NodeJS.Signals): Promise<void> {
      child.kill(signal);
      await ended;
    },
  };
}
const places = (): string[] => {
  const folder = join(home.folder, 'bursar');
  return readdirSync(folder).flatMap((name) => (/\.listen-\w+\.json$/.test(name) ? [join(folder, name)] : []));
};
const started = async (): Promise<string> =>
  (await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' })).json.transaction_id;
const bodies = () => shop.received.map(({ body }) => body.data.object.transaction_id);

test('what the program refuses, or is not there for, is told and tried again, before what came after it, also by the next listener', async () => {
  shop.answerWith((_got, response) => take(response, 500));
  const first = await listen('--forward-to', shop.url);
  const refused = await started();
  const after = await started();
  await shop.until((all) => all.length === 2);
  expect(bodies()).toEqual([refused, refused]);
  expect(first.said()).toMatch(/evt_\w+ was not taken \(500\).*tried again/);
  await first.end('SIGKILL');
  const { port } = new URL(shop.url);
  shop.close();
  const second = await listen('--forward-to', shop.url);
  await eventually('it says so', () => (second.said().includes('was not taken') ? true : null), 60_000);
  expect(second.told()).toEqual([[refused, null]]);
  shop = await startReceiver(undefined, Number(port));
  await shop.until((all) => all.length === 2);
  expect(bodies()).toEqual([refused, after]);
  await eventually('both are told', () => (second.told().length >= 3 ? true : null));
  expect(second.told()).toEqual([
    [refused, null],
    [refused, 204],
    [after, 204],
  ]);
});

test('what happens once it says that it listens is told', async () => {
  const listener = await opened('--count', '1');
  const first = await started();
  await listener.ended;
  expect(listener.told()).toEqual([[first, undefined]]);
});

test('who reads it no more is told so, in its own words', async () => {
  const listener = await listen();
  listener.readNoMore();
  await started();
  await listener.ended;
  expect(listener.said()).toMatch(/"error":"output_closed","message":"nobody reads what it writes/);
});

test('types in another order are the same place', async () => {
  const types = ['transaction.started', 'transaction.cancelled'];
  for (const order of [types, types.toReversed()]) {
    const listener = await listen('--events', order.join(','));
    await listener.end('SIGKILL');
  }
  expect(places()).toHaveLength(1);
});

test('a proxy that knows no such page, or nobody, moves no place', async () => {
  const listener = await listen('--forward-to', shop.url);
  const before = readFileSync(places()[0] as string, 'utf8');
  front.say(404);
  await eventually('it comes back', () => (front.answered() >= 2 ? true : null), 60_000);
  const missed = await started();
  front.say(null);
  await shop.until((all) => all.length === 1);
  expect(bodies()).toEqual([missed]);
  expect(listener.said()).not.toContain('it begins now');
  await eventually('its place has moved', () => (readFileSync(places()[0] as string, 'utf8') === before ? null : true));
});

test('where the database has forgotten the last event, what it has since then is told', async () => {
  const first = await listen('--forward-to', shop.url);
  const kept = await started();
  await shop.until((all) => all.length === 1);
  const [place] = places();
  const { at } = await eventually('the place has moved', () => {
    const saved = JSON.parse(readFileSync(place as string, 'utf8')) as { at?: string };
    return saved.at === undefined ? null : saved;
  });
  await first.end('SIGTERM');
  // an event that a backup did not have
  writeFileSync(place as string, JSON.stringify({ cursor: 'evt_t0352N6Rx3HkOeQLXt3hxlO4', at }));
  const since = await started();
  const second = await listen('--forward-to', shop.url);
  await shop.until((all) => all.some(({ body }) => body.data.object.transaction_id === since));
  expect(second.said()).toContain('it goes on from before');
  // what was written shortly before comes again
  expect(bodies().filter((id) => id === kept)).toHaveLength(2);
});

test('one that was told nothing yet goes on from where it was too, when the database has forgotten that', async () => {
  await started();
  const only = ['--events', 'transaction.cancelled', '--forward-to', shop.url];
  const first = await listen(...only);
  const [place] = places();
  const { at } = JSON.parse(readFileSync(place as string, 'utf8')) as { at?: string };
  await first.end('SIGTERM');
  writeFileSync(place as string, JSON.stringify({ cursor: 'evt_t0352N6Rx3HkOeQLXt3hxlO4', at }));
  const transaction_id = await started();
  await api.call('/cancel_transaction', { transaction_id });
  const second = await listen(...only);
  await shop.until((all) => all.some(({ body }) => body.data.object.transaction_id === transaction_id));
  expect(second.said()).toContain('it goes on from before');
});

test('where the database was put back and gave the last event’s identifier again, what was written before that is told too', async () => {
  const first = await listen('--forward-to', shop.url);
  const last = await started();
  await shop.until((all) => all.length === 1);
  const [place] = places();
  await eventually('the place has moved', () => (readFileSync(place as string, 'utf8').includes('written') ? true : null));
  await first.end('SIGTERM');
  const between = await started();
  await api.sql('begin');
  await api.sql('set local session_replication_role = replica');
  await api.sql(
    `with gone as (delete from events where object_id = $1 returning *)
       insert into events (merchant_id, object_id, sequence, type, status, reason, at)
         select merchant_id, object_id, sequence, type, status, reason, at + interval '1 second' from gone`,
    [last],
  );
  await api.sql('commit');
  const second = await listen('--forward-to', shop.url);
  await shop.until((all) => all.some(({ body }) => body.data.object.transaction_id === between));
  expect(second.said()).toContain('it goes on from before');
});

test('what JavaScript takes for the end of a line may stand in an event', async () => {
  await listen('--forward-to', shop.url);
  const labels = ['a\u2028b', 'a\u2029b', 'last'];
  for (const label of labels) await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC', label });
  await shop.until((all) => all.some(({ body }) => body.data.object.label === 'last'));
  expect(shop.received.map(({ body }) => body.data.object.label)).toEqual(labels);
});

test('it ends where its profile is another user’s, whose events are not told to its program', async () => {
  const listener = await listen('--forward-to', shop.url);
  const id = await started();
  await shop.until((all) => all.length === 1);
  await askCli(['login', '--url', front.url, '--username', 'other', '--password', PASSWORD], here);
  api.advance(1_000);
  api.tokens.clear();
  await askCli(['login', '--url', front.url, '--username', 'other', '--password', PASSWORD], here);
  await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' }, {}, 'other');
  await started();
  await listener.ended;
  expect(listener.said()).toContain("the profile default is another user's now (other at ");
  expect(bodies()).toEqual([id]);
});
