// The real `npm start` in the sandbox: payments over Lightning by the public API, with keys, while processes are killed and the node is away.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { runCli } from '../cli/run.ts';
import { decodeQr } from '../support/qr-decode.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 90_000;
type Json = Record<string, unknown>;

const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
let token: string;

async function call(path: string, body: object, key?: string): Promise<{ status: number; json: Json; replayed: boolean }> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...(key === undefined ? {} : { 'idempotency-key': key }) },
    body: JSON.stringify(path.startsWith('/sandbox/') ? body : { access_token: token, ...body }),
  });
  return {
    status: answer.status,
    json: (await answer.json()) as Json,
    replayed: answer.headers.get('idempotent-replayed') === 'true',
  };
}
async function ask(path: string, body: object = {}, key?: string): Promise<Json> {
  const { status, json } = await call(path, body, key);
  if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(json)}`);
  return json;
}
const create = (key?: string, amount = '25.00') =>
  ask('/create_transaction', { amount, crypto_selected: 'BTC-LN', label: 'tea' }, key);
/** Both with one key. */
async function atOnce(key: string) {
  const asked = ['25.00', '26.00'].map((amount) => ({ amount, crypto_selected: 'BTC-LN' }));
  const answers = await Promise.all(asked.map((body) => call('/create_transaction', body, key)));
  return answers.map(({ status: answered, json }) => String(answered === 200 ? 'made' : json.error)).toSorted();
}
const pay = (id: unknown) => ask('/sandbox/pay', { transaction_id: id });
const status = async (id: unknown) => (await ask('/check_transaction', { transaction_id: id })).status;
const becomes = (id: unknown, wanted: string) => eventually(`it is ${wanted}`, async () => (await status(id)) === wanted, 30_000);
const available = async (): Promise<unknown> => ((await ask('/get_account_info')).balances as Json).BTC;

async function killed(entry: string): Promise<void> {
  const pid = service.processOf(entry) as number;
  process.kill(pid, 'SIGKILL');
  await eventually(`another ${entry}`, () => {
    const now = service.processOf(entry);
    return now !== null && now !== pid;
  });
}

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  token = '';
  token = (await ask('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token as string;
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

test('an invoice is payable by its text and its QR code, and its payment is in the Bitcoin balance at once', {
  timeout: TIMEOUT,
}, async () => {
  const made = await create();
  expect(decodeQr(String(made.qr_code))).toBe(`LIGHTNING:${String(made.wallet_address).toUpperCase()}`);
  expect(made).toMatchObject({ status: 'started', crypto_amount: '0.00038462', exchange_rate: '65000.00' });
  await pay(made.transaction_id);
  const seen = await ask('/check_transaction', { transaction_id: made.transaction_id, expand: ['payments', 'events'] });
  expect(seen).toMatchObject({ status: 'succeeded', crypto_received: '0.00038462', confirmations: 1 });
  expect((seen.events as Json[]).map((event) => event.status)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
  expect(seen.payments).toMatchObject([
    { txid: expect.stringMatching(/^[0-9a-f]{64}$/), amount: '0.00038462', confirmations: 1, counted: true },
  ]);
  expect(await available()).toBe('0.00038462');
  const { data: listed } = await ask('/list_transactions', { crypto_selected: 'LIGHTNING' });
  expect(listed).toMatchObject([
    { transaction_id: made.transaction_id, crypto_selected: 'BTC-LN', wallet_address: made.wallet_address },
  ]);
  expect((await call('/sandbox/pay', { transaction_id: made.transaction_id })).status).toBe(409);
});

test('a call with a key gets one invoice, and a cancel with a key cancels it at the node', { timeout: TIMEOUT }, async () => {
  const [first, second] = await Promise.all([
    call('/create_transaction', { amount: '3.00', crypto_selected: 'LN' }, 'k'),
    create('other'),
  ]);
  const again = await call('/create_transaction', { amount: '3.00', crypto_selected: 'LN' }, 'k');
  expect(again).toMatchObject({ status: 200, replayed: true, json: first.json });
  expect(second.wallet_address).not.toBe(first.json.wallet_address);
  const cancelled = await ask('/cancel_transaction', { transaction_id: first.json.transaction_id }, 'c');
  expect(cancelled.status).toBe('cancelled');
  expect((await call('/sandbox/pay', { transaction_id: first.json.transaction_id })).status).toBe(409);
  expect(await ask('/cancel_transaction', { transaction_id: first.json.transaction_id })).toEqual(cancelled);
});

test('while the node is away nothing is sold and nothing times out; what is paid meanwhile is credited', {
  timeout: TIMEOUT,
}, async () => {
  const made = await create();
  const before = await available();
  await ask('/sandbox/node', { currency: 'BTC-LN', down: true });
  await pay(made.transaction_id);
  expect(await call('/create_transaction', { amount: '1.00', crypto_selected: 'BTC-LN' })).toMatchObject({
    status: 503,
    json: { error: 'lightning_unavailable' },
  });
  await ask('/sandbox/clock', { advance_seconds: 700 });
  await ask('/sandbox/clock', { advance_seconds: 300 });
  token = '';
  token = (await ask('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token as string;
  expect(await status(made.transaction_id)).toBe('started');
  await ask('/sandbox/node', { currency: 'BTC-LN', down: false });
  await becomes(made.transaction_id, 'succeeded');
  expect(Number(await available()) - Number(before)).toBeCloseTo(0.00038462, 10);
});

test('kill -9 of the worker and of the node loses no payment and doubles none', { timeout: TIMEOUT }, async () => {
  const made = await Promise.all(Array.from({ length: 20 }, () => create(undefined, '1.00')));
  const before = Number(await available());
  const paying = made.map(({ transaction_id }) => pay(transaction_id));
  await killed('worker');
  await Promise.all(paying);
  for (const { transaction_id } of made) await becomes(transaction_id, 'succeeded');
  const open = await create();
  await killed('sandbox-process');
  await eventually(
    'the sandbox',
    async () => (await call('/sandbox/pay', { transaction_id: open.transaction_id })).status === 200,
    30_000,
  );
  await becomes(open.transaction_id, 'succeeded');
  expect(Number(await available())).toBeCloseTo(before + 20 * 0.00001539 + 0.00038462, 10);
});

test('of two bodies with one key at once the first is answered, and the other one is told to wait', {
  timeout: TIMEOUT,
}, async () => {
  for (let n = 0; n < 5; n++)
    expect([
      ['made', 'request_in_progress'],
      ['idempotency_conflict', 'made'],
    ]).toContainEqual(await atOnce(`at once ${n}`));
});

test('an invoice that nobody pays times out, and every invariant is green', { timeout: TIMEOUT }, async () => {
  const made = await create();
  await ask('/sandbox/clock', { advance_seconds: 900 });
  token = '';
  token = (await ask('/auth', { username: 'demo', password: 'demo-demo-demo' })).access_token as string;
  expect(await status(made.transaction_id)).toBe('timedout');
  await ask('/sandbox/clock', { advance_seconds: 3_600 });
  const audit = await runCli(['audit'], { BURSAR_DATA_DIR: folder });
  expect(audit.out).toContain('invariants are green');
  expect(audit.code).toBe(0);
});
