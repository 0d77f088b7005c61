import { mkdtempSync, readFileSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { validateMnemonic } from '@scure/bip39';
import { wordlist } from '@scure/bip39/wordlists/english.js';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { account } from '../keys/vectors.ts';
import { freshDatabase } from '../support/postgres.ts';
import { askCli, type Environment, runCli, startCli } from './run.ts';

// each command is a process of its own
vi.setConfig({ testTimeout: 90_000 });

let database: Awaited<ReturnType<typeof freshDatabase>>;
let folder: string;
let here: Environment;
beforeAll(async () => {
  database = await freshDatabase();
  folder = mkdtempSync(join(tmpdir(), 'bursar-cli-'));
  here = { DATABASE_URL: database.url, BURSAR_DATA_DIR: folder, BURSAR_NETWORK: 'regtest' };
});
afterAll(async () => {
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});
const count = async (text: string): Promise<number> => Number((await database.db.query<{ n: bigint }>({ text })).rows[0]?.n);

describe('merchants and users', () => {
  it('are made with credentials that are shown once', async () => {
    const shop = ['merchant', 'add', '--username', 'shop', '--email', 'shop@example.com', '--business-name', 'Shop & Söhne'];
    const made = await askCli<Record<string, string>>([...shop, '--password', 'correct horse battery'], here);
    expect(made).toEqual({
      affiliate_id: expect.stringMatching(/^aff_[0-9A-Za-z]{22}$/),
      username: 'shop',
      password: 'correct horse battery',
    });

    const again = await runCli([...shop, '--json'], here);
    expect(again.code).toBe(1);
    expect(JSON.parse(again.err)).toEqual({
      error: 'invalid_request',
      message: '--username: username shop is taken.',
      param: 'username',
    });

    const user = ['user', 'add', '--merchant', made.affiliate_id!, '--username', 'till', '--scopes', 'read,payments'];
    const till = await askCli<{ password: string; scopes: string[] }>(user, here);
    expect(till.scopes).toEqual(['read', 'payments']);
    expect(till.password).toMatch(/^[\w-]{24}$/);
    expect(await askCli(['user', 'set', '--username', 'till', '--scopes', 'read'], here)).toEqual({
      username: 'till',
      changed: ['scopes'],
    });
    expect((await runCli(['user', 'set', '--username', 'till'], here)).err).toMatch(
      /^bursar: --password: Name a new password, new scopes, or both/,
    );
    expect((await runCli(['user', 'set', '--username', 'nobody', '--password', 'x'.repeat(12)], here)).err).toMatch(
      /^bursar: --username: There is no user/,
    );

    expect(await askCli(['merchant', 'suspend', made.affiliate_id!], here)).toEqual({
      affiliate_id: made.affiliate_id,
      suspended: true,
    });
    expect(await count('select count(*) as n from merchants where suspended_at is not null')).toBe(1);
    expect(await askCli(['merchant', 'list'], here)).toEqual({
      data: [
        {
          affiliate_id: made.affiliate_id,
          business_name: 'Shop & Söhne',
          email: 'shop@example.com',
          created_at: expect.stringMatching(/^\d{4}-.*Z$/),
          suspended_at: expect.stringMatching(/^\d{4}-.*Z$/),
          users: [
            { username: 'shop', scopes: ['read', 'payments', 'payouts'] },
            { username: 'till', scopes: ['read'] },
          ],
        },
      ],
    });
    expect(await askCli(['merchant', 'resume', made.affiliate_id!], here)).toEqual({
      affiliate_id: made.affiliate_id,
      suspended: false,
    });
    expect(await count('select count(*) as n from merchants where suspended_at is not null')).toBe(0);
  });

  it('refuse what is not acceptable, and leave nothing behind', async () => {
    const before = await count('select count(*) as n from merchants');
    const right = { username: 'm', password: 'long enough password', email: 'a@example.com', 'business-name': 'M' };
    const add = (over: Environment) => {
      const options = Object.entries({ ...right, ...over }).flatMap(([name, value]) => [`--${name}`, value]);
      return runCli(['merchant', 'add', ...options], here);
    };
    const [password, email, name, username, unknown] = await Promise.all([
      add({ password: 'x'.repeat(129) }),
      add({ email: 'nobody' }),
      add({ 'business-name': ' ' }),
      add({ username: 'two words' }),
      runCli(['merchant', 'suspend', 'aff_unknown'], here),
    ]);
    expect(password).toMatchObject({ code: 1, err: expect.stringMatching(/^bursar: --password: /) });
    expect(email).toMatchObject({ code: 1, err: expect.stringMatching(/^bursar: --email: /) });
    expect(name).toMatchObject({ code: 1, err: expect.stringMatching(/^bursar: --business-name: /) });
    expect(username).toMatchObject({ code: 1, err: expect.stringMatching(/^bursar: --username: /) });
    expect(unknown).toMatchObject({ code: 1, err: expect.stringMatching(/affiliate_id/) });
    expect(await count('select count(*) as n from merchants')).toBe(before);
  });
});

describe('the books', () => {
  it('are green when nothing has happened, and empty lists are lists', async () => {
    const audit = await askCli<{ ok: boolean; invariants: { id: string; ok: boolean }[] }>(['audit'], here);
    expect(audit.ok).toBe(true);
    expect(audit.invariants.map((one) => one.id)).toContain('KEY-7');
    for (const invariant of audit.invariants) expect(invariant).toMatchObject({ ok: true });
    expect(await askCli(['review', 'list'], here)).toEqual({ data: [] });
    expect(await askCli(['migrate'], here)).toEqual({ applied: [] });
    expect((await runCli(['audit'], here)).out).toMatch(/All \d+ invariants are green\.\n$/);
  });

  it('turn red, with exit code 1, when an address is not ours', async () => {
    await database.db.query({
      text: `insert into merchants (affiliate_id, email, business_name, created_at) values ('aff_red', 'r@example.com', 'Red', now())`,
    });
    await database.db.query({
      text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
               address, script, address_index, created_at, window_ends_at)
             select 'txn_red', id, 'BTC', 'started', 100, 1000, 1, now(), '[]', 100, 'accept', 'bcrt1qnotours', '\\x0014', 0, now(), now() from merchants limit 1`,
    });
    const { ok, invariants } = await askCli<{ ok: boolean; invariants: { id: string; ok: boolean; findings: string[] }[] }>(
      ['audit'],
      here,
      1,
    );
    expect(ok).toBe(false);
    const finding = 'txn_red: no key of BTC gives bcrt1qnotours';
    expect(invariants.find((one) => one.id === 'KEY-7')).toMatchObject({ ok: false, findings: [finding] });
    expect((await runCli(['audit'], here)).out).toMatch(/red {4}KEY-7.*\n.*txn_red/);
    const { breakers } = await askCli<{ breakers: object[] }>(['chain', 'status'], here, 1);
    expect(breakers).toEqual([expect.objectContaining({ name: 'payouts', tripped_by: expect.arrayContaining(['KEY-7']) })]);
    expect((await runCli(['chain', 'status'], here)).out).toMatch(/^stopped {2}payouts since .*KEY-7/m);
    expect(await runCli(['keys', 'verify'], here)).toMatchObject({ code: 1, out: expect.stringContaining(finding.slice(9)) });
    await database.db.query({ text: "delete from transactions where id = 'txn_red'" });
  });

  it('say what waits for a decision and what cannot be decided', async () => {
    expect(await runCli(['review', 'accept', 'txn_none'], here)).toMatchObject({
      code: 1,
      err: 'bursar: transaction_id: There is no such transaction.\n',
    });
    expect(await runCli(['review', 'decline', 'txn_none', '--json'], here)).toMatchObject({
      code: 1,
      err: expect.stringContaining('"transaction_not_found"'),
    });
  });

  it('say that no worker has looked at a node yet', async () => {
    expect(await askCli(['chain', 'status'], here, 1)).toMatchObject({ chains: [] });
  });
});

describe('keys', () => {
  const words = (text: string) => text.split('\n').find((line) => line.split(' ').length === 24) ?? '';

  it('are made once: 24 words are shown, and never again', async () => {
    expect((await runCli(['keys', 'show-xpubs'], here)).out).toMatch(/No keys yet/);
    const made = await runCli(['keys', 'init'], here);
    expect(made.code).toBe(0);
    expect(validateMnemonic(words(made.out), wordlist)).toBe(true);
    const again = await runCli(['keys', 'init'], here);
    expect(again).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^bursar: there is a seed in .* never overwritten/),
    });
    for (const name of ['seed.json', 'passphrase'])
      expect(readFileSync(join(folder, 'signer', name), 'utf8')).not.toContain(words(made.out));

    const { keys } = await askCli<{ keys: { currency: string; path: string; xpub: string; first_address: string }[] }>(
      ['keys', 'show-xpubs'],
      here,
    );
    expect(keys.map((key) => [key.currency, key.path])).toEqual([
      ['BTC', "m/84'/1'/0'"],
      ['LTC', "m/84'/1'/2'"],
      ['ETH', "m/44'/1'/60'"],
      ['BCH', "m/44'/1'/145'"],
      ['DASH', "m/44'/1'/5'"],
      ['DOGE', "m/44'/1'/3'"],
      ['USDT', "m/44'/1'/61'"],
    ]);
    expect(keys[0]).toMatchObject({ first_address: expect.stringMatching(/^bcrt1q/), xpub: expect.stringMatching(/^tpub/) });
    expect(await askCli(['keys', 'verify'], here)).toMatchObject({ ok: true, addresses: { checked: 0, wrong: [] } });
  });

  it('kept elsewhere are taken as public keys only', async () => {
    const own = account('BTC', 'regtest');
    const importing = (currency: string, xpub: string) =>
      runCli(['keys', 'import-xpub', '--currency', currency, '--xpub', xpub], here);
    const [secret, foreign, deep, broken] = await Promise.all([
      importing('BTC', own.privateExtendedKey),
      importing('BTC', account('BTC').publicExtendedKey),
      importing('BTC', own.deriveChild(0).publicExtendedKey),
      importing('BTC', 'tpub'),
    ]);
    expect(secret).toMatchObject({
      code: 1,
      out: '',
      err: expect.stringMatching(/^bursar: --xpub is a PRIVATE key\. It was not stored/),
    });
    expect(secret.err).not.toContain(own.privateExtendedKey.slice(0, 12));
    expect(foreign.err).toMatch(/--xpub is a xpub of mainnet, but this is regtest: accepted are tpub/);
    expect(deep.err).toMatch(/--xpub is of depth 4: accepted is an account's key/);
    expect(broken.err).toMatch(/--xpub is not an extended public key/);

    const args = ['keys', 'import-xpub', '--currency', 'btc', '--xpub', own.publicExtendedKey];
    expect(await askCli(args, here)).toMatchObject({ currency: 'BTC', outcome: 'replaced', next_index: 0 });
    expect(await askCli(args, here)).toMatchObject({ outcome: 'in_use' });
    expect((await importing('LTC', own.publicExtendedKey)).err).toMatch(/--xpub serves BTC already/);
    const { keys } = await askCli<{ keys: { verdict: string; currency: string; in_use: boolean }[] }>(['keys', 'verify'], here);
    expect(keys.filter((key) => key.currency === 'BTC')).toEqual([
      { currency: 'BTC', in_use: false, origin: 'signer', verdict: 'confirmed' },
      { currency: 'BTC', in_use: true, origin: 'imported', verdict: 'imported' },
    ]);
  });

  it('that were changed in the database are found, and nothing is derived from them', async () => {
    const thief = account('DOGE', 'regtest').deriveChild(9).publicExtendedKey;
    await database.db.query({ text: "update account_xpubs set xpub = $1 where currency = 'LTC'", values: [thief] });
    const ran = await runCli(['keys', 'verify'], here);
    expect(ran.code).toBe(1);
    expect(ran.out).toMatch(/mismatch {2}LTC/);
    expect(ran.err).toMatch(/account keys of LTC that this signer's seed does not give/);
    expect(await count("select count(*) as n from account_xpubs where currency = 'LTC' and confirmed_at is null")).toBe(1);
  });

  it('of a seed that is gone are not replaced behind the back of the database', async () => {
    await rm(join(folder, 'signer'), { recursive: true });
    expect(await runCli(['keys', 'init'], here)).toMatchObject({
      code: 1,
      err: expect.stringMatching(/a seed that is not in .*put that seed\.json back/),
    });
  });

  it('are confirmed by a signer that runs alone, until it is stopped', async () => {
    const other = await freshDatabase();
    const elsewhere = mkdtempSync(join(tmpdir(), 'bursar-cli-'));
    const alone = { DATABASE_URL: other.url, BURSAR_DATA_DIR: elsewhere };
    const { child, ended } = startCli(['signer', '--json'], alone);
    try {
      const line = await new Promise<string>((resolve) =>
        child.stdout?.once('data', (text: Buffer | string) => resolve(String(text))),
      );
      expect(JSON.parse(line)).toEqual({ process: 'signer', ready: expect.stringMatching(/signer\.sock$/) });
      // the passphrase is not needed when the signer itself can be asked
      await rm(join(elsewhere, 'signer', 'passphrase'));
      expect(await askCli(['keys', 'verify'], alone)).toMatchObject({ ok: true });
      child.kill('SIGTERM');
      expect(await ended).toMatchObject({ code: 0 });
      expect(await runCli(['keys', 'verify'], alone)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/passphrase is missing/),
      });
    } finally {
      child.kill('SIGKILL');
      await ended;
      await other.drop();
      await rm(elsewhere, { recursive: true, force: true });
    }
  });

  it('on mainnet and testnet are sealed by a passphrase of the operator', async () => {
    const other = await freshDatabase();
    const elsewhere = mkdtempSync(join(tmpdir(), 'bursar-cli-'));
    const main = { DATABASE_URL: other.url, BURSAR_DATA_DIR: elsewhere, BURSAR_NETWORK: 'mainnet' };
    try {
      expect(await runCli(['keys', 'init'], main)).toMatchObject({
        code: 1,
        err: expect.stringMatching(/BURSAR_SIGNER_PASSPHRASE \(or _FILE\) is not set/),
      });
      const given = { ...main, BURSAR_SIGNER_PASSPHRASE: 'correct horse battery staple' };
      const made = await askCli<{ mnemonic: string; accounts: { path: string; xpub: string }[] }>(['keys', 'init'], given);
      expect(validateMnemonic(made.mnemonic, wordlist)).toBe(true);
      expect(made.accounts[0]).toMatchObject({ path: "m/84'/0'/0'", xpub: expect.stringMatching(/^xpub/) });
      expect(await askCli(['keys', 'verify'], given)).toMatchObject({ ok: true });
      const wrong = await runCli(['keys', 'verify'], { ...given, BURSAR_SIGNER_PASSPHRASE: 'wrong horse battery staple' });
      expect(wrong).toMatchObject({
        code: 1,
        err: expect.stringMatching(/does not open: BURSAR_SIGNER_PASSPHRASE is another one/),
      });
    } finally {
      await other.drop();
      await rm(elsewhere, { recursive: true, force: true });
    }
  });
});
