// The real `npm start` on a real Ethereum node, killed with -9 around the moment at which USDT is sent (a payment is moved, a payout leaves): once
// it is signed, before the node gets it, and before the node's answer is back. Each transaction is mined once, and the books balance. The
// supervisor gives up after more than five deaths in a minute, so only these two transactions are met, twice each.
import { watch } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { evmAddressOf } from '../../src/core/currencies/evm.ts';
import { askCli, runCli } from '../cli/run.ts';
import { type Anvil, callData, startAnvil } from '../support/evm/anvil.ts';
import { QUIRKY_TOKEN } from '../support/evm/compiled.ts';
import { openNodeRelay } from '../support/nodes/node-relay.ts';
import { until } from '../support/payout-client.ts';
import { portsFor } from '../support/ports.ts';
import { dataFolderFor, eventually, type Service, startService } from '../support/service.ts';

const TIMEOUT = 600_000;
type Json = Record<string, unknown>;
const { folder, remove } = dataFolderFor();
const PAYEES = [`0x${'b1'.repeat(20)}`, `0x${'b2'.repeat(20)}`] as const;
const FINAL = 65;
const CONFIRMED = 12;
const shop = { username: 'shop', password: 'long enough password' };
let anvil: Anvil;
let relay: Awaited<ReturnType<typeof openNodeRelay>>;
let service: Service;
let base = '';
let token = '';
let settings: Record<string, string> = {};
const hot = { ETH: '', USDT: '' };
/** The bytes that are held no longer. */
const passed = new Set<unknown>();
/** Whether a signed transaction calls the token. */
const movesTokens = (raw: unknown): boolean => typeof raw === 'string' && raw.includes(anvil.token.slice(2));

async function ask(path: string, body: object = {}): Promise<Json> {
  const answer = await fetch(base + path, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'x-forwarded-proto': 'https' },
    body: JSON.stringify({ ...(token === '' ? {} : { access_token: token }), ...body }),
  });
  const json = (await answer.json()) as Json;
  if (answer.status !== 200) throw new Error(`${path} answered ${answer.status} ${JSON.stringify(json)}`);
  return json;
}
const started = async (): Promise<void> => {
  service = startService({ dataFolder: folder, environment: settings });
  base = await service.ready;
};
const kill = (pid: number | null): void => {
  if (pid !== null) process.kill(pid, 'SIGKILL');
};
const units = async (address: string): Promise<bigint> =>
  BigInt(
    await anvil.rpc<string>(
      'eth_call',
      { to: anvil.token, data: callData(QUIRKY_TOKEN, 'balanceOf(address)', address) },
      'latest',
    ),
  );
const ether = async (address: string): Promise<bigint> => BigInt(await anvil.rpc<string>('eth_getBalance', address, 'latest'));
const sentBy = async (address: string): Promise<number> =>
  Number(await anvil.rpc<string>('eth_getTransactionCount', address, 'latest'));
const payout = async (id: string): Promise<Json> => (await ask('/check_payout', { payout_id: id })).payout as Json;
const request = async (destination: string): Promise<string> =>
  until(async () => {
    const { payout: made } = await ask('/request_payout', { method: 'usdt', amount: '50', destination });
    return (made as Json).id as string;
  }, 'a payout is taken');

beforeAll(async () => {
  anvil = await startAnvil();
  relay = await openNodeRelay(anvil.url, 'eth_sendRawTransaction', ([raw]) => movesTokens(raw) && !passed.has(raw));
  settings = {
    BURSAR_NETWORK: 'regtest',
    BURSAR_ETH_RPC_URL: relay.url,
    BURSAR_USDT_CONTRACT: anvil.token,
    BURSAR_FIXED_RATES: 'ETH=3000.00,USDT=1.00',
    BURSAR_TRUSTED_PROXIES: '127.0.0.1',
  };
  await started();
  const here = { ...settings, BURSAR_DATA_DIR: folder };
  await askCli(['keys', 'init'], here);
  const more = ['--email', 'a@example.com', '--business-name', 'M'];
  await askCli(['merchant', 'add', '--username', shop.username, '--password', shop.password, ...more], here);
  token = (await ask('/auth', shop)).access_token as string;
  const { keys } = await askCli<{ keys: { currency: 'ETH' | 'USDT'; xpub: string }[] }>(['keys', 'show-xpubs'], here);
  const { addresses } = portsFor('regtest', { now: () => Date.now(), steady: () => performance.now() });
  for (const code of ['ETH', 'USDT'] as const) {
    const { xpub } = keys.find(({ currency }) => currency === code) as { xpub: string };
    hot[code] = evmAddressOf(Buffer.from(addresses.ownOf(code, xpub).derive(0).script).toString('hex'));
  }
}, TIMEOUT);
afterAll(async () => {
  relay?.close();
  await service?.stop();
  await anvil?.remove();
  remove();
}, TIMEOUT);

/** No block more than is needed: nothing is signed or sent before the chain has been read to its end. */
async function mineWhatWaits(): Promise<void> {
  const { pending } = await anvil.rpc<{ pending: string }>('txpool_status');
  if (Number(pending) > 0) await anvil.mine(1);
}

/** What is sent next is held before the node has it, and again before its answer is back; whoever sends it is killed both times. Then it passes. */
async function killAround(what: string): Promise<void> {
  for (const mode of ['hold_call', 'hold_answer'] as const) {
    relay.set(mode);
    const held = await until(async () => {
      // ether for its gas goes first, and is seen in a block
      if (mode === 'hold_call') await mineWhatWaits();
      return relay.held();
    }, `${what} is sent (${mode})`);
    for (const name of mode === 'hold_call' ? ['worker', 'signer'] : ['worker']) kill(service.processOf(name));
    if (mode === 'hold_answer') passed.add(held[0]);
    relay.cut();
  }
  await anvil.mine(1);
}

test('kill -9 before the node gets a transaction and before its answer: ether for gas, sweep and payout are each mined once', {
  timeout: TIMEOUT,
}, async () => {
  const order = { amount: '300.00', crypto_selected: 'USDT' };
  const made = await until(async () => ask('/create_transaction', order), 'an address');
  const customer = String(made.wallet_address).toLowerCase();
  relay.set('hold_call');
  await anvil.send(
    { to: anvil.token, input: callData(QUIRKY_TOKEN, 'transfer(address,uint256)', customer, 300_000_000n) },
    { units: 10n ** 15n },
  );
  await anvil.mine(FINAL);
  // nobody knows the address before the service has named it; USDT's has neither ether nor tokens of its own
  await eventually('ether is asked for', () => service.output().includes(`our address ${hot.ETH} has too little ether`), 60_000);
  await anvil.send({ to: hot.ETH, value: 10n ** 19n });
  await anvil.mine(1);
  await killAround('the sweep');
  expect(await units(hot.USDT)).toBe(300_000_000n);
  expect([await sentBy(hot.ETH), await sentBy(customer)]).toEqual([1, 1]);
  const id = await request(PAYEES[0]);
  await killAround('the payout');
  expect(await units(PAYEES[0])).toBe(50_000_000n);
  expect([await sentBy(hot.ETH), await sentBy(hot.USDT)]).toEqual([2, 1]);
  relay.set('pass');
  await anvil.mine(CONFIRMED);
  await until(async () => ((await payout(id)).status === 'completed' ? true : null), 'it is completed');
  expect(await units(PAYEES[0])).toBe(50_000_000n);
  expect(await ether(hot.USDT)).toBeGreaterThan(0n);
});

test('kill -9 of everything once the signer has journalled a payout: it is paid once, and the audit is green', {
  timeout: TIMEOUT,
}, async () => {
  const sent = await sentBy(hot.USDT);
  const journal = new Promise<void>((resolve) => {
    const watcher = watch(join(folder, 'signer'), { recursive: true }, () => {
      watcher.close();
      resolve();
    });
  });
  const id = await request(PAYEES[1]);
  await journal;
  for (const pid of [service.supervisor(), ...['worker', 'signer', 'api'].map(service.processOf), service.postgres()]) kill(pid);
  await service.ended;
  await started();
  token = '';
  token = (await until(() => ask('/auth', shop), 'a sign-in')).access_token as string;
  await until(async () => {
    await mineWhatWaits();
    return (await units(PAYEES[1])) > 0n ? true : null;
  }, 'it is paid');
  await anvil.mine(FINAL);
  await until(async () => ((await payout(id)).status === 'completed' ? true : null), 'it is completed');
  expect([await units(PAYEES[1]), await sentBy(hot.USDT)]).toEqual([50_000_000n, sent + 1]);
  await until(async () => {
    const { out } = await runCli(['audit'], { ...settings, BURSAR_DATA_DIR: folder });
    const red = out.split('\n').filter((line) => /^(red|stopped)/.test(line));
    if (red.length > 0 || !out.includes('INV-12')) throw new Error(red.join('; ') || out);
    return true;
  }, 'the audit is green');
});
