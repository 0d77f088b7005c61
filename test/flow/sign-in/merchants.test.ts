// What the operator may make: usernames, passwords, emails, names and scopes, each refused with the field at fault.
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { passwordProblem, usernameKey } from '../../../src/core/credentials.ts';
import { addMerchant, addUser, resumeMerchant, setUser, suspendMerchant } from '../../../src/flow/merchants/merchants.ts';
import { createAuthenticator, signIn } from '../../../src/flow/sign-in/sign-in.ts';
import { makeSignInSetup, PASSWORD, type SignInSetup } from './setup.ts';

let setup: SignInSetup;
beforeAll(async () => {
  setup = await makeSignInSetup();
});
afterAll(() => setup.end());

const merchant = { username: 'new-shop', password: PASSWORD, email: 'new@example.com', businessName: 'New' };
async function fault(work: Promise<unknown>): Promise<string> {
  try {
    await work;
    return 'none';
  } catch (error) {
    const { code, param } = error as { code: string; param: string | null };
    return `${code} ${param}`;
  }
}

describe('a username', () => {
  it('is compared without regard to case, width and composition', () => {
    for (const same of ['demo', 'DEMO', 'Ｄｅｍｏ', 'dEmO']) expect(usernameKey(same)).toBe('demo');
    expect(usernameKey('Straße')).toBe(usernameKey('STRASSE'));
    expect(usernameKey('Zoë')).toBe(usernameKey('ZOE\u0308'));
    expect(usernameKey('ΝΊΚΟΣ')).toBe(usernameKey('νίκος'));
  });

  it('may be punctuated ASCII or letters of one alphabet', () => {
    for (const name of [
      'a',
      'shop-1_2.x+y@example.com',
      'müller',
      'łódź',
      'żółw',
      'магазин',
      'ωμέγα-7',
      '商店',
      'たなか',
      '상점',
      'دكان',
      'x'.repeat(128),
    ]) {
      expect(usernameKey(name), name).not.toBeNull();
    }
  });

  it('may not be empty, too long, spaced, invisible, or one that passes for another', () => {
    const refused = [
      '',
      'x'.repeat(129),
      'a b',
      ' a',
      'a\t',
      'a\nb',
      'a\0',
      'a\u200bb',
      'a\u202eb',
      'a\u00adb',
      '\ufeffa',
      '\ud800',
    ];
    // Cyrillic а in a Latin word, a whole Cyrillic word that reads Latin, Greek omicron, IPA ɡ, i with a second dot, bare marks
    const confusable = ['shоp', 'раура', 'ΑΒΕ', 'ɡmail', 'i\u0307d', '\u0301a', 'a\u0301\u0301\u0301', 'demo🙂', '①\u20dd'];
    for (const name of [...refused, ...confusable]) expect(usernameKey(name), JSON.stringify(name)).toBeNull();
  });

  it('belongs to one user in the whole service', async () => {
    expect(await fault(addMerchant(setup.ctx, { ...merchant, username: 'SHOP' }))).toBe('invalid_request username');
    expect(
      await fault(
        addUser(setup.ctx, { affiliateId: setup.affiliateId, username: 'ｓhop', password: PASSWORD, scopes: ['read'] }),
      ),
    ).toBe('invalid_request username');
    const race = await Promise.all(
      Array.from({ length: 6 }, () => fault(addMerchant(setup.ctx, { ...merchant, username: 'raced' }))),
    );
    expect(race.filter((one) => one === 'none')).toHaveLength(1);
    const { rows } = await setup.ctx.db.query<{ n: bigint }>({
      text: 'select count(*) as n from merchants m where not exists (select 1 from users u where u.merchant_id = m.id)',
    });
    expect(rows[0]?.n).toBe(0n);
  });
});

describe('what is refused', () => {
  it('names the field', async () => {
    const cases: [Partial<typeof merchant>, string][] = [
      [{ username: 'a b' }, 'username'],
      [{ password: 'eleven char' }, 'password'],
      [{ password: 'x'.repeat(129) }, 'password'],
      [{ email: 'nobody' }, 'email'],
      [{ email: 'a@b@c.example' }, 'email'],
      [{ email: 'a b@c.example' }, 'email'],
      [{ email: 'a@-c.example' }, 'email'],
      [{ email: `${'a'.repeat(64)}@${'b.'.repeat(100)}example` }, 'email'],
      [{ email: 'a\r\nBcc: x@example.com' }, 'email'],
      [{ businessName: '' }, 'business_name'],
      [{ businessName: '   ' }, 'business_name'],
      [{ businessName: 'a\0' }, 'business_name'],
      [{ businessName: 'a\u202e' }, 'business_name'],
      [{ businessName: 'x'.repeat(201) }, 'business_name'],
    ];
    for (const [change, field] of cases)
      expect(await fault(addMerchant(setup.ctx, { ...merchant, ...change }))).toBe(`invalid_request ${field}`);
    const user = { affiliateId: setup.affiliateId, username: 'colleague', password: PASSWORD, scopes: ['read'] };
    expect(await fault(addUser(setup.ctx, { ...user, scopes: ['read', 'admin'] }))).toBe('invalid_request scopes');
    expect(await fault(addUser(setup.ctx, { ...user, scopes: [] }))).toBe('invalid_request scopes');
    expect(await fault(addUser(setup.ctx, { ...user, affiliateId: 'aff_\0' }))).toBe('not_found affiliate_id');
    expect(await fault(setUser(setup.ctx, { username: 'shop' }))).toBe('invalid_request password');
    expect(await fault(setUser(setup.ctx, { username: 'shop', password: 'short' }))).toBe('invalid_request password');
    expect(await fault(setUser(setup.ctx, { username: 'nobody', scopes: ['read'] }))).toBe('not_found username');
    expect(await fault(suspendMerchant(setup.ctx, { affiliateId: 'aff_unknown' }))).toBe('not_found affiliate_id');
    expect(await fault(resumeMerchant(setup.ctx, { affiliateId: 'aff_unknown' }))).toBe('not_found affiliate_id');
  });

  it('of no password in the sandbox for being short', async () => {
    const ctx = { ...setup.ctx, network: 'sandbox' as const };
    const shop = { username: 'short', password: 'pw', email: 'a@example.com', businessName: 'Short' };
    await addMerchant(ctx, shop);
    const refused = { code: 'invalid_request', param: 'password' };
    await expect(addMerchant(ctx, { ...shop, username: 'empty', password: '' })).rejects.toMatchObject(refused);
    await expect(addMerchant(setup.ctx, { ...shop, username: 'other' })).rejects.toMatchObject(refused);
  });

  it('of a password: below 12 and above 128 characters or 512 bytes, and what is no Unicode', () => {
    for (const fine of [
      'demo-demo-demo',
      'x'.repeat(12),
      'x'.repeat(128),
      '🔑'.repeat(12),
      '🔑'.repeat(128),
      'pass\0word with nul',
      ' '.repeat(12),
    ]) {
      expect(passwordProblem(fine), fine).toBeNull();
    }
    for (const bad of ['', 'x'.repeat(11), '🔑'.repeat(11), 'x'.repeat(129), '\ud800'.repeat(12)])
      expect(passwordProblem(bad), bad).not.toBeNull();
  });
});

describe('a merchant', () => {
  it('is made with its settings and a first user who may do everything', async () => {
    const { affiliateId } = await addMerchant(setup.ctx, merchant);
    expect(affiliateId).toMatch(/^aff_[0-9A-Za-z]{22}$/);
    const { accessToken } = await signIn(setup.ctx, merchant);
    const authenticator = createAuthenticator(setup.ctx);
    const caller = await authenticator.authenticate(accessToken);
    expect([...caller.scopes]).toEqual(['read', 'payments', 'payouts']);
    const { rowCount } = await setup.ctx.db.query({
      text: 'select 1 from merchant_settings where merchant_id = $1',
      values: [caller.merchantId],
    });
    expect(rowCount).toBe(1);
    await authenticator.close();
  });

  it('keeps a password in any script', async () => {
    const password = 'пароль-密码-🔑🔑🔑🔑';
    await addUser(setup.ctx, { affiliateId: setup.affiliateId, username: 'polyglot', password, scopes: ['read', 'read'] });
    const { accessToken } = await signIn(setup.ctx, { username: 'Polyglot', password });
    const authenticator = createAuthenticator(setup.ctx);
    expect([...(await authenticator.authenticate(accessToken)).scopes]).toEqual(['read']);
    await authenticator.close();
  });
});
