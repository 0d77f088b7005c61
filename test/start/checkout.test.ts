// The real `npm start`: a customer's open checkout page follows a payment in two parts from the first coin to the last confirmation, over Bitcoin and Lightning.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { openStream } from '../support/event-stream.ts';
import { decodeQr } from '../support/qr-decode.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 90_000;
const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
let token: string;

async function call(path: string, body: object) {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server said, for the test to look at
  const json = (await answer.json()) as any;
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status} ${JSON.stringify(json)}`);
  return json;
}

async function opened(code: string) {
  const asked = { access_token: token, amount: '25.00', crypto_selected: code, expand: ['checkout'] };
  const made = await call('/create_transaction', asked);
  const stream = await openStream(base, null, {}, `${new URL(made.checkout.url).pathname}/events`);
  await stream.count(1);
  return { made, stream, last: () => stream.events().at(-1) };
}

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  token = (await call('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token;
}, TIMEOUT);
afterAll(async () => {
  await service?.stop();
  remove();
}, TIMEOUT);

test('a payment in two parts: the rest is asked for exactly, then its confirmations are told, then it is paid', async () => {
  const { made, stream, last } = await opened('BTC');
  expect(last()).toMatchObject({ status: 'started', screen: 'pay' });
  await call('/sandbox/pay', { transaction_id: made.transaction_id, amount: '0.00010000' });
  await stream.count(2);
  expect(last()).toMatchObject({ status: 'pending', screen: 'partly_paid' });
  const rest = (BigInt(made.crypto_amount.replace('.', '')) - 10_000n)
    .toString()
    .padStart(9, '0')
    .replace(/(\d{8})$/, '.$1');
  const code = /<img class="qr" src="([^"]+)"/.exec(last().html)?.[1] as string;
  expect(decodeQr(code)).toBe(`bitcoin:${made.wallet_address}?amount=${rest}`);
  expect(last().html).toContain(`data-copy="${rest}"`);
  await call('/sandbox/pay', { transaction_id: made.transaction_id });
  await stream.count(3);
  expect(last()).toMatchObject({ status: 'pending', screen: 'seen', said: expect.stringContaining('0 of 1 confirmation') });
  expect(last().html).not.toContain('data-copy');
  await call('/sandbox/mine', { currency: 'BTC', blocks: 1 });
  await stream.count(4);
  expect(last()).toMatchObject({ screen: 'paid', said: 'Paid. Thank you.' });
  await stream.close();
});

test('a payment that has left the mempools is not asked for again, because it may come back', async () => {
  const { made, stream, last } = await opened('BTC');
  await call('/sandbox/pay', { transaction_id: made.transaction_id });
  await stream.count(2);
  expect(last()).toMatchObject({ status: 'pending', screen: 'seen' });
  await call('/sandbox/evict', { transaction_id: made.transaction_id });
  await stream.count(3);
  expect(last()).toMatchObject({ status: 'pending', screen: 'missing', said: expect.stringContaining('do not pay again') });
  expect(last().html).not.toMatch(/class="qr"|class="wallet"|data-copy/);
  await call('/sandbox/return', { transaction_id: made.transaction_id });
  await stream.count(4);
  expect(last()).toMatchObject({ status: 'pending', screen: 'seen' });
  await stream.close();
});

test('of a payment in parts of which one has left the mempools only what was never sent is asked for', async () => {
  const { made, stream, last } = await opened('LTC');
  const half = (BigInt(made.crypto_amount.replace('.', '')) / 2n)
    .toString()
    .padStart(9, '0')
    .replace(/(\d{8})$/, '.$1');
  await call('/sandbox/pay', { transaction_id: made.transaction_id, amount: half });
  await stream.count(2);
  const asked = /data-copy="([\d.]+)"/.exec(last().html)?.[1];
  await call('/sandbox/evict', { transaction_id: made.transaction_id });
  await stream.count(3);
  expect(last()).toMatchObject({ screen: 'partly_paid', said: expect.stringContaining(`${asked} LTC is still to be paid`) });
  expect(last().html).toContain(`data-copy="${asked}"`);
  expect(last().html).toContain(`${half} LTC was seen and is not shown by the network at present: do not send it again.`);
  await stream.close();
});

test('an invoice over Lightning is paid in one step', async () => {
  const { made, stream, last } = await opened('BTC-LN');
  const code = /<img class="qr" src="([^"]+)"/.exec(last().html)?.[1] as string;
  expect(decodeQr(code)).toBe(`LIGHTNING:${made.wallet_address.toUpperCase()}`);
  await call('/sandbox/pay', { transaction_id: made.transaction_id });
  await stream.count(2);
  expect(last()).toMatchObject({ screen: 'paid' });
  await stream.close();
});
