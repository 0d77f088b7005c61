// Refresh tokens rotate as the model at the end of this file says: one test for each of its protections, by the protection's name, and random walks
// of owner, second program and thief that must stay in step with the model.
import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { judgeRefresh, refresh } from '../../../src/flow/sign-in/refresh-tokens.ts';
import { createAuthenticator, signIn } from '../../../src/flow/sign-in/sign-in.ts';
import type { TokenPair } from '../../../src/flow/sign-in/token-pair.ts';
import { makeSignInSetup, PASSWORD, refusalOf, type SignInSetup, sameTokens } from './setup.ts';

let setup: SignInSetup;
beforeAll(async () => {
  setup = await makeSignInSetup();
});
afterAll(() => setup.end());

const start = (): Promise<TokenPair> => signIn(setup.ctx, { username: 'shop', password: PASSWORD });
const next = (pair: TokenPair): Promise<TokenPair> => refresh(setup.ctx, pair);
const refused = (pair: TokenPair): Promise<string> => refusalOf(() => next(pair));
async function use(pair: TokenPair): Promise<void> {
  const authenticator = createAuthenticator(setup.ctx);
  await authenticator.authenticate(pair.accessToken);
  await authenticator.close();
}

describe('RefreshRotation', () => {
  it('grace: who lost the answer gets the identical pair within 30 s, also when a second program has used it', async () => {
    const first = await start();
    const second = await next(first);
    await use(second);
    setup.advance(30);
    expect(sameTokens(await next(first), second)).toBe(true);
    expect(sameTokens(await next(first), second)).toBe(true);
    expect(sameTokens(await refresh(setup.anotherProcess(), first), second)).toBe(true);
    expect(await refused(second)).toBe('none');
  });

  it('grace: not once the successor’s refresh token is consumed', async () => {
    const first = await start();
    const third = await next(await next(first));
    expect(await refused(first)).toBe('refresh_token_reused');
    expect(await refused(third)).toBe('invalid_token');
  });

  it('unused_successor: after 30 s, up to 15 min, as long as nobody has shown a token of the successor', async () => {
    const first = await start();
    const second = await next(first);
    setup.advance(900);
    expect(sameTokens(await next(first), second)).toBe(true);
    setup.advance(1);
    expect(await refused(first)).toBe('refresh_token_reused');
  });

  it('unused_successor: not after its access token was presented', async () => {
    const first = await start();
    await use(await next(first));
    setup.advance(31);
    expect(await refused(first)).toBe('refresh_token_reused');
  });

  it('unused_successor: not after its access or refresh token was presented to a refresh', async () => {
    const stranger = await start();
    const presented = [
      async (first: TokenPair, second: TokenPair) => refused({ ...first, accessToken: second.accessToken }),
      async (_: TokenPair, second: TokenPair) => refused({ ...second, accessToken: stranger.accessToken }),
      async (_: TokenPair, second: TokenPair) => refused({ ...second, refreshToken: stranger.refreshToken }),
    ];
    for (const present of presented) {
      const first = await start();
      await present(first, await next(first));
      setup.advance(31);
      expect(await refused(first)).toBe('refresh_token_reused');
    }
  });

  it('grace_bound: a third rotation in a row that needs the grace revokes', async () => {
    let pair = await start();
    for (let rotation = 0; rotation < 2; rotation++) {
      const successor = await next(pair);
      expect(sameTokens(await next(pair), successor)).toBe(true);
      expect(sameTokens(await next(pair), successor)).toBe(true);
      pair = successor;
    }
    const last = await next(pair);
    expect(await refused(pair)).toBe('refresh_token_reused');
    expect(await refused(last)).toBe('invalid_token');
  });

  it('grace_bound: a rotation without grace begins the count anew', async () => {
    let pair = await start();
    for (let rotation = 0; rotation < 6; rotation++) {
      const successor = await next(pair);
      if (rotation % 3 !== 2) expect(sameTokens(await next(pair), successor)).toBe(true);
      pair = successor;
    }
    expect(await refused(pair)).toBe('none');
  });

  it('reuse_revokes: when one of owner and thief is refused, both are out', async () => {
    const stolen = await start();
    const owners = await next(stolen);
    await use(owners);
    setup.advance(60);
    expect(await refused(stolen)).toBe('refresh_token_reused');
    expect(await refused(stolen)).toBe('invalid_token');
    expect(await refused(owners)).toBe('invalid_token');
    expect(await refusalOf(() => use(owners))).toBe('invalid_token');
  });
});

describe('a refresh', () => {
  it('takes an access token that has expired, and refuses a refresh token that has', async () => {
    const pair = await start();
    setup.advance(1_295_998);
    const last = await next(pair);
    setup.advance(1_296_000);
    expect(await refused(last)).toBe('refresh_token_expired');
  });

  it('refuses tokens of two sign-ins, or in each other’s place, and consumes nothing', async () => {
    const [a, b] = [await start(), await start()];
    expect(await refused({ accessToken: a.accessToken, refreshToken: b.refreshToken })).toBe('invalid_token');
    expect(await refused({ accessToken: a.refreshToken, refreshToken: a.refreshToken })).toBe('invalid_token');
    expect(await refused({ accessToken: a.accessToken, refreshToken: a.accessToken })).toBe('invalid_token');
    expect(await refused(a)).toBe('none');
    expect(await refused(b)).toBe('none');
  });

  it('revokes when a consumed token that no grace covers comes back, whatever access token comes along', async () => {
    for (const accessToken of ['garbage', (await start()).accessToken]) {
      const first = await start();
      const second = await next(first);
      expect(await refused({ accessToken, refreshToken: first.refreshToken })).toBe('invalid_token');
      const third = await next(second);
      expect(await refused({ accessToken, refreshToken: first.refreshToken })).toBe('refresh_token_reused');
      expect(await refused(third)).toBe('invalid_token');
    }
  });

  it('gives many at once the identical pair', async () => {
    const pair = await start();
    const all = await Promise.all(Array.from({ length: 20 }, () => next(pair)));
    expect(new Set(all.map((one) => one.refreshToken)).size).toBe(1);
    expect(new Set(all.map((one) => one.accessToken)).size).toBe(1);
  });

  it('takes an older access token of the same sign-in', async () => {
    const first = await start();
    const second = await next(first);
    expect(await refused({ accessToken: first.accessToken, refreshToken: second.refreshToken })).toBe('none');
  });

  it('stores neither token nor key: the kept pair opens only under the consumed refresh token', async () => {
    const first = await start();
    const second = await next(first);
    const { rows } = await setup.ctx.db.query<{ row: string }>({
      text: `select to_jsonb(s)::text || coalesce((select jsonb_agg(k)::text from signing_keys k), '') as row from sign_ins s`,
    });
    const stored = rows.map(({ row }) => row + Buffer.from(row).toString('latin1')).join();
    for (const token of [first.accessToken, first.refreshToken, second.accessToken, second.refreshToken]) {
      for (const part of token.split('.').slice(1)) {
        expect(stored).not.toContain(part);
        expect(stored).not.toContain(Buffer.from(part).toString('hex'));
      }
    }
    expect(stored).not.toContain('PRIVATE');
  });
});

// ---- the model -----------------------------------------------------------------------------------

type Model = { revoked: boolean; late: boolean; used: boolean; gThis: boolean; gRow: number };
type Answer = 'rotate' | 'again' | 'reused' | 'invalid';

function modelRefresh(model: Model, age: number): Answer {
  if (model.revoked) return 'invalid';
  if (age === 0) {
    model.gRow = model.gThis ? model.gRow : 0;
    model.gThis = false;
    model.late = false;
    model.used = false;
    return 'rotate';
  }
  if (age === 1 && (!model.late || !model.used) && (model.gThis || model.gRow < 2)) {
    model.gRow = model.gThis ? model.gRow : model.gRow + 1;
    model.gThis = true;
    return 'again';
  }
  model.revoked = true;
  return 'reused';
}

type Step = { kind: 'refresh' | 'lose' | 'use' | 'steal' | 'late'; who: 0 | 1 };
const steps = fc.array(
  fc.record({
    kind: fc.constantFrom<Step['kind'][]>('refresh', 'refresh', 'lose', 'use', 'steal', 'late'),
    who: fc.constantFrom<(0 | 1)[]>(0, 1),
  }),
  { minLength: 12, maxLength: 30 },
);

async function walk(list: readonly Step[]): Promise<void> {
  const model: Model = { revoked: false, late: false, used: false, gThis: false, gRow: 0 };
  // the pairs in order; each of the two holders holds the number of one
  const pairs = [await start()];
  const holds = [0, -1];
  const inRow = { both: false, count: 0 };
  for (const { kind, who } of list) {
    const held = holds[who] as number;
    const newest = pairs.length - 1;
    if (kind === 'steal' && holds[1] === -1) holds[1] = holds[0] as number;
    if (kind === 'late') {
      // what is within 30 s must not become more than 15 min in one walk
      if (!model.late) setup.advance(31);
      model.late = true;
    }
    if (held === -1) continue;
    if (kind === 'use' && held === newest && !model.revoked) {
      await use(pairs[held] as TokenPair);
      model.used = true;
    }
    if (kind !== 'refresh' && kind !== 'lose') continue;
    const expected = modelRefresh(model, newest - held);
    const outcome = await refresh(setup.ctx, pairs[held] as TokenPair).catch((error: { code: string }) => error.code);
    if (expected === 'rotate') pairs.push(outcome as TokenPair);
    else if (expected === 'again') expect(sameTokens(outcome as TokenPair, pairs[newest] as TokenPair)).toBe(true);
    else expect(outcome).toBe(expected === 'reused' ? 'refresh_token_reused' : 'invalid_token');
    const got = expected === 'rotate' || expected === 'again';
    if (got && kind === 'refresh') holds[who] = pairs.length - 1;
    if (expected === 'rotate') inRow.count = inRow.both ? inRow.count : 0;
    const both = holds[0] === pairs.length - 1 && holds[1] === pairs.length - 1;
    if (both && !inRow.both) inRow.count += 1;
    inRow.both = both;
    expect(inRow.count, 'ThiefEnds').toBeLessThanOrEqual(3);
  }
}

describe('the judge of refreshes', () => {
  it('agrees with the model in every one of its states', () => {
    const hashes = [0, 1, 2].map((age) => Buffer.alloc(32, age));
    const [newest, before] = hashes as [Buffer, Buffer];
    const yesNo = [false, true];
    for (const late of yesNo)
      for (const used of yesNo)
        for (const gThis of yesNo)
          for (const gRow of [0, 1, 2])
            for (const age of [0, 1, 2]) {
              const model: Model = { revoked: false, late, used, gThis, gRow };
              const previous = { refreshHash: before, consumedAt: new Date(0), sealedPair: before };
              const rotation = { refreshHash: newest, previous, handedOutAgain: gThis, gracesInARow: gRow };
              const use = { refreshHash: hashes[age] as Buffer, presented: used, nowMs: late ? 30_001 : 30_000 };
              const state = JSON.stringify({ model, age });
              const expected = modelRefresh(model, age);
              expect(judgeRefresh(rotation, use).verdict, state).toBe(expected);
              if (expected !== 'reused') expect(judgeRefresh(rotation, use).gracesInARow, state).toBe(model.gRow);
            }
  });
});

describe('random walks of two holders', () => {
  it('answer as the model does, and never let both go on for ever', async () => {
    await fc.assert(fc.asyncProperty(steps, walk), { numRuns: 80 });
  }, 120_000);
});
