// The real `npm start` in the sandbox: each of the seven currencies is payable, survives a reorganisation, is lost to a double spend, and every figure
// of its balance is explained by /list_balance_entries.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 90_000;
/** Confirmations that 25 dollars need, and how an address of the sandbox looks. */
const CURRENCIES = [
  { code: 'BTC', needed: 1, final: 6, address: /^bcrt1q/, uri: 'bitcoin' },
  { code: 'LTC', needed: 2, final: 12, address: /^rltc1q/, uri: 'litecoin' },
  { code: 'BCH', needed: 1, final: 10, address: /^bchreg:q/, uri: 'bchreg' },
  { code: 'DASH', needed: 0, final: 12, address: /^y/, uri: 'dash' },
  { code: 'DOGE', needed: 6, final: 60, address: /^[mn]/, uri: 'dogecoin' },
  { code: 'ETH', needed: 6, final: 65, address: /^0x[0-9a-fA-F]{40}$/, uri: 'ethereum' },
  { code: 'USDT', needed: 6, final: 65, address: /^0x[0-9a-fA-F]{40}$/, uri: 'ethereum' },
] as const;

type Json = Record<string, unknown>;
type Entry = { readonly currency: string; readonly amount: string; readonly balance: string; readonly transaction_id?: string };

const { folder, remove } = dataFolderFor();
let service: Service;
let base: string;
let token: string;

async function call(path: string, body: object): Promise<{ status: number; json: Json }> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: answer.status, json: (await answer.json()) as Json };
}
async function ask(path: string, body: object = {}): Promise<Json> {
  const { status, json } = await call(path, path.startsWith('/sandbox/') ? body : { access_token: token, ...body });
  if (status !== 200) throw new Error(`${path} answered ${status} ${JSON.stringify(json)}`);
  return json;
}
const sandbox = (name: string, body: object) => ask(`/sandbox/${name}`, body);

async function create(code: string): Promise<{ id: string; address: string; amount: string }> {
  const json = await ask('/create_transaction', { amount: '25.00', crypto_selected: code });
  const made = (json.transaction ?? json) as Json;
  return {
    id: made.transaction_id as string,
    address: made.wallet_address as string,
    amount: made.crypto_amount as string,
  };
}
async function status(id: string): Promise<string> {
  const json = await ask('/check_transaction', { transaction_id: id });
  return ((json.transaction ?? json) as Json).status as string;
}
const becomes = (id: string, wanted: string) => eventually(`${id} is ${wanted}`, async () => (await status(id)) === wanted);
async function balance(code: string): Promise<string> {
  const json = await ask('/get_account_info');
  const found = JSON.stringify(json).match(new RegExp(`"${code}":"([0-9.]+)"`));
  return found?.[1] as string;
}
async function entries(code: string): Promise<readonly Entry[]> {
  const json = await ask('/list_balance_entries', { currency: code, limit: 100 });
  return (json.data ?? json.entries) as Entry[];
}
/** In units of 10⁻⁸. */
const units = (amount: string): bigint => BigInt(amount.replace('.', ''));

beforeAll(async () => {
  service = startService({ dataFolder: folder, environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0' } });
  base = await service.ready;
  const signedIn = await call('/auth', { username: 'demo', password: 'demo-demo-demo' });
  token = signedIn.json.access_token as string;
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  remove();
}, TIMEOUT);

describe.each(CURRENCIES)('$code', { timeout: TIMEOUT }, ({ code, needed, address }) => {
  let paid: { id: string; address: string; amount: string };

  test('is payable: pending at once, succeeded with its confirmations, credited to the unit', async () => {
    paid = await create(code);
    expect(paid.address).toMatch(address);
    await sandbox('pay', { transaction_id: paid.id });
    if (needed > 0) {
      await becomes(paid.id, 'pending');
      if (needed > 1) {
        await sandbox('mine', { currency: code, blocks: needed - 1 });
        expect(await status(paid.id)).toBe('pending');
      }
      await sandbox('mine', { currency: code, blocks: 1 });
    }
    await becomes(paid.id, 'succeeded');
    expect(await balance(code)).toBe(paid.amount);
  });

  test('survives a reorganisation of its blocks: the entry stays', async () => {
    await sandbox('mine', { currency: code, blocks: 1 });
    await sandbox('reorg', { currency: code, depth: needed + 1 });
    await eventually('the new branch has been read', async () => (await status(paid.id)) === 'succeeded');
    expect(await balance(code)).toBe(paid.amount);
    await sandbox('mine', { currency: code, blocks: needed + 1 });
    expect(await status(paid.id)).toBe('succeeded');
  });

  test('a double spend before its confirmations takes the payment away, and nothing is booked', async () => {
    if (code === 'DASH') await sandbox('node', { currency: code, fault: 'no_locks' });
    const doubted = await create(code);
    await sandbox('pay', { transaction_id: doubted.id });
    await becomes(doubted.id, 'pending');
    await sandbox('double_spend', { transaction_id: doubted.id });
    await becomes(doubted.id, 'started');
    if (code === 'DASH') await sandbox('node', { currency: code, fault: null });
    expect(await balance(code)).toBe(paid.amount);
  });

  test('a double spend in a reorganisation after booking reverses the entry, once', async () => {
    const lost = await create(code);
    await sandbox('pay', { transaction_id: lost.id });
    await sandbox('mine', { currency: code, blocks: Math.max(needed, 1) });
    await becomes(lost.id, 'succeeded');
    expect(units(await balance(code))).toBe(units(paid.amount) + units(lost.amount));
    await sandbox('reorg', { currency: code, depth: Math.max(needed, 1), drop: true });
    await becomes(lost.id, 'review');
    expect(await balance(code)).toBe(paid.amount);
    const own = (await entries(code)).filter((entry) => JSON.stringify(entry).includes(lost.id));
    expect(own.map((entry) => units(entry.amount.replace('-', '')))).toEqual([units(lost.amount), units(lost.amount)]);
  });

  test('every figure of its balance is explained by entries', async () => {
    const all = await entries(code);
    const total = all.reduce((sum, entry) => sum + units(entry.amount), 0n);
    expect(total).toBe(units(await balance(code)));
    expect(all.every((entry) => entry.currency === code)).toBe(true);
  });
});

describe('on Ethereum', { timeout: TIMEOUT }, () => {
  const paidBy = async (code: string, kind: string): Promise<string> => {
    const { id } = await create(code);
    await sandbox('pay', { transaction_id: id, kind });
    await sandbox('mine', { currency: code, blocks: 6 });
    return status(id);
  };

  test.each([
    ['ETH', 'internal', 'succeeded'],
    ['ETH', 'internal_reverted', 'started'],
    ['USDT', 'token_fake', 'started'],
    ['USDT', 'token_failed', 'started'],
  ])('a payment in %s of the kind %s leaves its transaction %s', async (code, kind, wanted) => {
    expect(await paidBy(code, kind)).toBe(wanted);
  });

  test('the other currency of the chain at an address is not its payment (rule 18)', async () => {
    const { id } = await create('USDT');
    await sandbox('pay', { transaction_id: id, currency: 'ETH', amount: '1' });
    await becomes(id, 'review');
  });

  test('20,000 dollars wait for the finalized block: 65 confirmations', async () => {
    const made = await ask('/create_transaction', { amount: '20000.00', crypto_selected: 'ETH' });
    const id = made.transaction_id as string;
    await sandbox('pay', { transaction_id: id });
    await sandbox('mine', { currency: 'ETH', blocks: 64 });
    expect(await status(id)).toBe('pending');
    await sandbox('mine', { currency: 'USDT', blocks: 1 });
    await becomes(id, 'succeeded');
  });

  test('a node that is down takes both currencies away, and brings them back', async () => {
    await sandbox('node', { currency: 'USDT', down: true });
    for (const code of ['ETH', 'USDT'])
      expect(await call('/create_transaction', { access_token: token, amount: '25.00', crypto_selected: code })).toMatchObject({
        status: 503,
        json: { error: 'currency_unavailable' },
      });
    await sandbox('node', { currency: 'ETH', down: false });
    await eventually('both are back', async () => (await Promise.all(['ETH', 'USDT'].map(create))).length === 2);
  });
});
