// Invoices that a stranger has made long: LND lists every part that was ever sent for one, also those that it gave back, with whatever its sender wrote into
// each. A part that is given back costs nothing, and 300 of them are 900 kB of an answer, as a real LND shows.
import { createServer, type Server } from 'node:http';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { InvoiceFacts } from '../../src/core/lightning/port.ts';
import { leavingOut } from '../../src/outside/lightning/left-out.ts';
import { createLnd } from '../../src/outside/lightning/lnd.ts';
import { createLndPayer } from '../../src/outside/lightning/lnd-payer.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';

const hashOf = (index: number): string => index.toString(16).padStart(64, '0');
const PART = JSON.stringify({ state: 'CANCELED', amt_msat: '1000', custom_records: { '5482373999': 'x'.repeat(2_700) } });
/** More than a text of JavaScript holds is not needed: more than is read of one answer. */
const PARTS = 14_000;

/** @param parts of it, each as its sender has made it */
const invoiceText = (index: number, state: string, parts: string): string =>
  `{"memo":"a \\"htlcs\\":[ of \\\\","r_hash":"${Buffer.from(hashOf(index), 'hex').toString('base64')}","state":"${state}","htlcs":[${parts}],` +
  `"add_index":"${index}","settle_index":"${index}","amt_paid_msat":"${index}000","creation_date":"1","settle_date":"2","payment_request":"ln"}`;
const LONG = `${PART},`.repeat(PARTS - 1) + PART;

/** Of how many invoices the node makes an answer, and of how many it was asked for one. */
let longest = 0;
let asked: number[] = [];
let node: Server;
let lnd: ReturnType<typeof createLnd>;
beforeEach(async () => {
  [longest, asked] = [1_000, []];
  node = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://node');
    if (pathname === '/v1/invoices/subscribe') {
      for (const index of [1, 2, 3]) response.write(`{"result":${invoiceText(index, 'SETTLED', index === 2 ? LONG : '')}}\n`);
      return;
    }
    if (pathname === `/v1/invoice/${hashOf(2)}`) return void response.end(invoiceText(2, 'SETTLED', LONG));
    const [after, most] = [Number(query.get('index_offset')), Number(query.get('num_max_invoices'))];
    asked.push(most);
    if (most > longest) {
      // what LND's own gateway says
      response.writeHead(429).end('{"code":8,"message":"grpc: received message larger than max (1 vs. 209715200)","details":[]}');
      return;
    }
    response.writeHead(200, { 'Content-Type': 'application/json' });
    const page = [1, 2, 3].filter((index) => index > after).slice(0, most);
    response.end(`{"invoices":[${page.map((index) => invoiceText(index, 'SETTLED', index === 2 ? LONG : PART)).join()}]}`);
  });
  const url = `http://127.0.0.1:${await listen(node, 0)}`;
  lnd = createLnd(async () => ({ url, certificate: null, macaroon: '' }), { chain: 'regtest' });
});
afterEach(async () => {
  lnd.close();
  await closeServer(node);
});

const shown = ({ paymentHash, paidMsat }: InvoiceFacts) => [paymentHash, paidMsat];
const ALL = [1, 2, 3].map((index) => [hashOf(index), BigInt(index) * 1_000n]);

test('one is looked up, however many parts it has', async () => {
  expect(shown((await lnd.invoice(hashOf(2))) as InvoiceFacts)).toEqual(ALL[1]);
});

async function readAll(): Promise<readonly InvoiceFacts[]> {
  const read: InvoiceFacts[] = [];
  for (let page = await lnd.invoices(0n, { openOnly: false }); page.length > 0; ) {
    read.push(...page);
    page = await lnd.invoices(read.at(-1)?.addIndex as bigint, { openOnly: false });
  }
  return read;
}
test('a list that it is in is read to its end', async () => {
  expect((await readAll()).map(shown)).toEqual(ALL);
});

test('a list that the node cannot make is asked for in parts', async () => {
  longest = 2;
  expect((await readAll()).map(shown)).toEqual(ALL);
  expect(asked.slice(0, 4)).toEqual([500, 63, 8, 1]);
  longest = 1_000;
  for (let n = 0; n < 9; n++) await lnd.invoices(2n, { openOnly: false });
  expect(asked.at(-1)).toBe(500);
  longest = 0;
  await expect(readAll()).rejects.toThrow('larger than max');
});

test('so is one that the node does not make in time, as long as it answers what is short', async () => {
  let isThere = true;
  const heard: string[] = [];
  const slow = createServer((request, response) => {
    const { pathname, searchParams: query } = new URL(request.url ?? '', 'http://node');
    const most = query.get('num_max_invoices') ?? query.get('max_payments');
    heard.push(most ?? pathname);
    if (!isThere || Number(most) > 60) return;
    if (pathname === '/v1/state') response.end('{"state":"SERVER_ACTIVE"}');
    else if (query.has('max_payments')) response.end('{"payments":[]}');
    else response.end(`{"invoices":[${invoiceText(1, 'OPEN', '')}]}`);
  });
  const url = `http://127.0.0.1:${await listen(slow, 0)}`;
  const target = async () => ({ url, certificate: null, macaroon: '' });
  const port = createLnd(target, { chain: 'regtest', callMs: 500 });
  const payer = createLndPayer(target, { callMs: 500 });
  expect(await port.invoices(0n, { openOnly: true })).toHaveLength(1);
  expect(heard.splice(0)).toEqual(['500', '/v1/state', '63', '/v1/state', '8']);
  expect(await payer.payments(0n)).toEqual([]);
  expect(heard.splice(0)).toEqual(['200', '/v1/state', '25']);
  isThere = false;
  await expect(port.invoices(0n, { openOnly: true })).rejects.toThrow('did not answer');
  expect(heard).toEqual(['16', '/v1/state']);
  port.close();
  payer.close();
  await closeServer(slow);
});

test('what is settled after it is announced', async () => {
  const told: InvoiceFacts[] = [];
  const ended = await new Promise<string | null>((resolve) => {
    lnd.subscribe(0n, {
      onSettled: (invoice) => void (told.push(invoice) === 3 && resolve(null)),
      onEnd: resolve,
    });
  });
  expect(ended).toBeNull();
  expect(told.map(shown)).toEqual(ALL);
});

test('what is left out is left out wherever its text is divided, and nothing else', () => {
  const parts = `${PART.slice(0, 60)}[\\"]\\\\","y":[[1],[2]]}},{"z":"\\\\\\"]","htlcs":[[3]]}`;
  for (const spaced of ['"htlcs":[', '"htlcs": [']) {
    const text = `{"result":${invoiceText(1, 'OPEN', parts)}}\n`.replace('"htlcs":[', spaced);
    const wanted = text.replace(parts, '');
    for (let at = 0; at <= text.length; at++) {
      const read = leavingOut('htlcs');
      const first = read(text.slice(0, at));
      expect(first + read(text.slice(at))).toBe(wanted);
    }
    const read = leavingOut('htlcs');
    expect([...text].map(read).join('')).toBe(wanted);
  }
});

test('also where its name is divided, and what it holds once more', () => {
  const [before, held, after] = ['{"a":1,"htlcs":[', '{"b":"c]"}', '],"d":2}'];
  for (let name = before.indexOf('"htlcs'); name < before.length; name++)
    for (let at = 0; at <= held.length; at++) {
      const read = leavingOut('htlcs');
      const pieces = [before.slice(0, name), before.slice(name) + held.slice(0, at), held.slice(at) + after];
      expect(pieces.map(read).join('')).toBe(before + after);
    }
});

test('without a name nothing is left out', () => {
  expect(leavingOut(undefined)('{"undefined":[1]}')).toBe('{"undefined":[1]}');
});
