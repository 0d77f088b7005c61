// Whoever has the database's password, as the role of the service, signs in as nobody and lets no payout through: users, sign-ins, keys of tokens and
// the guards of payouts carry seals that the database cannot make.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { runAudit } from '../../../src/flow/audit.ts';
import type { Context } from '../../../src/flow/context.ts';
import { addUser, setUser } from '../../../src/flow/merchants/merchants.ts';
import { readUnsealed, sealExisting, vouch } from '../../../src/flow/merchants/seals.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { refresh } from '../../../src/flow/sign-in/refresh-tokens.ts';
import { createAuthenticator, signIn } from '../../../src/flow/sign-in/sign-in.ts';
import { createTokens } from '../../../src/outside/jwt.ts';
import { createRowSeals } from '../../../src/outside/row-seals.ts';
import { CREDENTIAL_KEY } from '../../cli/run.ts';
import { fund, OUTSIDE, tellFee } from '../../support/funded.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';
import { claimsOf, refusalOf } from './setup.ts';

const PASSWORD = 'correct horse battery';
const THIEF = { username: 'thief', password: PASSWORD };
const SHOP = { username: 'shop', password: PASSWORD };
let service: ServiceOnDatabase;
let ctx: Context;
let told: string[];
let authenticator: ReturnType<typeof createAuthenticator>;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  told = [];
  const seals = createRowSeals(
    () => Buffer.from(CREDENTIAL_KEY, 'hex'),
    (what) => told.push(what),
  );
  ctx = { ...service.ctx, ports: { ...service.ctx.ports, seals } };
  await service.openShop('thief');
  authenticator = createAuthenticator(ctx);
});
afterEach(async () => {
  await authenticator.close();
  await service.drop();
});

/** As the service's own role. */
const asService = (text: string, values: unknown[] = []) => ctx.db.query<Record<string, never>>({ text, values });
const enters = (as: { username: string; password: string }) => refusalOf(() => signIn(ctx, as));
const isTaken = (token: string) => refusalOf(() => authenticator.authenticateNow(token));
const red = async (): Promise<string[]> =>
  (await runAudit(ctx)).answers.filter(({ id }) => id === 'SEAL-1').flatMap(({ findings }) => findings);
const affiliateOf = async (username: string): Promise<string> =>
  (
    await asService('select m.affiliate_id from merchants m join users u on u.merchant_id = m.id where u.username_key = $1', [
      username,
    ])
  ).rows[0]?.affiliate_id as unknown as string;

describe('with the password of the database', () => {
  test('a password of his own signs nobody in: the ordinary answer, an alarm, and the audit is red by name', async () => {
    expect([await red(), await enters(SHOP)]).toEqual([[], 'none']);
    await setUser(ctx, { username: 'thief', password: 'his own pass word' });
    await asService(
      `update users set password_hash = (select password_hash from users where username_key = 'thief') where username_key = 'shop'`,
    );
    expect(await enters({ username: 'shop', password: 'his own pass word' })).toBe('invalid_credentials');
    expect(await enters(SHOP)).toBe('invalid_credentials');
    expect(told).toEqual([expect.stringContaining('user shop')]);
    expect(await red()).toEqual(['user shop is not what was sealed: it cannot sign in']);
  });

  test('no user can be added to a merchant, moved to another one, or given more scopes', async () => {
    await addUser(ctx, { affiliateId: await affiliateOf('shop'), username: 'clerk', password: PASSWORD, scopes: ['read'] });
    await asService(`insert into users (merchant_id, username, username_key, password_hash, scopes, created_at, seal_version, seal)
                     select s.merchant_id, 'two', 'two', t.password_hash, s.scopes, s.created_at, t.seal_version, t.seal
                       from users s, users t where s.username_key = 'shop' and t.username_key = 'thief'`);
    expect(await enters({ username: 'two', password: PASSWORD })).toBe('invalid_credentials');
    const clerk = await signIn(ctx, { username: 'clerk', password: PASSWORD });
    expect(await isTaken(clerk.accessToken)).toBe('none');
    await asService(`update users set scopes = '{read,payments,payouts}' where username_key = 'clerk'`);
    expect(await isTaken(clerk.accessToken)).toBe('invalid_token');
    await asService(
      `update users set merchant_id = (select merchant_id from users where username_key = 'shop') where username_key = 'thief'`,
    );
    expect(await enters(THIEF)).toBe('invalid_credentials');
    expect((await red()).length).toBe(3);
  });

  test('an older password that is put back with its seal is not taken', async () => {
    const [before] = (await asService(`select password_hash, seal_version, seal from users where username_key = 'shop'`)).rows;
    await setUser(ctx, { username: 'shop', password: 'a much newer one' });
    await asService(`update users set password_hash = $1, seal_version = $2, seal = $3 where username_key = 'shop'`, [
      before?.password_hash,
      before?.seal_version,
      before?.seal,
    ]);
    expect(await enters(SHOP)).toBe('invalid_credentials');
    await expect(asService(`delete from seal_versions`)).rejects.toThrow(/permission denied/);
    await expect(asService(`update seal_versions set version = version + 10`)).rejects.toThrow(/permission denied/);
  });

  test('a sign-in of his own leads to no other merchant', async () => {
    const own = await signIn(ctx, THIEF);
    const theirs = await affiliateOf('shop');
    const his = await affiliateOf('thief');
    await asService(`update sign_ins set user_id = (select id from users where username_key = 'shop')`);
    expect(await isTaken(own.accessToken)).toBe('invalid_token');
    await asService(`update merchants set affiliate_id = 'aff_x' where affiliate_id = $1`, [his]);
    await asService('update merchants set affiliate_id = $1 where affiliate_id = $2', [his, theirs]);
    expect(await isTaken(own.accessToken)).toBe('invalid_token');
    expect(await refusalOf(() => refresh(ctx, own))).toBe('invalid_token');
    expect(told.join()).toContain('sign-in sin_');
  });

  test('a key of his own signs no token', async () => {
    const { accessToken } = await signIn(ctx, SHOP);
    const { sub, sid, jti, iat } = claimsOf(accessToken) as { sub: string; sid: string; jti: string; iat: number };
    const own = createTokens({ clock: ctx.ports.clock, audience: ctx.network });
    const key = own.signingKey();
    const forged = own.sign('access', { sub, sid, jti, iat });
    await asService(
      `insert into signing_keys (kid, public_key, created_at, useless_after, seal)
       select $1, $2, created_at, useless_after, seal from signing_keys limit 1`,
      [key.kid, key.publicKeyPem],
    );
    expect(await isTaken(forged)).toBe('invalid_token');
    expect([await isTaken(accessToken), told.join()]).toEqual(['none', expect.stringContaining(key.kid)]);
    expect((await red()).join()).toContain(key.kid);
  });

  test.each([
    ['clears the approval limit', `update merchant_settings set payout_approval_above = null`],
    ['clears the allow-list', `update merchant_settings set payout_allow_list = '{}'`],
  ])(
    'whoever %s lets no payout through: each waits, and the merchant changes nothing before an operator has looked',
    async (_what, text) => {
      await tellFee(ctx);
      await fund(ctx, service.merchantId, 10_000_000n);
      const scopes = new Set(['read', 'payments', 'payouts'] as const);
      const change = { payoutApprovalAbove: '100.00', payoutAllowList: [OUTSIDE] };
      await setSettings(ctx, { merchantId: service.merchantId, scopes, change });
      const asked = { merchantId: service.merchantId, amount: '0.001', destination: OUTSIDE } as const;
      expect(await requestPayout(ctx, asked)).toMatchObject({ status: 'processing' });
      const [older] = (await asService('select * from merchant_settings where merchant_id = $1', [service.merchantId])).rows;
      await asService(`${text} where merchant_id = $1`, [service.merchantId]);
      expect(await requestPayout(ctx, asked)).toMatchObject({ status: 'pending', heldReason: 'approval' });
      expect(await red()).toEqual([expect.stringContaining('the settings of aff_')]);
      const other = setSettings(ctx, { merchantId: service.merchantId, scopes, change: { tolerancePercent: '2' } });
      expect(await refusalOf(() => other)).toBe('internal_error');
      await vouch(ctx);
      expect(await red()).toEqual([]);
      await asService(
        'update merchant_settings set payout_approval_above = $2, payout_allow_list = $3, seal = $4, seal_version = $5 where merchant_id = $1',
        [service.merchantId, older?.payout_approval_above, older?.payout_allow_list, older?.seal, older?.seal_version],
      );
      expect(await requestPayout(ctx, asked)).toMatchObject({ status: 'pending', heldReason: 'approval' });
    },
  );
});

describe('rows of before there were seals', () => {
  const unseal = async (): Promise<void> => {
    for (const table of ['users', 'merchant_settings']) await asService(`update ${table} set seal = null, seal_version = 0`);
    for (const table of ['sign_ins', 'signing_keys']) await asService(`update ${table} set seal = null`);
  };

  test('are sealed once, with their sign-ins; from then on a row without a seal is not taken', async () => {
    const pair = await signIn(ctx, SHOP);
    await unseal();
    await service.admin.query('delete from seal_versions');
    expect(await sealExisting(ctx)).toEqual({ outcome: 'done', sealed: 4 });
    expect([await enters(SHOP), await isTaken(pair.accessToken), await red()]).toEqual(['none', 'none', []]);
    await asService(`update users set seal = null, seal_version = 0 where username_key = 'shop'`);
    expect(await sealExisting(ctx)).toEqual({ outcome: 'done', sealed: 0 });
    expect(await enters(SHOP)).toBe('invalid_credentials');
  });

  test('are none where somebody has removed all seals: no new server vouches for what he wrote', async () => {
    await unseal();
    await asService(`update users set password_hash = (select password_hash from users where username_key = 'thief')`);
    expect(await sealExisting(ctx)).toEqual({ outcome: 'other_key', sealed: 0 });
    expect(await enters(SHOP)).toBe('invalid_credentials');
    expect((await red()).length).toBeGreaterThan(3);
  });

  test('of a restored older database sign nobody in until an operator vouches for them', async () => {
    await unseal();
    expect(await enters(SHOP)).toBe('invalid_credentials');
    const found = await readUnsealed(ctx);
    expect(found.users.map(({ usernameKey }) => usernameKey)).toEqual(['shop', 'thief']);
    expect(found.merchants).toContain(await affiliateOf('shop'));
    await vouch(ctx);
    expect([await enters(SHOP), (await readUnsealed(ctx)).users]).toEqual(['none', []]);
  });

  test('and rows that another key has sealed are touched by nobody', async () => {
    const seals = createRowSeals(
      () => Buffer.alloc(32, 8),
      () => undefined,
    );
    const stranger = { ...ctx, ports: { ...ctx.ports, seals } };
    expect(await sealExisting(stranger)).toEqual({ outcome: 'other_key', sealed: 0 });
    expect(await enters(SHOP)).toBe('none');
  });
});
