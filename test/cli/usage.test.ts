import { describe, expect, it } from 'vitest';
import { runCli } from './run.ts';

// no database is reachable here: a mistake in the call is reported before anything is opened
const NOWHERE = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none', BURSAR_DATA_DIR: '/nonexistent/bursar' };

describe('a command that is called in a wrong way', () => {
  it.each([
    [
      [],
      /a command is missing; accepted: start, api, worker, signer, migrate, config, merchant, user, transaction, review, payout, webhook, keys, audit, chain, console, demo/,
    ],
    [['nonsense'], /unknown command 'nonsense'; accepted: start, /],
    [['payouts', 'list'], /unknown command 'payouts'/],
    [['payout', 'list', '--status', 'lost'], /--status.*Allowed choices are pending, processing, completed, failed/],
    [['payout', 'resolve', 'payout_1', '--evidence', 'x'], /exactly one of --paid and --failed is required/],
    [['merchant'], /a command is missing; accepted: add, list, seal, suspend, resume/],
    [
      ['keys', 'forget'],
      /unknown command 'forget'; accepted: init, restore, show-xpubs, show-descriptors, import-xpub, verify, show-intent, trust-intent, distrust-intent/,
    ],
    [['merchant', 'add', '--username', 'shop'], /required option '--email <address>' not specified/],
    [['transaction', 'show'], /missing required argument 'what'/],
    [['merchant', 'suspend'], /missing required argument 'affiliate_id'/],
    [['merchant', 'suspend', 'aff_1', 'aff_2'], /too many arguments/],
    [
      ['user', 'add', '--merchant', 'aff_1', '--username', 'u', '--scopes', 'read,steal'],
      /--scopes.*Accepted: one or more of read, payments, payouts/,
    ],
    [
      ['keys', 'import-xpub', '--currency', 'XMR', '--xpub', 'x'],
      /--currency.*'XMR' is invalid.*Accepted: BTC, LTC, ETH, BCH, DASH, DOGE, USDT/,
    ],
    [['keys', 'import-xpub', '--currency', 'BTC'], /required option '--xpub <key>'/],
    [['review', 'accept', 'txn_1', '--part', 'half'], /--part.*Allowed choices are excess/],
    [['audit', '--loud'], /unknown option '--loud'; accepted: --json, --full, --currency, --clear, --acknowledge, --is-payment$/],
    [
      ['merchant', 'add', '--emial', 'a@example.com'],
      /^bursar: unknown option '--emial'; accepted: --json, --username, --password, --email/,
    ],
    [['audit', '--currency', 'BTC'], /^bursar: --currency goes with --full only/],
    [['chain', 'status', '--currency', 'XYZ'], /^bursar: --currency: XYZ is not one of BTC, LTC, ETH, BCH, DASH, DOGE, USDT$/],
    [['chain', 'rescan', '--form=1', '--currency', 'BTC'], /^bursar: unknown option '--form'/],
    [
      ['chain', 'rescan', '--currency', 'XYZ', '--from', '1'],
      /^bursar: --currency: XYZ is not one of BTC, LTC, ETH, BCH, DASH, DOGE, USDT$/,
    ],
    [['chain', 'rescan', '--currency', 'BTC', '--from', 'abc'], /^bursar: --from: abc is no height: a whole number from 0 on$/],
    [['chain', 'rescan', '--currency', 'BTC', '--from', '-1'], /^bursar: --from: -1 is no height/],
    [['demo', '--url', 'nowhere'], /^bursar: --url: nowhere is no address; accepted is http:\/\/host:port or https:\/\/host$/],
  ])('%j: one line names the argument and what is accepted, exit code 2', async (args, message) => {
    const ran = await runCli(args, NOWHERE);
    expect(ran.code).toBe(2);
    expect(ran.out).toBe('');
    expect(ran.err.trim().split('\n').at(-1)).toMatch(message);
    expect(ran.err).not.toMatch(/\bat .*\.ts:\d/);
  });

  it('answers in JSON when asked to', async () => {
    const ran = await runCli(['merchant', 'add', '--json'], NOWHERE);
    expect(ran.code).toBe(2);
    expect(JSON.parse(ran.err)).toEqual({ error: 'usage', message: "required option '--username <name>' not specified" });
  });
});

describe('a command that cannot do its work', () => {
  it('says in one line that the database is not there, exit code 1', async () => {
    const ran = await runCli(['audit'], { ...NOWHERE, BURSAR_DATA_DIR: '/tmp' });
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(/^bursar: DATABASE_URL: .*127\.0\.0\.1:1.*cannot be reached.*\n$/);
    expect(ran.err).not.toContain('nobody');
  });

  it('says all that is wrong with the configuration', async () => {
    const ran = await runCli(['config', 'check'], { PORT: '99999', BURSAR_NETWROK: 'sandbox', BURSAR_FEE_BPS: 'many' });
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(/PORT: "99999" is not accepted/);
    expect(ran.err).toMatch(/BURSAR_NETWROK is not a variable of Bursar; the nearest known one is BURSAR_NETWORK/);
    expect(ran.err).toMatch(/BURSAR_FEE_BPS/);
  });

  it('says that no server runs where the demo should run', async () => {
    const ran = await runCli(['demo', '--url', 'http://127.0.0.1:1'], {});
    expect(ran).toMatchObject({ code: 1, out: '' });
    expect(ran.err).toMatch(/^bursar: no server answers at http:\/\/127\.0\.0\.1:1 \(bad port\): .*npm start/);
    expect((await runCli(['demo', '--url', 'nowhere'], {})).err).toMatch(
      /--url: nowhere is no address; accepted is http:\/\/host:port/,
    );
  });
});

describe('help and settings', () => {
  it('lists every command with its exit codes, without colour codes', async () => {
    const ran = await runCli(['--help'], { NO_COLOR: '1' });
    expect(ran.code).toBe(0);
    for (const name of ['start', 'migrate', 'config', 'merchant', 'user', 'review', 'keys', 'audit', 'chain', 'demo'])
      expect(ran.out).toContain(`  ${name}`);
    expect(ran.out).toMatch(/Exit codes: 0 done, 1 failed or something is red, 2 called in a wrong way/);
    expect(ran.out).not.toContain('\u001b');
  });

  it.each([
    [['help', 'merchant', 'add'], /^Usage: bursar merchant add /],
    [['merchant', 'add', 'help'], /^Usage: bursar merchant add /],
    [['merchant', 'help'], /^Usage: bursar merchant /],
    [['help'], /^Usage: bursar /],
    [['audit', '--help'], /^Usage: bursar audit /],
    [['--version'], /^\d+\.\d+\.\d+$/],
    [['merchant', 'add', '--version'], /^\d+\.\d+\.\d+$/],
    [['--version', '--json'], /^\{"version":"\d+\.\d+\.\d+"\}$/],
  ])('%j is help or the version', async (args, said) => {
    const ran = await runCli(args, NOWHERE);
    expect(ran).toMatchObject({ code: 0, err: '' });
    expect(ran.out.trim()).toMatch(said);
  });

  it('shows the configuration without its secrets', async () => {
    const environment = {
      DATABASE_URL: 'postgres://u:very-secret@127.0.0.1:1/none',
      BURSAR_UNFINAL_PAYOUT_USD: '1000.5',
      PORT: '8181',
    };
    const ran = await runCli(['config', 'check', '--json'], environment);
    expect(ran.code).toBe(0);
    expect(ran.out).not.toContain('very-secret');
    const { ok, settings } = JSON.parse(ran.out);
    expect(ok).toBe(true);
    expect(settings).toMatchObject({
      PORT: '8181',
      DATABASE_URL: '(set)',
      BURSAR_NETWORK: 'sandbox',
      BURSAR_UNFINAL_PAYOUT_USD: '1000.50',
    });
  });
});
