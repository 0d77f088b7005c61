// Signing in and out, and whose an access token is, in one process and in several on one database.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import {
  addMerchant,
  addUser,
  ensureDemoMerchant,
  resumeMerchant,
  setUser,
  suspendMerchant,
} from '../../../src/flow/merchants/merchants.ts';
import { refresh } from '../../../src/flow/sign-in/refresh-tokens.ts';
import { changeUser } from '../../../src/flow/sign-in/sealed-users.ts';
import { type Caller, createAuthenticator, signIn, signOut } from '../../../src/flow/sign-in/sign-in.ts';
import { findUser, lockUser, type User } from '../../../src/store/merchants/users.ts';
import { claimsOf, headerOf, makeSignInSetup, PASSWORD, refusalOf, type SignInSetup } from './setup.ts';

let setup: SignInSetup;
beforeAll(async () => {
  setup = await makeSignInSetup();
});
afterAll(() => setup.end());

const shop = { username: 'shop', password: PASSWORD };
let names = 0;
async function newMerchant(): Promise<{ username: string; password: string; affiliateId: string }> {
  names += 1;
  const username = `merchant-${names}`;
  const { affiliateId } = await addMerchant(setup.ctx, { username, password: PASSWORD, email: 'm@shop.eu', businessName: 'M' });
  return { username, password: PASSWORD, affiliateId };
}

describe('signing in', () => {
  it('gives two EdDSA tokens that live exactly 900 and 1,296,000 seconds on the service clock', async () => {
    const pair = await signIn(setup.ctx, shop);
    const [access, refreshClaims] = [claimsOf(pair.accessToken), claimsOf(pair.refreshToken)];
    expect(headerOf(pair.accessToken)).toMatchObject({ alg: 'EdDSA', typ: 'at+jwt' });
    expect(headerOf(pair.refreshToken)).toMatchObject({ alg: 'EdDSA', typ: 'rt+jwt' });
    expect((access.exp as number) - (access.iat as number)).toBe(900);
    expect((refreshClaims.exp as number) - (refreshClaims.iat as number)).toBe(1_296_000);
    expect(access).toMatchObject({ iss: 'bursar', aud: 'sandbox', sub: setup.affiliateId, sid: refreshClaims.sid });
    expect(access.jti).not.toBe(refreshClaims.jti);
    expect(access.iat).toBe(Math.floor(setup.ctx.ports.clock.now() / 1000));
  });

  it('takes the username in any case and width, and the password as it is', async () => {
    expect(await refusalOf(() => signIn(setup.ctx, { username: 'ＳＨＯＰ', password: PASSWORD }))).toBe('none');
    expect(await refusalOf(() => signIn(setup.ctx, { username: 'SHOP', password: PASSWORD.toUpperCase() }))).toBe(
      'invalid_credentials',
    );
  });

  it('refuses an unknown username and a wrong password alike', async () => {
    for (const credentials of [
      { username: 'nobody', password: PASSWORD },
      { username: 'shop', password: `${PASSWORD}!` },
      { username: 'shop', password: '' },
      { username: 'sh\0op', password: PASSWORD },
      { username: '', password: PASSWORD },
      { username: 'x'.repeat(60_000), password: 'y'.repeat(60_000) },
      { username: 'shop', password: '\ud800'.repeat(12) },
    ]) {
      expect(await refusalOf(() => signIn(setup.ctx, credentials))).toBe('invalid_credentials');
    }
  });

  it('tells only the one who knows the password that the account is suspended', async () => {
    const merchant = await newMerchant();
    await suspendMerchant(setup.ctx, merchant);
    expect(await refusalOf(() => signIn(setup.ctx, merchant))).toBe('account_suspended');
    expect(await refusalOf(() => signIn(setup.ctx, { ...merchant, password: 'wrong password' }))).toBe('invalid_credentials');
    await resumeMerchant(setup.ctx, merchant);
    expect(await refusalOf(() => signIn(setup.ctx, merchant))).toBe('none');
  });

  it('hashes anew, at a sign-in, what was hashed with other parameters', async () => {
    const merchant = await newMerchant();
    const weak = '$argon2id$v=19$m=8192,t=1,p=1$c29tZXNhbHRzb21lc2FsdA$';
    const { hash } = await import('@node-rs/argon2');
    const old = await hash(PASSWORD, { memoryCost: 8192, timeCost: 1, parallelism: 1, salt: Buffer.from('somesaltsomesalt') });
    expect(old.startsWith(weak.slice(0, 30))).toBe(true);
    const read = async () => (await findUser(setup.ctx.db, merchant.username))?.passwordHash;
    await setup.ctx.db.transaction(async (sql) => {
      const user = await lockUser(sql, merchant.username);
      await changeUser(setup.ctx, sql, { ...(user as User), passwordHash: old });
    });
    await signIn(setup.ctx, merchant);
    expect(await read()).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$/);
    expect(await refusalOf(() => signIn(setup.ctx, merchant))).toBe('none');
  });

  it('removes a user’s sign-ins that have run out', async () => {
    const merchant = await newMerchant();
    await signIn(setup.ctx, merchant);
    setup.advance(1_296_001);
    await signIn(setup.ctx, merchant);
    const { rows } = await setup.ctx.db.query<{ n: bigint }>({
      text: 'select count(*) as n from sign_ins s join users u on u.id = s.user_id where u.username_key = $1',
      values: [merchant.username],
    });
    expect(rows[0]?.n).toBe(1n);
  });
});

describe('the authenticator', () => {
  it('names merchant, user, sign-in and scopes, and answers at once when it has seen the token', async () => {
    const merchant = await newMerchant();
    await addUser(setup.ctx, { ...merchant, username: 'reader', scopes: ['read'] });
    const { accessToken } = await signIn(setup.ctx, { username: 'reader', password: PASSWORD });
    const authenticator = createAuthenticator(setup.ctx);
    const first = authenticator.authenticate(accessToken);
    expect(first).toBeInstanceOf(Promise);
    expect(await first).toMatchObject({
      affiliateId: merchant.affiliateId,
      suspended: false,
      signInId: claimsOf(accessToken).sid,
    });
    const second = authenticator.authenticate(accessToken);
    expect(second).not.toBeInstanceOf(Promise);
    expect([...(second as Caller).scopes]).toEqual(['read']);
    await authenticator.close();
  });

  it('costs less than a microsecond for a token it has seen', async () => {
    const authenticator = createAuthenticator(setup.ctx);
    const { accessToken } = await signIn(setup.ctx, shop);
    await authenticator.authenticate(accessToken);
    let bestNs = Number.POSITIVE_INFINITY;
    for (let round = 0; round < 20; round++) {
      const start = process.hrtime.bigint();
      for (let i = 0; i < 10_000; i++) void authenticator.authenticate(accessToken);
      bestNs = Math.min(bestNs, Number(process.hrtime.bigint() - start) / 10_000);
    }
    expect(bestNs).toBeLessThan(1_000);
    await authenticator.close();
  });

  it('refuses an access token from the second in which it ends', async () => {
    const authenticator = createAuthenticator(setup.ctx);
    const { accessToken } = await signIn(setup.ctx, shop);
    setup.advance(898);
    expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('none');
    setup.advance(2);
    expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('token_expired');
    expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('token_expired');
    expect(await refusalOf(() => authenticator.authenticateNow(accessToken))).toBe('token_expired');
    await authenticator.close();
  });

  it('takes the tokens of every process on the database, also of one that has ended', async () => {
    const other = setup.anotherProcess();
    const { accessToken, refreshToken } = await signIn(other, shop);
    const authenticator = createAuthenticator(setup.ctx);
    expect(headerOf(accessToken).kid).not.toBe(headerOf((await signIn(setup.ctx, shop)).accessToken).kid);
    expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('none');
    const next = await refresh(setup.ctx, { accessToken, refreshToken });
    expect(headerOf(next.accessToken).kid).toBe(headerOf((await signIn(setup.ctx, shop)).accessToken).kid);
    expect(await refusalOf(() => refresh(other, next))).toBe('none');
    await authenticator.close();
  });

  it('knows at once of a sign-out, a suspension and a change of scopes in its own process', async () => {
    const merchant = await newMerchant();
    const authenticator = createAuthenticator(setup.ctx);
    const [a, b] = [await signIn(setup.ctx, merchant), await signIn(setup.ctx, merchant)];
    const caller = await authenticator.authenticate(a.accessToken);
    await authenticator.authenticate(b.accessToken);
    await signOut(setup.ctx, caller);
    expect(await refusalOf(() => authenticator.authenticate(a.accessToken))).toBe('invalid_token');
    expect(await refusalOf(() => refresh(setup.ctx, a))).toBe('invalid_token');
    await suspendMerchant(setup.ctx, merchant);
    expect(await authenticator.authenticate(b.accessToken)).toMatchObject({ suspended: true });
    expect(await refusalOf(() => refresh(setup.ctx, b))).toBe('account_suspended');
    await resumeMerchant(setup.ctx, merchant);
    expect(await authenticator.authenticate(b.accessToken)).toMatchObject({ suspended: false });
    await setUser(setup.ctx, { username: merchant.username, scopes: ['read'] });
    expect(await refusalOf(() => authenticator.authenticate(b.accessToken))).toBe('invalid_token');
    await authenticator.close();
  });

  it('refuses what another process has revoked, also while the clock stands still', async () => {
    const merchant = await newMerchant();
    const authenticator = createAuthenticator(setup.anotherProcess());
    await authenticator.listen();
    const { accessToken } = await signIn(setup.ctx, merchant);
    const caller = await authenticator.authenticate(accessToken);
    expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('none');
    // as another process does it, which cannot reach this one but through the database
    const admin = new pg.Client({ connectionString: setup.url });
    await admin.connect();
    await admin.query("update sign_ins set revoked_at = now(), revoked_because = 'signed_out' where id = $1", [caller.signInId]);
    await vi.waitFor(
      async () => expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('invalid_token'),
      5_000,
    );
    await admin.end();
    await authenticator.close();
  });

  it('asks again about everything when it may have missed a notification', async () => {
    const merchant = await newMerchant();
    const authenticator = createAuthenticator(setup.anotherProcess());
    await authenticator.listen();
    const { accessToken } = await signIn(setup.ctx, merchant);
    const caller = await authenticator.authenticate(accessToken);
    const admin = new pg.Client({ connectionString: setup.url });
    await admin.connect();
    await admin.query('alter table sign_ins disable trigger announce');
    await admin.query("update sign_ins set revoked_at = now(), revoked_because = 'signed_out' where id = $1", [caller.signInId]);
    await admin.query('alter table sign_ins enable trigger announce');
    expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('none');
    await admin.query("select pg_terminate_backend(pid) from pg_stat_activity where query like 'listen sign_in_changed%'");
    await vi.waitFor(
      async () => expect(await refusalOf(() => authenticator.authenticate(accessToken))).toBe('invalid_token'),
      5_000,
    );
    await admin.end();
    await authenticator.close();
  });

  it('is at most 5 seconds behind where no notification comes through, and never for authenticateNow', async () => {
    const merchant = await newMerchant();
    const deaf = createAuthenticator(setup.anotherProcess());
    const { accessToken } = await signIn(setup.ctx, merchant);
    const caller = await deaf.authenticate(accessToken);
    await setup.ctx.db.query({
      text: "update sign_ins set revoked_at = now(), revoked_because = 'signed_out' where id = $1",
      values: [caller.signInId],
    });
    expect(await refusalOf(() => deaf.authenticateNow(accessToken))).toBe('invalid_token');
    const other = await signIn(setup.ctx, merchant);
    const otherCaller = await deaf.authenticate(other.accessToken);
    await setup.ctx.db.query({
      text: "update sign_ins set revoked_at = now(), revoked_because = 'signed_out' where id = $1",
      values: [otherCaller.signInId],
    });
    setup.advance(2);
    expect(await refusalOf(() => deaf.authenticate(other.accessToken))).toBe('none');
    setup.advance(3);
    expect(await refusalOf(() => deaf.authenticate(other.accessToken))).toBe('invalid_token');
    await deaf.close();
  });

  it('asks the database once for many calls at once with a new token', async () => {
    const authenticator = createAuthenticator(setup.ctx);
    const { accessToken } = await signIn(setup.ctx, shop);
    const answers = Array.from({ length: 50 }, () => authenticator.authenticate(accessToken));
    expect(new Set(answers).size).toBe(1);
    await answers[0];
    await authenticator.close();
  });
});

describe('a change of credentials', () => {
  it('revokes all of the user’s sign-ins and nobody else’s', async () => {
    const merchant = await newMerchant();
    await addUser(setup.ctx, { ...merchant, username: 'colleague', scopes: ['read', 'payouts'] });
    const [a, b] = [await signIn(setup.ctx, merchant), await signIn(setup.ctx, merchant)];
    const colleague = await signIn(setup.ctx, { username: 'colleague', password: PASSWORD });
    await setUser(setup.ctx, { username: merchant.username.toUpperCase(), password: 'another long password' });
    expect(await refusalOf(() => refresh(setup.ctx, a))).toBe('invalid_token');
    expect(await refusalOf(() => refresh(setup.ctx, b))).toBe('invalid_token');
    expect(await refusalOf(() => refresh(setup.ctx, colleague))).toBe('none');
    expect(await refusalOf(() => signIn(setup.ctx, merchant))).toBe('invalid_credentials');
    expect(await refusalOf(() => signIn(setup.ctx, { ...merchant, password: 'another long password' }))).toBe('none');
  });

  it('leaves no sign-in with the old password behind, however the two race', async () => {
    const merchant = await newMerchant();
    let password = PASSWORD;
    for (let round = 0; round < 8; round++) {
      const next = `${PASSWORD} ${round}`;
      const signIns = Array.from({ length: 4 }, () => signIn(setup.ctx, { ...merchant, password }).catch(() => null));
      const [made] = await Promise.all([
        Promise.all(signIns),
        setUser(setup.ctx, { username: merchant.username, password: next }),
      ]);
      for (const pair of made) if (pair !== null) expect(await refusalOf(() => refresh(setup.ctx, pair))).toBe('invalid_token');
      password = next;
    }
  });
});

describe('the demo merchant', () => {
  it('is made once by many processes at once and can then sign in, also after its password was changed', async () => {
    const all = await Promise.all(Array.from({ length: 5 }, () => ensureDemoMerchant(setup.ctx, 'demo-demo-demo')));
    expect(new Set(all.map((one) => one.affiliateId)).size).toBe(1);
    expect(all.filter((one) => one.made)).toHaveLength(1);
    await setUser(setup.ctx, { username: 'demo', password: 'something else entirely' });
    await ensureDemoMerchant(setup.ctx, 'demo-demo-demo');
    const pair = await signIn(setup.ctx, { username: 'demo', password: 'demo-demo-demo' });
    await ensureDemoMerchant(setup.ctx, 'demo-demo-demo');
    expect(await refusalOf(() => refresh(setup.ctx, pair))).toBe('none');
  });
});
