// `bursar config check --nodes`: what it asks, what it reports of each, and what would stop a start.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { macaroonIdentifier, writeMacaroon } from '../../src/core/lightning/macaroon.ts';
import { RECEIVING } from '../../src/outside/lightning/lnd.ts';
import { PAYING } from '../../src/outside/lightning/lnd-payer.ts';
import { startBitcoind } from '../support/bitcoind.ts';
import { freePort } from '../support/core-daemon.ts';
import { type SimulatedEngine, simulatedEngine } from '../support/lightning-engines.ts';
import { freshDatabase } from '../support/postgres.ts';
import { askCli, runCli } from './run.ts';

vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });
type Checked = { ok: boolean; file: string | null; checks: { what: string; ok: boolean; stops: boolean; says: string }[] };
let bitcoind: Awaited<ReturnType<typeof startBitcoind>>;
let folder: string;
beforeAll(async () => {
  bitcoind = await startBitcoind();
  await bitcoind.mine(3);
  folder = mkdtempSync(join(tmpdir(), 'bursar-check-'));
});
afterAll(async () => {
  await bitcoind.remove();
  rmSync(folder, { recursive: true, force: true });
});
const of = ({ checks }: Checked, what: RegExp) =>
  checks.filter((one) => what.test(one.what)).map(({ ok, stops, says }) => ({ ok, stops, says }));

test('on regtest what is wrong is reported, and nothing of it stops a start', async () => {
  const database = await freshDatabase();
  const port = await freePort();
  const file = join(folder, 'settings');
  const lines = [
    'BURSAR_NETWORK=regtest',
    `DATABASE_URL=${database.url}`,
    `BURSAR_BTC_RPC_URL=${bitcoind.url}`,
    `BURSAR_LTC_RPC_URL=http://u:p@127.0.0.1:${port}`,
    'BURSAR_FIXED_RATES=BTC=65000.00',
  ];
  writeFileSync(file, lines.join('\n'), { mode: 0o600 });
  chmodSync(file, 0o644);
  const here = { BURSAR_ENV_FILE: file, BURSAR_DATA_DIR: join(folder, 'regtest') };
  const checked = await askCli<Checked>(['config', 'check', '--nodes'], here);
  expect(checked).toMatchObject({ ok: true, file });
  expect(of(checked, /^database/)).toEqual([
    { ok: true, stops: false, says: expect.stringMatching(/^PostgreSQL \S+ of DATABASE_URL, schema up to date$/) },
  ]);
  expect(of(checked, /^BTC node/)).toEqual([
    { ok: true, stops: false, says: 'regtest, synced to block 3, 0 peers, not pruned; txindex is not needed' },
  ]);
  expect(of(checked, /^LTC node/)).toEqual([
    { ok: false, stops: false, says: expect.stringMatching(new RegExp(`^down: .*${port}.*ECONNREFUSED`)) },
  ]);
  expect(of(checked, /^price source fixed/)).toEqual([{ ok: true, stops: false, says: 'BTC 65000.00; none of LTC' }]);
  expect(of(checked, /settings$/)).toEqual([
    { ok: false, stops: false, says: 'mode 644: others can read or change this secret; chmod 600 it' },
  ]);
  expect(of(checked, /^seed/)).toEqual([
    { ok: false, stops: false, says: expect.stringMatching(/^none yet: make it with "bursar keys init"/) },
  ]);
  await database.drop();
});

test('on mainnet a foreign node, a foreign database and a missing or closed seed stop a start', async () => {
  const database = await freshDatabase();
  const data = join(folder, 'mainnet');
  const mainnet = {
    BURSAR_NETWORK: 'mainnet',
    BURSAR_DATA_DIR: data,
    BURSAR_BTC_RPC_URL: bitcoind.url,
    DATABASE_URL: database.url,
  };
  const rates = { BURSAR_RATE_SOURCES: ['kraken', 'coinbase', 'bitfinex'].map((name) => `${name}=http://127.0.0.1:1`).join(',') };
  const given = { ...mainnet, ...rates, BURSAR_SIGNER_PASSPHRASE: 'a passphrase for the seed' };
  const before = JSON.parse((await runCli(['config', 'check', '--nodes', '--json'], given)).out) as Checked;
  expect(before.ok).toBe(false);
  expect(of(before, /^BTC node/)).toEqual([
    { ok: false, stops: true, says: expect.stringMatching(/^wrong_network: .*mainnet begins with/) },
  ]);
  expect(of(before, /^seed/)).toMatchObject([{ ok: false, stops: true }]);
  expect(of(before, /^price source kraken/)).toEqual([{ ok: false, stops: false, says: '127.0.0.1:1: ECONNREFUSED' }]);
  await askCli(['keys', 'init'], given);
  const after = await runCli(['config', 'check', '--nodes'], { ...given, BURSAR_BTC_RPC_URL: '' });
  expect(after).toMatchObject({ code: 0, out: expect.stringMatching(/^ok {5}seed: opens; accounts of BTC, /m) });
  expect(after.out).toContain(`ok     ${join(data, 'signer', 'seed.json')}: mode 600`);
  expect(after.out).toMatch(/^wrong {2}limits of the signer: none: on mainnet no payout is signed without/m);
  expect(after.out).not.toContain('The configuration is right.');
  const limited = { ...given, BURSAR_BTC_RPC_URL: '', BURSAR_SIGNER_LIMITS: 'BTC:payout=0.5,day=2;USDT:day=100' };
  const within = await runCli(['config', 'check', '--nodes'], limited);
  expect(within.out).toMatch(/^ok {5}limits of the signer: payouts are signed in BTC$/m);
  expect(within.out).toMatch(/^BURSAR_SIGNER_LIMITS=BTC:payout=0.50000000,day=2.00000000;USDT:day=100.000000$/m);
  expect(within.out).toMatch(/^wrong {2}limits of the signer: USDT without ETH: gas counts for the limits of ETH/m);
  const closed = await runCli(['config', 'check', '--nodes'], { ...given, BURSAR_SIGNER_PASSPHRASE: 'another passphrase' });
  expect(closed).toMatchObject({ code: 1, out: expect.stringMatching(/^STOPS {2}seed: .*does not open/m) });
  expect(closed.out.trim().split('\n').at(-1)).toBe('Something would stop a start.');
  const foreign = await runCli(['config', 'check', '--nodes'], { ...given, BURSAR_NETWORK: 'testnet', BURSAR_RATE_SOURCES: '' });
  expect(foreign.out).toMatch(/^STOPS {2}database: it belongs to mainnet, but BURSAR_NETWORK is testnet$/m);
  await database.drop();
});

test('in the sandbox there is nothing to ask before the first start, and nothing is made', async () => {
  const data = join(folder, 'sandbox');
  const checked = await askCli<Checked>(['config', 'check', '--nodes'], { BURSAR_DATA_DIR: data });
  expect(checked.checks.map(({ what, ok }) => [what, ok])).toEqual([
    ['database', true],
    ['nodes and price sources', true],
    ['seed', true],
  ]);
});

/** As LND bakes it, but for the signature, which is nobody's business here. */
function macaroonFor(methods: readonly string[], entity = 'uri'): string {
  const operations = methods.map((action) => ({ entity, actions: [action] }));
  const identifier = macaroonIdentifier(new Uint8Array(16), operations);
  return Buffer.from(writeMacaroon({ location: 'lnd', identifier, caveats: [], signature: new Uint8Array(32) })).toString('hex');
}

describe('the Lightning node', () => {
  let engine: SimulatedEngine;
  let database: Awaited<ReturnType<typeof freshDatabase>>;
  beforeAll(async () => {
    engine = await simulatedEngine();
    database = await freshDatabase();
    writeFileSync(join(folder, 'lnd.cert'), engine.target().certificate ?? '');
  });
  afterAll(async () => {
    await database.drop();
    await engine.close();
  });
  /** What is said of the macaroons, or of what is named otherwise. */
  async function check(receiving: string, paying: string, what = /^macaroon/) {
    const given = {
      BURSAR_NETWORK: 'regtest',
      BURSAR_FIXED_RATES: 'BTC=65000.00',
      BURSAR_DATA_DIR: join(folder, 'lightning'),
      DATABASE_URL: database.url,
      BURSAR_LND_URL: engine.target().url,
      BURSAR_LND_CERT: join(folder, 'lnd.cert'),
      BURSAR_LND_MACAROON: receiving,
      BURSAR_LND_PAY_MACAROON: paying,
    };
    return of(await askCli<Checked>(['config', 'check', '--nodes'], given), what);
  }
  const said = (ok: boolean, text: string) => ({ ok, stops: false, says: expect.stringContaining(text) });

  test('what its macaroons permit is read from them: too little, too much, exactly that', async () => {
    const [lookUp, track] = ['/lnrpc.Lightning/LookupInvoice', '/routerrpc.Router/TrackPaymentV2'];
    const without = (all: readonly string[], one: string) => macaroonFor(all.filter((method) => method !== one));
    expect(await check(macaroonFor(RECEIVING), macaroonFor(PAYING))).toEqual([
      said(true, 'it permits receiving and nothing else'),
      said(true, 'it permits paying and nothing else'),
    ]);
    expect(await check(without(RECEIVING, lookUp), without(PAYING, track))).toEqual([
      said(
        false,
        `it does not permit ${lookUp}; bake one that permits exactly this: lncli bakemacaroon uri:/lnrpc.Lightning/GetInfo`,
      ),
      said(false, `it does not permit ${track}; `),
    ]);
    const spends = '/lnrpc.Lightning/SendCoins';
    expect(await check(macaroonFor([...RECEIVING, spends]), macaroonFor(['write', 'read'], 'offchain'))).toEqual([
      said(false, `it permits more than receiving needs (${spends})`),
      said(false, 'it permits more than paying needs (offchain:write, offchain:read)'),
    ]);
    expect(await check('00ff', macaroonFor(PAYING))).toEqual([
      said(false, 'it is no macaroon of LND'),
      said(true, 'it permits paying and nothing else'),
    ]);
  });

  test('one that does not permit what the node is asked for here hides nothing of what is said', async () => {
    const [channels, track] = ['/lnrpc.Lightning/ListChannels', '/routerrpc.Router/TrackPaymentV2'];
    const [receiving, paying] = [RECEIVING, PAYING].map((all) =>
      engine.bake(all.filter((one) => ![channels, track].includes(one))),
    );
    expect(await check(receiving ?? '', paying ?? '', /Lightning/)).toEqual([
      said(false, 'permission denied (/v1/channels)'),
      said(false, `it does not permit ${channels}; `),
      said(false, `it does not permit ${channels}, ${track}; `),
    ]);
  });

  test('one that pays and that another node has made, or that was revoked, is told', async () => {
    expect(await check(engine.bake(RECEIVING), engine.bake(PAYING))).toEqual([said(true, 'permits'), said(true, 'permits')]);
    expect(await check(engine.bake(RECEIVING), macaroonFor(PAYING))).toEqual([
      said(true, 'it permits receiving and nothing else'),
      said(false, 'verification failed'),
    ]);
  });

  test('a file that is not there hides nothing of the other', async () => {
    const there = engine.bake(PAYING);
    expect(await check('/not/there', there, /Lightning/)).toEqual([
      said(false, 'BURSAR_LND_MACAROON: the file that it names cannot be read (ENOENT)'),
      said(false, 'BURSAR_LND_MACAROON: the file that it names cannot be read (ENOENT)'),
      said(true, 'it permits paying and nothing else'),
    ]);
    expect(await check(engine.bake(RECEIVING), '/not/there')).toEqual([
      said(true, 'it permits receiving and nothing else'),
      said(false, 'BURSAR_LND_PAY_MACAROON: the file that it names cannot be read (ENOENT)'),
    ]);
  });
});
