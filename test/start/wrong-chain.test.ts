// The real `npm start` in the sandbox: what happens to payments to the right script on another chain. Where our key controls the script
// there, they are payments in another currency (rule 18); at a witness program on a chain without segwit they are nobody's, and change
// nothing at all.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askCli } from '../cli/run.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 90_000;
type Json = Record<string, unknown>;

const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
let token: string;

async function call(path: string, body: object): Promise<{ status: number; json: Json }> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(path.startsWith('/sandbox/') ? body : { access_token: token, ...body }),
  });
  return { status: answer.status, json: (await answer.json()) as Json };
}
async function ask(path: string, body: object = {}): Promise<Json> {
  const { status, json } = await call(path, body);
  if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(json)}`);
  return json;
}
async function create(code: string): Promise<string> {
  const json = await ask('/create_transaction', { amount: '25.00', crypto_selected: code });
  return json.transaction_id as string;
}
const look = (id: string): Promise<Json> => ask('/check_transaction', { transaction_id: id, expand: ['payments', 'events'] });
const statuses = (seen: Json): unknown[] => (seen.events as Json[]).map((event) => event.status);
const balances = async (): Promise<unknown> => (await ask('/get_account_info')).balances;
/** So many blocks on a chain that every payment there is final. */
const bury = (currency: string) => ask('/sandbox/mine', { currency, blocks: 70 });

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  token = (await call('/auth', { username: 'demo', password: 'demo-demo-demo' })).json.access_token as string;
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

test.each([
  ['BTC', 'DOGE'],
  ['BTC', 'DASH'],
  ['BTC', 'BCH'],
  ['LTC', 'DOGE'],
])('an order in %s that is paid in %s stays as it is: nobody holds a key there', { timeout: TIMEOUT }, async (asked, sent) => {
  const before = await balances();
  const id = await create(asked);
  const { txid } = await ask('/sandbox/pay', { transaction_id: id, currency: sent, amount: '5000' });
  await bury(sent);
  const untouched = { status: 'started', crypto_received: '0.00000000', payments: [], events: [{ status: 'started' }] };
  expect(await look(id)).toMatchObject(untouched);
  for (const part of [{}, { part: 'excess' }])
    expect(await call('/resolve_transaction', { transaction_id: id, action: 'accept', ...part })).toMatchObject({
      status: 409,
      json: { error: 'not_resolvable' },
    });
  expect(await look(id)).toMatchObject(untouched);
  expect(await balances()).toEqual(before);

  // the right currency is still taken
  await ask('/sandbox/pay', { transaction_id: id });
  await bury(asked);
  await eventually(`${id} is paid`, async () => (await look(id)).status === 'succeeded');
  expect((await look(id)).payments).toHaveLength(1);

  const answer = await askCli<{ unprotected: Json[] }>(['chain', 'status'], { BURSAR_DATA_DIR: folder });
  expect(answer.unprotected.filter((payment) => payment.transaction_id === id)).toMatchObject([
    { currency: sent, outpoint: `${txid}:0`, amount: '5000.00000000' },
  ]);
  const lines = service
    .output()
    .split('\n')
    .filter((line) => line.includes(`${txid}:0`));
  expect(lines).toHaveLength(1);
  expect(lines[0]).toContain('no key of ours controls');
  // a customer who asks for it has the txid only
  const found = await askCli<{ data: Json[] }>(['transaction', 'show', txid as string], { BURSAR_DATA_DIR: folder });
  expect(found.data).toMatchObject([
    { transaction_id: id, unprotected: [{ currency: sent, outpoint: `${txid}:0`, amount: '5000.00000000' }] },
  ]);
});

test.each([
  ['LTC', 'BTC'],
  ['BTC', 'LTC'],
  ['BCH', 'DOGE'],
  ['DOGE', 'BTC'],
  ['DASH', 'BCH'],
])(
  'an order in %s that is paid in %s goes to review by rule 18: the key holds that payment',
  { timeout: TIMEOUT },
  async (asked, sent) => {
    const id = await create(asked);
    await ask('/sandbox/pay', { transaction_id: id, currency: sent, amount: '1' });
    await bury(sent);
    await eventually(`${id} is in review`, async () => (await look(id)).status === 'review');
    expect(statuses(await look(id))).toEqual(['started', 'review']);
  },
);

test('the books are in order after all that', { timeout: TIMEOUT }, async () => {
  const answer = await askCli<{ ok: boolean }>(['audit'], { BURSAR_DATA_DIR: folder });
  expect(answer).toMatchObject({ ok: true });
});
