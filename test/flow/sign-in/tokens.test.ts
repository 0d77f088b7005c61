// Tokens that are not ours, or not what they claim to be, are refused; each case differs from a good token in one thing only.
import { createHmac, createPrivateKey, generateKeyPairSync, sign as signBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createAuthenticator, signIn } from '../../../src/flow/sign-in/sign-in.ts';
import { createTokens } from '../../../src/outside/jwt.ts';
import { claimsOf, headerOf, makeSignInSetup, PASSWORD, refusalOf, type SignInSetup } from './setup.ts';

let setup: SignInSetup;
let good: string;
let goodRefresh: string;
let key: string;
let kid: string;
beforeAll(async () => {
  setup = await makeSignInSetup();
  const pair = await signIn(setup.ctx, { username: 'shop', password: PASSWORD });
  good = pair.accessToken;
  goodRefresh = pair.refreshToken;
  // a key of ours whose private half the test has, so that it can forge everything but the signature
  const made = generateKeyPairSync('ed25519');
  key = made.privateKey.export({ type: 'pkcs8', format: 'pem' }) as string;
  kid = 'AAAABBBBCCCCDDDD';
  setup.ctx.ports.tokens.trust({ kid, publicKeyPem: made.publicKey.export({ type: 'spki', format: 'pem' }) as string });
});
afterAll(() => setup.end());

const encode = (value: unknown): string =>
  Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url');
function forged(change: { header?: Record<string, unknown>; claims?: Record<string, unknown>; payload?: string } = {}): string {
  const header = { alg: 'EdDSA', typ: 'at+jwt', kid, ...change.header };
  const input = `${encode(header)}.${encode(change.payload ?? { ...claimsOf(good), ...change.claims })}`;
  return `${input}.${signBytes(null, Buffer.from(input), createPrivateKey(key)).toString('base64url')}`;
}
async function answer(token: string): Promise<string> {
  const authenticator = createAuthenticator(setup.ctx);
  const code = await refusalOf(() => authenticator.authenticate(token));
  await authenticator.close();
  return code;
}

describe('a token', () => {
  it('is taken when nothing is wrong with it', async () => {
    expect(await answer(good)).toBe('none');
    expect(await answer(forged())).toBe('none');
  });

  it('is refused when its form is not a signed JWT’s', async () => {
    const [header, payload, signature] = good.split('.') as [string, string, string];
    const other = { A: 'B', Q: 'R', g: 'h', w: 'x' }[signature.at(-1) as 'A' | 'Q' | 'g' | 'w'];
    for (const token of [
      '',
      '.',
      '..',
      'null',
      good.slice(0, -1),
      `${good}=`,
      ` ${good}`,
      `${good}\n`,
      `${header}.${payload}`,
      `${header}.${payload}.`,
      `${header}.${payload}.${signature}.${signature}`,
      // decodes to the same bytes: a second spelling of the same signature
      `${header}.${payload}.${signature.slice(0, -1)}${other}`,
      `${header}.${payload}.${'A'.repeat(86)}`,
      `${header}.${encode({ ...claimsOf(good), sub: 'aff_other' })}.${signature}`,
      `${encode('[]')}.${payload}.${signature}`,
      `${encode('null')}.${payload}.${signature}`,
      `${encode('{')}.${payload}.${signature}`,
      'a'.repeat(1_000_000),
      '\0',
      '🙂'.repeat(200),
    ]) {
      expect(await answer(token), JSON.stringify(token.slice(0, 200))).toBe('invalid_token');
    }
  });

  it('is refused when it is longer than 4 KiB, also with a valid signature', async () => {
    expect(await answer(forged({ claims: { note: 'x'.repeat(100) } }))).toBe('none');
    expect(await answer(forged({ claims: { note: 'x'.repeat(4096) } }))).toBe('invalid_token');
  });

  it('is refused when its header is not exactly ours', async () => {
    for (const header of [
      { alg: 'none' },
      { alg: 'HS256' },
      { alg: 'eddsa' },
      { alg: 'Ed448' },
      { typ: 'rt+jwt' },
      { typ: 'JWT' },
      { typ: 'AT+JWT' },
      { typ: undefined },
      { kid: undefined },
      { kid: 'ZZZZZZZZZZZZZZZZ' },
      { kid: '../../etc/passwd' },
      { kid: "' or true --    " },
      { kid: 7 },
      { jku: 'https://evil.example/jwks.json' },
      { jwk: { kty: 'OKP' } },
      { x5u: 'https://evil.example/cert' },
      { crit: ['exp'] },
      { crit: [] },
      { b64: false },
    ]) {
      expect(await answer(forged({ header })), JSON.stringify(header)).toBe('invalid_token');
    }
  });

  it('is refused when it is signed with the public key as an HMAC secret, or not at all', async () => {
    const { rows } = await setup.ctx.db.query<{ public_key: string }>({
      text: 'select public_key from signing_keys where kid = $1',
      values: [headerOf(good).kid],
    });
    const header = { alg: 'HS256', typ: 'at+jwt', kid: headerOf(good).kid as string };
    const input = `${encode(header)}.${encode(claimsOf(good))}`;
    for (const secret of [rows[0]?.public_key ?? '', '', kid]) {
      expect(await answer(`${input}.${createHmac('sha256', secret).update(input).digest('base64url')}`)).toBe('invalid_token');
      // the same, stretched to the length of our signatures
      expect(await answer(`${input}.${createHmac('sha512', secret).update(input).digest('base64url')}`)).toBe('invalid_token');
    }
    const unsigned = `${encode({ ...header, alg: 'none' })}.${encode(claimsOf(good))}.`;
    expect(await answer(unsigned)).toBe('invalid_token');
    expect(await answer(`${unsigned}${good.split('.')[2]}`)).toBe('invalid_token');
  });

  it('is refused in a second spelling, also where the signature is good', async () => {
    const claims = JSON.stringify(claimsOf(good));
    const header = JSON.stringify({ alg: 'EdDSA', typ: 'at+jwt', kid });
    const signed = (head: string, payload: string): string =>
      `${head}.${payload}.${signBytes(null, Buffer.from(`${head}.${payload}`), createPrivateKey(key)).toString('base64url')}`;
    expect(await answer(signed(encode(header), encode(claims)))).toBe('none');
    for (const [head, payload] of [
      // the last of two members of one name would count
      [`{"alg":"none",${header.slice(1)}`, claims],
      [`{"kid":"ZZZZZZZZZZZZZZZZ",${header.slice(1)}`, claims],
      [header, `{"sub":"aff_other",${claims.slice(1)}`],
      [header, claims.replace('"exp":', '"exp":1,"exp":')],
      [` ${header}`, claims],
      [header, `${claims}\n`],
      [header, claims.replace('"iss"', '"\\u0069ss"')],
      [header, claims.replace(/"iat":(\d+)/, '"iat":$1.0')],
      [header, `${claims.slice(0, -1)},"__proto__":{"sub":"x"}}`.replace(/"sub":"[^"]*",/, '')],
    ] as const) {
      expect(await answer(signed(encode(head), encode(payload))), `${head} ${payload}`).toBe('invalid_token');
    }
    // bits behind the last byte: the same bytes to a lenient decoder
    const payload = [encode(claims), encode({ ...claimsOf(good), note: 'x' }), encode({ ...claimsOf(good), note: 'xy' })].find(
      (one) => one.length % 4 !== 0,
    ) as string;
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_';
    const withBits = `${payload.slice(0, -1)}${alphabet[alphabet.indexOf(payload.at(-1) as string) + 1]}`;
    expect(Buffer.from(withBits, 'base64url')).toEqual(Buffer.from(payload, 'base64url'));
    expect(await answer(signed(encode(header), payload))).toBe('none');
    expect(await answer(signed(encode(header), withBits))).toBe('invalid_token');
  });

  it('is refused when a claim is missing, foreign or of a wrong type', async () => {
    const now = Math.floor(setup.ctx.ports.clock.now() / 1000);
    for (const claims of [
      { iss: 'other' },
      { iss: undefined },
      { aud: 'mainnet' },
      { aud: undefined },
      { sub: undefined },
      { sub: 'aff_other' },
      { sub: 7 },
      { sid: undefined },
      { sid: 'sin_other' },
      { sid: ['x'] },
      { sid: 'a\0b' },
      { jti: undefined },
      { jti: null },
      { iat: undefined },
      { nbf: undefined },
      { exp: undefined },
      { exp: '9999999999' },
      { exp: 1e20 },
      { exp: now + 900.5 },
      { iat: now - 1, exp: now + 900 },
      { iat: now, exp: now + 1_296_000 },
      { nbf: now + 60 },
      { iat: now + 60, exp: now + 960 },
    ]) {
      expect(await answer(forged({ claims })), JSON.stringify(claims)).toBe('invalid_token');
    }
    for (const payload of ['null', '[]', '7', '"x"', '{', ''])
      expect(await answer(forged({ payload })), payload).toBe('invalid_token');
  });

  it('is refused in the place of the other kind', async () => {
    expect(await answer(goodRefresh)).toBe('invalid_token');
  });

  it('is refused when another installation signed it, and taken from a trusted key under its own name only', async () => {
    const { clock } = setup.ctx.ports;
    const stranger = createTokens({ clock, audience: 'sandbox' });
    stranger.signingKey();
    const claims = claimsOf(good) as { sub: string; sid: string; jti: string; iat: number };
    expect(await answer(stranger.sign('access', claims))).toBe('invalid_token');
    const forgedKid = forged({ header: { kid: headerOf(good).kid } });
    expect(await answer(forgedKid)).toBe('invalid_token');
  });
});

describe('the signing key', () => {
  it('is replaced after 90 days, and what it signed stays good', () => {
    let now = Date.now();
    const tokens = createTokens({ clock: { now: () => now }, audience: 'sandbox' });
    const claims = { sub: 'a', sid: 'b', jti: 'c' };
    const first = tokens.signingKey();
    now += 90 * 86_400_000 - 1000;
    expect(tokens.signingKey().kid).toBe(first.kid);
    const last = tokens.sign('refresh', { ...claims, iat: Math.floor(now / 1000) });
    now += 2000;
    expect(tokens.signingKey().kid).not.toBe(first.kid);
    now += 1_295_000_000;
    expect(now).toBeLessThan(first.uselessAfterMs);
    expect(tokens.verify(last, 'refresh')).toMatchObject(claims);
  });

  it('signs the same claims to the same token', () => {
    const tokens = createTokens({ clock: { now: () => Date.now() }, audience: 'sandbox' });
    const claims = { sub: 'a', sid: 'b', jti: 'c', iat: 1_700_000_000 };
    expect(tokens.sign('access', claims)).toBe(tokens.sign('access', claims));
  });

  it('is stored with its public half only, and removed when nothing that it signed can be alive', async () => {
    const count = async (): Promise<bigint> =>
      (await setup.ctx.db.query<{ n: bigint }>({ text: 'select count(*) as n from signing_keys' })).rows[0]?.n as bigint;
    await signIn(setup.anotherProcess(), { username: 'shop', password: PASSWORD });
    expect(await count()).toBe(2n);
    const { rows } = await setup.ctx.db.query<{ text: string }>({
      text: 'select jsonb_agg(k)::text as text from signing_keys k',
    });
    expect(rows[0]?.text).toContain('BEGIN PUBLIC KEY');
    expect(rows[0]?.text).not.toContain('PRIVATE');
    setup.advance(106 * 86_400);
    await signIn(setup.ctx, { username: 'shop', password: PASSWORD });
    expect(await count()).toBe(1n);
  });
});
