// The environment as the service reads it: all errors are reported at once, one line each, and .env.example names every variable.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { expect, test } from 'vitest';
import { envExample } from '../../src/main/config/env-example.ts';
import { readConfig, readConfigOfAll, readSignerSecrets } from '../../src/main/config/read-config.ts';
import { TABLE, VARIABLES } from '../../src/main/config/variables.ts';

function problems(environment: Record<string, string>): string[] {
  try {
    readConfig(environment);
  } catch (error) {
    return (error as Error).message.split('\n');
  }
  return [];
}

test('.env.example is what the table of variables says', async () => {
  await expect(envExample()).toMatchFileSnapshot('../../.env.example');
});

test('.env.example taken as .env changes nothing', () => {
  const BURSAR_ENV_FILE = resolve(import.meta.dirname, '../../.env.example');
  expect({ ...readConfig({ BURSAR_ENV_FILE }), envFile: null }).toEqual(readConfig({}));
});

test('every default is accepted by its own variable, and nothing has to be set', () => {
  expect(problems({})).toEqual([]);
  for (const { read, fallback } of TABLE) if (fallback !== null) expect(() => read(fallback)).not.toThrow();
});

test('every setting that is not said to be unused is read somewhere', () => {
  const root = resolve(import.meta.dirname, '../..');
  const code = ['src', 'scripts']
    .flatMap((folder) =>
      readdirSync(join(root, folder), { recursive: true, encoding: 'utf8' }).map((name) => `${folder}/${name}`),
    )
    .filter((name) => /\.(ts|sh)$/.test(name) && name !== 'src/main/config/variables.ts')
    .map((name) => readFileSync(join(root, name), 'utf8'))
    .join('\n');
  const isRead = (key: string) =>
    new RegExp(`\\.${key}\\b|\\{[^{}]*\\b${key}\\b[^{}]*\\}(?: =|: )|VARIABLES\\.${key}\\b`).test(code) || key.endsWith('RpcUrl');
  const unread = Object.entries(VARIABLES).filter(
    ([key, row]) => row.unused === null && !isRead(key) && !code.includes(row.name),
  );
  expect(unread.map(([, row]) => row.name)).toEqual([]);
});

test('an unknown BURSAR_ variable is refused and the nearest known one named', () => {
  expect(problems({ BURSAR_NETWROK: 'sandbox' })).toEqual([
    'BURSAR_NETWROK is not a variable of Bursar; the nearest known one is BURSAR_NETWORK',
  ]);
  expect(problems({ BURSAR_BTC_RPC: 'x' })[0]).toContain('BURSAR_BTC_RPC_URL');
  expect(problems({ BURSAR_X: '1' })[0]).toMatch(/the nearest known one is BURSAR_\w+$/);
  expect(problems({ BURSAR_PORT: '1' })[0]).toMatch(/the nearest known one is PORT$/);
  expect(problems({ BURSARY: 'x', OTHER: 'y' })).toEqual([]);
});

test('all problems are reported at once', () => {
  const found = problems({
    PORT: '70000',
    BURSAR_FEE_BPS: '-1',
    BURSAR_NETWORK: 'main',
    BURSAR_TRUSTED_PROXIES: '10.0.0.0/99',
    BURSAR_TYPO: '1',
  });
  expect(found).toHaveLength(5);
  expect(found.join('\n')).toMatch(/PORT.*0 to 65535/);
  expect(found.join('\n')).toMatch(/BURSAR_NETWORK.*sandbox, regtest, testnet, mainnet/);
});

test('a secret is never printed, and may come from a file', () => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-secret-'));
  try {
    const file = join(folder, 'password');
    writeFileSync(file, 'from-a-file-123\n');
    expect(readConfig({ BURSAR_DEMO_PASSWORD_FILE: file }).demoPassword).toBe('from-a-file-123');
    expect(problems({ BURSAR_DEMO_PASSWORD_FILE: file, BURSAR_DEMO_PASSWORD: 'both-are-set-12' })[0]).toContain('both set');
    expect(problems({ BURSAR_BTC_RPC_URL: 'ftp://user:hunter2@host' }).join()).not.toContain('hunter2');
    expect(problems({ DATABASE_URL_FILE: join(folder, 'missing') })[0]).toContain('cannot be read');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
});

test('a database may be named in the form of libpq, with the folder of its socket and no host', () => {
  const read = (DATABASE_URL: string) => readConfig({ DATABASE_URL }).databaseUrl;
  expect(read('postgresql://user:pw@/db?host=/socket')).toBe('postgresql://user:pw@localhost/db?host=/socket');
  expect(read('postgres:///db?host=/socket')).toBe('postgres:///db?host=/socket');
  expect(read('postgresql://user:pw@host/db')).toBe('postgresql://user:pw@host/db');
});

test('what belongs to the signer is read by the signer only, and who starts it is told early what is wrong', () => {
  const missing = { BURSAR_SIGNER_PASSPHRASE_FILE: join(tmpdir(), 'bursar-no-such-file') };
  const short = { BURSAR_SIGNER_PASSPHRASE: 'short' };
  const given = { BURSAR_SIGNER_PASSPHRASE: 'opens the seed' };
  expect(readConfig(given)).not.toHaveProperty('signerPassphrase');
  expect(Object.values(readConfigOfAll(given))).not.toContain('opens the seed');
  expect(readSignerSecrets(given).signerPassphrase).toBe('opens the seed');
  for (const wrong of [missing, short, { ...missing, ...given }]) {
    expect(problems(wrong)).toEqual([]);
    for (const read of [readConfigOfAll, readSignerSecrets])
      expect(() => read(wrong)).toThrow(/^BURSAR_SIGNER_PASSPHRASE[^\n]*(cannot be read|12 to 128|both set)[^\n]*$/);
  }
});

test('a currency may have several nodes, separated by commas', () => {
  const two = 'http://a:b%2C@one:8332, http://a:b@two:8332/wallet/x';
  expect(readConfig({ BURSAR_BTC_RPC_URL: two }).btcRpcUrl).toEqual(['http://a:b%2C@one:8332', 'http://a:b@two:8332/wallet/x']);
  expect(readConfig({}).btcRpcUrl).toBeNull();
  expect(problems({ BURSAR_BTC_RPC_URL: 'http://u:hunter2@one,two' })).toEqual([
    expect.stringMatching(/BURSAR_BTC_RPC_URL.*http/),
  ]);
  expect(problems({ BURSAR_BTC_RPC_URL: 'http://u:hunter2@one,http://u:hunter2@one' }).join()).not.toContain('hunter2');
  expect(readConfig({}).contestedLimitMinor).toBe(1_000_00n);
});

test('price sources are named once each, with another address where they are asked elsewhere', () => {
  const read = (BURSAR_RATE_SOURCES: string) => readConfig({ BURSAR_RATE_SOURCES }).rateSources;
  expect(read('kraken, coinbase=https://proxy.example.org/coinbase')).toEqual({
    kraken: 'https://api.kraken.com',
    coinbase: 'https://proxy.example.org/coinbase',
  });
  for (const wrong of [
    'kraken',
    'kraken,kraken',
    'kraken,mtgox',
    'kraken,coinbase=ftp://x',
    'kraken,coinbase=',
    'a=b,kraken',
    ''.padEnd(3, ','),
  ])
    expect(problems({ BURSAR_RATE_SOURCES: wrong }), wrong).toEqual([
      expect.stringMatching(
        /^BURSAR_RATE_SOURCES: .* accepted is two or more of kraken, coinbase, bitstamp, bitfinex, separated by commas/,
      ),
    ]);
});

test('on mainnet every currency with a node has three live sources that nobody on the way can change', () => {
  const mainnet = { BURSAR_NETWORK: 'mainnet', BURSAR_DASH_RPC_URL: 'http://u:p@localhost:1' };
  const sources = (BURSAR_RATE_SOURCES: string) => problems({ ...mainnet, BURSAR_RATE_SOURCES });
  expect(sources('kraken,coinbase,bitfinex')).toEqual([]);
  expect(sources('kraken,coinbase,bitstamp')).toEqual([
    'BURSAR_RATE_SOURCES: DASH is traded by 2 of them only; accepted on mainnet are 3 or more for each currency',
  ]);
  expect(sources('kraken,coinbase=http://127.0.0.1:9/c,bitfinex=https://proxy.example.org')).toEqual([]);
  expect(sources('kraken,coinbase,bitfinex=http://proxy.example.org')).toEqual([
    'BURSAR_RATE_SOURCES: bitfinex=http://proxy.example.org is not accepted on mainnet; accepted is https, or http on this machine',
  ]);
});

test('prices are fixed by hand only where currencies are worth nothing', () => {
  const fixed = (BURSAR_FIXED_RATES: string, rest: Record<string, string> = { BURSAR_NETWORK: 'regtest' }) => ({
    BURSAR_FIXED_RATES,
    ...rest,
  });
  expect(readConfig(fixed('BTC=65000, doge = 0.16000001')).fixedRates).toEqual({ BTC: 6_500_000_000_000n, DOGE: 16_000_001n });
  for (const wrong of ['BTC', 'BTC=', 'BTC=0', 'BTC=-1', 'BTC=1e5', 'BTC=1.123456789', 'XMR=1', 'BTC=1,BTC=2', 'BTC=1=2'])
    expect(problems(fixed(wrong)), wrong).toEqual([
      expect.stringMatching(/^BURSAR_FIXED_RATES: .* accepted is a list such as BTC=65000\.00,USDT=1\.00/),
    ]);
  expect(problems(fixed('BTC=65000', { BURSAR_NETWORK: 'mainnet' }))).toEqual([
    'BURSAR_FIXED_RATES is accepted on regtest and testnet only: on mainnet a price comes from live exchanges',
  ]);
  expect(problems(fixed('BTC=65000', {}))).toEqual([
    'BURSAR_FIXED_RATES is accepted on regtest and testnet only: in the sandbox POST /sandbox/rates sets prices',
  ]);
  expect(problems(fixed('BTC=65000', { BURSAR_NETWORK: 'testnet', BURSAR_RATE_SOURCES: 'kraken,coinbase' }))).toEqual([
    'BURSAR_FIXED_RATES and BURSAR_RATE_SOURCES are both set: set one of them',
  ]);
});

test('dollars become cents, and an empty variable counts as not set', () => {
  expect(readConfig({ BURSAR_UNFINAL_PAYOUT_USD: '10000.5' }).unfinalPayoutMinor).toBe(1_000_050n);
  expect(readConfig({ BURSAR_EXPOSURE_USD: '250000' }).exposureMinor).toBe(25_000_000n);
  expect(readConfig({}).exposureMinor).toBeNull();
  expect(readConfig({ BURSAR_UNFINAL_PAYOUT_USD: '', PORT: '' }).port).toBe(8080);
});

test('limits of the signer are read in whole units, and anything else is refused', () => {
  const limits = (BURSAR_SIGNER_LIMITS: string) => readConfig({ BURSAR_SIGNER_LIMITS }).signerLimits;
  expect(limits('BTC:payout=1,hour=5.5,day=20; doge : day=100000')).toEqual({
    BTC: { payout: 100_000_000n, hour: 550_000_000n, day: 2_000_000_000n },
    DOGE: { payout: null, hour: null, day: 10_000_000_000_000n },
  });
  expect(limits('BTC:day=0')).toEqual({ BTC: { payout: null, hour: null, day: 0n } });
  expect(limits('USDT:day=1.5')).toEqual({ USDT: { payout: null, hour: null, day: 1_500_000n } });
  for (const wrong of [
    'BTC',
    'BTC:',
    'BTC:week=1',
    'BTC:day=-1',
    'BTC:day=1,day=2',
    'BTC:day=0.000000001',
    'BTC:day=1;BTC:day=2',
    'XMR:day=1',
    'BTC-LN:day=1',
    'BTC:day=1:hour=2',
  ]) {
    expect(problems({ BURSAR_SIGNER_LIMITS: wrong })).toEqual([
      expect.stringMatching(/^BURSAR_SIGNER_LIMITS: .* accepted is limits such as BTC:payout=1,hour=5,day=20 in whole units/),
    ]);
  }
});

test('a bank needs its folder, how it knows us and a key, all three outside the sandbox', () => {
  const origin = 'routing=091000019; name=Wells Fargo Bank;company_id=1234567890;company=Example = Inc';
  const bank = { BURSAR_BANK_DIR: '/bank', BURSAR_BANK_ORIGIN: origin, BURSAR_BANK_KEY: 'aF'.repeat(32) };
  const read = readConfig({ BURSAR_NETWORK: 'regtest', ...bank });
  expect(read.bankOrigin).toEqual({
    bankRouting: '091000019',
    bankName: 'Wells Fargo Bank',
    companyId: '1234567890',
    companyName: 'Example = Inc',
  });
  expect(Buffer.from(read.bankKey ?? []).toString('hex')).toBe('af'.repeat(32));
  const { BURSAR_BANK_KEY: _, ...without } = bank;
  expect(problems({ BURSAR_NETWORK: 'regtest', ...without })).toEqual([
    expect.stringMatching(/^BURSAR_BANK_KEY must be set too/),
  ]);
  expect(problems({ ...without })).toEqual([]);
  for (const wrong of [origin.replace('019', '018'), origin.replace('1234567890', '123'), origin.slice(0, 40), `${origin};x=y`])
    expect(problems({ BURSAR_BANK_ORIGIN: wrong })).toEqual([
      expect.stringMatching(/^BURSAR_BANK_ORIGIN: .* accepted is routing=/),
    ]);
  expect(problems({ BURSAR_BANK_KEY: 'secret' })).toEqual([expect.not.stringContaining('"secret"')]);
});

test('on mainnet USDT is one contract, and every other is refused by name', () => {
  const refusal =
    'BURSAR_USDT_CONTRACT is not accepted on mainnet; accepted is 0xdAC17F958D2ee523a2206206994597C13D831ec7, or nothing';
  const on = (network: string, contract: string) => problems({ BURSAR_NETWORK: network, BURSAR_USDT_CONTRACT: contract });
  const other = '0x5FbDB2315678afecb367f032d93F642f64180aa3';
  expect(on('mainnet', other)).toContain(refusal);
  expect(on('mainnet', '0xdAC17F958D2ee523a2206206994597C13D831ec7')).not.toContain(refusal);
  expect(on('mainnet', '0xdac17f958d2ee523a2206206994597c13d831ec7')).not.toContain(refusal);
  expect(on('regtest', other)).not.toContain(refusal);
});
