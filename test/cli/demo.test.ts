// The commands beside the running service, as an operator uses them: the demo, decisions, chains and keys while payments come in.
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { account } from '../keys/vectors.ts';
import { dataFolderFor, livingProcesses, type Service, startService } from '../support/service.ts';
import { askCli, type Environment, runCli } from './run.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 120_000 });

const place = dataFolderFor();
let service: Service;
let base: string;
let here: Environment;
beforeAll(async () => {
  service = startService({
    dataFolder: place.folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '1', BURSAR_RATE_LIMIT_SCALE: '100' },
  });
  base = await service.ready;
  here = { BURSAR_DATA_DIR: place.folder };
});
afterAll(async () => {
  const pid = service.supervisor();
  if (pid !== null) process.kill(pid, 'SIGTERM');
  await service.ended;
  place.remove();
});

async function call<T>(path: string, body: object): Promise<T> {
  const headers = { 'content-type': 'application/json' };
  const answer = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) });
  const text = await answer.text();
  if (!answer.ok) throw new Error(`${path} answered ${answer.status} ${text}`);
  return JSON.parse(text) as T;
}
type Created = { transaction_id: string; wallet_address: string };
async function create(currency: string): Promise<Created> {
  const { access_token } = await call<{ access_token: string }>('/auth', { username: 'demo', password: 'demo-demo-demo' });
  return call<Created>('/create_transaction', { access_token, amount: '10.00', crypto_selected: currency });
}
type Review = { transaction_id: string; status: string; suspense: Record<string, string> };
const reviews = async (...options: string[]) => (await askCli<{ data: Review[] }>(['review', 'list', ...options], here)).data;

describe('the demo', () => {
  it.each(['BTC', 'ltc'])('takes a payment in %s from started to succeeded and into the balance', async (crypto) => {
    const played = await askCli<{
      ok: boolean;
      statuses: { status: string; at: string }[];
      crypto_received: string;
      balances: Record<string, string>;
    }>(['demo', '--crypto', crypto], here);
    expect(played.ok).toBe(true);
    expect(played.statuses.map((one) => one.status)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    const times = played.statuses.map((one) => one.at);
    expect(times).toEqual(times.toSorted());
    expect(played.balances[crypto.toUpperCase()]).toBe(played.crypto_received);
  });

  it('prints each status with its time', async () => {
    const { code, out } = await runCli(['demo', '--url', `${base}/`], here);
    expect(code).toBe(0);
    for (const status of ['started', 'pending', 'confirmed', 'succeeded']) {
      expect(out).toMatch(new RegExp(`^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d\\.\\d{3}Z {2}${status} `, 'm'));
    }
    expect(out).toMatch(/^balance 0\.\d{8} BTC\nThe payment succeeded\.\n$/m);
  });

  it('can be looked up afterwards by its id, address, txid and label, with its history, payments and entries', async () => {
    const played = await askCli<{ transaction_id: string; txid: string }>(['demo'], here);
    type Shown = {
      data: {
        transaction_id: string;
        status: string;
        wallet_address: string;
        events: { status: string }[];
        payments: { txid: string; amount: string; confirmations: number; counted: boolean; available: string }[];
        entries: { postings: { account: string; amount: string }[] }[];
        crypto_amount: string;
      }[];
    };
    const show = (what: string) => askCli<Shown>(['transaction', 'show', what], here);
    const byId = await show(played.transaction_id);
    const [one] = byId.data;
    expect(one).toMatchObject({ transaction_id: played.transaction_id, status: 'succeeded' });
    expect(one?.events.map(({ status }) => status)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(one?.payments).toEqual([
      expect.objectContaining({ txid: played.txid, amount: one?.crypto_amount, counted: true, available: one?.crypto_amount }),
    ]);
    expect(one?.payments[0]?.confirmations).toBeGreaterThan(0);
    const booked = one?.entries.flatMap(({ postings }) => postings) ?? [];
    expect(booked.map(({ amount }) => amount)).toEqual(expect.arrayContaining([one?.crypto_amount, `-${one?.crypto_amount}`]));
    for (const what of [one?.wallet_address, played.txid, played.txid.toUpperCase()])
      expect((await show(what as string)).data.map(({ transaction_id }) => transaction_id)).toEqual([played.transaction_id]);
    expect((await show('bursar demo')).data[0]?.transaction_id).toBe(played.transaction_id);
    const { out } = await runCli(['transaction', 'show', played.transaction_id], here);
    expect(out).toMatch(new RegExp(`^transaction ${played.transaction_id}, succeeded$`, 'm'));
    expect(out).toMatch(/^\S+Z {2}succeeded +credited to the balance$/m);
    expect(out).toContain(`${played.txid}:`);
    expect(await askCli(['transaction', 'decide', played.transaction_id], here)).toEqual({
      transaction_id: played.transaction_id,
      status: 'succeeded',
    });
    expect(await runCli(['transaction', 'decide', 'txn_none'], here)).toMatchObject({
      code: 1,
      err: 'bursar: there is no transaction txn_none\n',
    });
    expect(await runCli(['transaction', 'show', 'nothing'], here)).toMatchObject({
      code: 1,
      err: 'bursar: no transaction has nothing as its id, address or label, or a payment of that txid\n',
    });
  });

  it('ends with exit code 1 and the refusal when there is one', async () => {
    const small = await runCli(['demo', '--amount', '0.10'], here);
    expect(small).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^bursar: \/create_transaction answered 422 amount_below_minimum: /),
    });
    const stranger = await runCli(['demo', '--password', 'not the password'], here);
    expect(stranger).toMatchObject({ code: 1, err: expect.stringMatching(/^bursar: \/auth answered 401 invalid_credentials: /) });
  });
});

describe('decisions', () => {
  it('take late payments out of suspense, or leave them there', async () => {
    const { access_token } = await call<{ access_token: string }>('/auth', { username: 'demo', password: 'demo-demo-demo' });
    await call('/set_settings', { access_token, late_payments: 'review' });
    const late = [await create('BTC'), await create('BTC')];
    await call('/sandbox/clock', { advance_seconds: 1_200 });
    for (const { transaction_id } of late) await call('/sandbox/pay', { transaction_id });
    await call('/sandbox/mine', { currency: 'BTC', blocks: 2 });
    await vi.waitFor(async () => expect(await reviews()).toHaveLength(2), { timeout: 30_000, interval: 200 });
    const [first, second] = await reviews();
    expect(first).toMatchObject({ status: 'review', suspense: { BTC: expect.stringMatching(/^0\.\d{8}$/) } });
    expect((await runCli(['review', 'list'], here)).out).toContain(first!.transaction_id);
    expect(await reviews('--currency', 'ltc')).toEqual([]);
    expect((await reviews('--currency', 'btc')).map(({ transaction_id }) => transaction_id)).toContain(first!.transaction_id);
    const { keys } = await askCli<{ keys: { currency: string }[] }>(['keys', 'show-xpubs', '--currency', 'ltc'], here);
    expect(new Set(keys.map(({ currency }) => currency))).toEqual(new Set(['LTC']));

    expect(await askCli(['review', 'accept', first!.transaction_id], here)).toEqual({
      transaction_id: first!.transaction_id,
      status: 'succeeded',
    });
    expect(await askCli(['review', 'decline', second!.transaction_id], here)).toEqual({
      transaction_id: second!.transaction_id,
      status: 'declined',
    });
    expect(await runCli(['review', 'accept', first!.transaction_id], here)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/^bursar: /),
    });
    expect(await reviews()).toEqual([]);
    expect(await reviews('--declined')).toMatchObject([{ transaction_id: second!.transaction_id, status: 'declined' }]);
  });
});

describe('keys beside the running service', () => {
  it('are the signer’s own, confirmed over its socket', async () => {
    expect(await askCli(['keys', 'verify'], here)).toMatchObject({ ok: true, addresses: { wrong: [] } });
    expect(await runCli(['keys', 'init'], here)).toMatchObject({ code: 1, err: expect.stringMatching(/never overwritten/) });
    expect(await runCli(['signer'], here)).toMatchObject({ code: 1, err: expect.stringMatching(/a signer already runs on/) });
  });

  it('kept elsewhere receive from then on: payments that come there are credited', async () => {
    const xpub = account('LTC', 'sandbox').publicExtendedKey;
    const imported = await askCli<{ first_address: string }>(['keys', 'import-xpub', '--currency', 'LTC', '--xpub', xpub], here);
    await vi.waitFor(async () => expect((await create('LTC')).wallet_address).toBe(imported.first_address), {
      timeout: 10_000,
      interval: 300,
    });
    const played = await askCli<{ ok: boolean }>(['demo', '--crypto', 'LTC'], here);
    expect(played.ok).toBe(true);
    expect(await askCli(['keys', 'verify'], here)).toMatchObject({ ok: true });
  });
});

describe('the chains and the books', () => {
  it('are shown as they are: a node that is down is named, and exit code 1', async () => {
    type Chains = { chains: { currency: string; state: string; behind: number; stale: boolean }[] };
    const up = await askCli<Chains>(['chain', 'status'], here);
    expect(up.chains.map((chain) => [chain.currency, chain.state, chain.stale])).toEqual([
      ['BCH', 'ready', false],
      ['BTC', 'ready', false],
      ['BTC-LN', 'ready', false],
      ['DASH', 'ready', false],
      ['DOGE', 'ready', false],
      ['ETH', 'ready', false],
      ['LTC', 'ready', false],
      ['USDT', 'ready', false],
    ]);
    // told with the next sign of life; Dogecoin's node cannot say where it announces, and Ethereum's are asked
    await vi.waitFor(
      async () => {
        const { chains } = await askCli<{ chains: { currency: string; pushes: boolean }[] }>(['chain', 'status'], here);
        const silent = chains.filter(({ pushes }) => !pushes).map(({ currency }) => currency);
        expect([chains.length, silent]).toEqual([8, ['DOGE', 'ETH', 'USDT']]);
      },
      { timeout: 30_000, interval: 500 },
    );
    await call('/sandbox/node', { currency: 'LTC', down: true });
    await vi.waitFor(
      async () => {
        const down = await askCli<Chains>(['chain', 'status'], here, 1);
        expect(down.chains.filter((chain) => chain.state !== 'ready').map((chain) => chain.currency)).toEqual(['LTC']);
      },
      { timeout: 30_000, interval: 300 },
    );
    expect(await runCli(['chain', 'status'], here)).toMatchObject({ code: 1, out: expect.stringMatching(/^LTC +down/m) });
    await call('/sandbox/node', { currency: 'LTC', down: false });
  });

  it('late payments on an address older than thirty days have found their owner when an audit is through', async () => {
    const { transaction_id } = await create('DOGE');
    await call('/sandbox/clock', { advance_seconds: 31 * 86_400 });
    await call('/sandbox/pay', { transaction_id });
    await call('/sandbox/mine', { currency: 'DOGE', blocks: 2 });
    expect(await askCli(['audit'], here)).toMatchObject({ ok: true, searched: true });
    const { access_token } = await call<{ access_token: string }>('/auth', { username: 'demo', password: 'demo-demo-demo' });
    expect(await call('/check_transaction', { access_token, transaction_id })).toMatchObject({ status: 'review' });
  });

  it('balance after all of this', async () => {
    const audit = await askCli<{ ok: boolean }>(['audit'], here);
    expect(audit.ok).toBe(true);
  });

  it('can be asked for when the server does not run, and nothing is left running', async () => {
    process.kill(service.supervisor()!, 'SIGTERM');
    expect(await service.ended).toBe(0);
    expect(await askCli(['audit'], here)).toMatchObject({ ok: true, searched: null });
    expect(await reviews('--declined')).toHaveLength(2);
    expect(await askCli(['keys', 'verify'], here)).toMatchObject({ ok: true });
    expect(livingProcesses(place.folder)).toEqual([]);
  });
});
