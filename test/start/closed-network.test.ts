// A start outside the sandbox, without the internet: prices that the operator fixes or that are missing, and what is printed before and
// after `ready`. The node is a real one.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { askCli, runCli } from '../cli/run.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import { freePort } from '../support/core-daemon.ts';
import { dataFolderFor, eventually, startService } from '../support/service.ts';

const TIMEOUT = 120_000;
const PASSPHRASE = { BURSAR_SIGNER_PASSPHRASE: 'a passphrase for the seed' };
let bitcoind: Awaited<ReturnType<typeof startBitcoind>>;
beforeAll(async () => {
  bitcoind = await startBitcoind();
  await bitcoind.mine(101);
}, TIMEOUT);
afterAll(() => bitcoind.remove());

async function post<T>(base: string, path: string, body: object): Promise<T> {
  const headers = { 'content-type': 'application/json', 'x-forwarded-proto': 'https' };
  const answer = await fetch(base + path, { method: 'POST', headers, body: JSON.stringify(body) });
  return (await answer.json()) as T;
}
const readyz = async (base: string) => {
  const answer = await fetch(`${base}/readyz`);
  return {
    status: answer.status,
    body: (await answer.json()) as { message: string; problems: string[]; rates: { prices: string[]; sources: object[] } },
  };
};

test('with fixed prices a payment on regtest goes its way without any exchange', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const settings = {
    BURSAR_NETWORK: 'regtest',
    BURSAR_BTC_RPC_URL: bitcoind.url,
    BURSAR_FIXED_RATES: 'BTC=65000.00',
    BURSAR_TRUSTED_PROXIES: '127.0.0.1',
  };
  const service = startService({ dataFolder: folder, environment: settings });
  const base = await service.ready;
  const here = { ...settings, BURSAR_DATA_DIR: folder };
  await eventually(
    'the missing key',
    () => /^problem: there is no key to receive BTC with: make/m.test(service.output()),
    40_000,
  );
  await askCli(['keys', 'init'], here);
  const shop = ['--username', 'shop', '--email', 'a@example.com', '--business-name', 'M', '--password', 'long enough password'];
  await askCli(['merchant', 'add', ...shop], here);
  const { access_token } = await post<{ access_token: string }>(base, '/auth', {
    username: 'shop',
    password: 'long enough password',
  });
  const order = { access_token, amount: '65.00', crypto_selected: 'BTC' };
  const made = await eventually('a transaction', async () => {
    const answer = await post<{ transaction_id?: string; wallet_address: string; crypto_amount: string }>(
      base,
      '/create_transaction',
      order,
    );
    return answer.transaction_id === undefined ? null : answer;
  });
  expect(made.crypto_amount).toBe('0.00100000');
  await bitcoind.pay(made.wallet_address, made.crypto_amount);
  await eventually('pending', async () => {
    const { status } = await post<{ status: string }>(base, '/check_transaction', {
      access_token,
      transaction_id: made.transaction_id,
      wait_seconds: 5,
      status_was: 'started',
    });
    return status === 'pending';
  });
  await bitcoind.mine(1);
  const status = await askCli<{ problems: string[]; rates: object; rate_sources: object[] }>(['chain', 'status'], here);
  expect(status).toMatchObject({
    problems: [],
    rates: { BTC: { usd: '65000.00', sources: [{ source: 'fixed', usd: '65000.00' }] } },
    rate_sources: [{ source: 'fixed', state: 'answers', reason: null }],
  });
  expect((await readyz(base)).body).toMatchObject({ problems: [], rates: { prices: ['BTC'] } });
  expect(await service.stop()).toBe(0);
  remove();
});

test('that no price source can be reached is said by the start, the log, /readyz and chain status', {
  timeout: TIMEOUT,
}, async () => {
  const { folder, remove } = dataFolderFor();
  const nobody = `http://127.0.0.1:${await freePort()}`;
  const settings = {
    BURSAR_NETWORK: 'regtest',
    BURSAR_BTC_RPC_URL: bitcoind.url,
    BURSAR_RATE_SOURCES: `kraken=${nobody}/k,coinbase=${nobody}/c`,
  };
  const service = startService({ dataFolder: folder, environment: settings });
  const base = await service.ready;
  const reason = `no price source can be reached (coinbase: ${new URL(nobody).host}: ECONNREFUSED; kraken: ${new URL(nobody).host}: ECONNREFUSED)`;
  await eventually('the line of the start', () => service.output().includes(`\nproblem: ${reason}: see BURSAR_RATE_SOURCES\n`));
  expect(service.output()).toMatch(/"name":"worker".*no price source can be reached/);
  const { status, body } = await readyz(base);
  expect({ status, problems: body.problems }).toEqual({
    status: 200,
    problems: expect.arrayContaining([
      `${reason}: see BURSAR_RATE_SOURCES`,
      expect.stringMatching(/^there is no key to receive BTC with/),
    ]),
  });
  const ran = await runCli(['chain', 'status'], { ...settings, BURSAR_DATA_DIR: folder });
  expect(ran.code).toBe(1);
  expect(ran.out).toContain(`problem  ${reason}`);
  expect(ran.out).toMatch(/^kraken +unreachable +\S+Z +127\.0\.0\.1:\d+: ECONNREFUSED$/m);
  expect(await service.stop()).toBe(0);
  remove();
});

test('on mainnet a start waits for a key, and says so', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const settings = { BURSAR_NETWORK: 'mainnet', ...PASSPHRASE };
  const port = await freePort();
  const service = startService({ dataFolder: folder, environment: { ...settings, PORT: String(port) } });
  const missing =
    'there is no key to receive with: make the seed with "bursar keys init", or receive to a key kept elsewhere with "bursar keys import-xpub"';
  await eventually('the line of the start', () =>
    service.output().includes(`\nnot ready: Nothing can be received: ${missing}.\n`),
  );
  expect(service.output()).not.toMatch(/^ready /m);
  expect(await readyz(`http://127.0.0.1:${port}`)).toMatchObject({
    status: 503,
    body: { error: 'currency_unavailable', message: `Nothing can be received: ${missing}.` },
  });
  await askCli(['keys', 'init'], { ...settings, BURSAR_DATA_DIR: folder });
  expect(await service.ready).toBe(`http://127.0.0.1:${port}`);
  expect((await readyz(`http://127.0.0.1:${port}`)).status).toBe(200);
  expect(service.output().match(/^not ready: /gm)).toHaveLength(1);
  expect(await service.stop()).toBe(0);
  remove();
});

test('on mainnet a start with a node of another network waits too', { timeout: TIMEOUT }, async () => {
  const { folder, remove } = dataFolderFor();
  const settings = { BURSAR_NETWORK: 'mainnet', ...PASSPHRASE };
  await askCli(['keys', 'init'], { ...settings, BURSAR_DATA_DIR: folder });
  const down = `http://user:pw@127.0.0.1:${await freePort()}`;
  const nodes = { BURSAR_BTC_RPC_URL: bitcoind.url, BURSAR_LTC_RPC_URL: down };
  const service = startService({ dataFolder: folder, environment: { ...settings, ...nodes } });
  await eventually('the line of the start', () =>
    /^not ready: a node is on another network: BTC: .*127\.0\.0\.1:\d+/m.test(service.output()),
  );
  expect(service.output()).not.toMatch(/^ready /m);
  expect(await service.stop()).toBe(0);
  // one that is only down keeps nobody waiting
  const other = startService({ dataFolder: folder, environment: { ...settings, BURSAR_LTC_RPC_URL: down } });
  await other.ready;
  await eventually('the line of the start', () => /^problem: LTC: the node is down: /m.test(other.output()));
  expect(await other.stop()).toBe(0);
  remove();
});
