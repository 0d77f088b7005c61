// Rate limits hold across all servers of one database: in turns, at the same time, at a server that came later, and after one has gone. A
// server that is alone counts by itself and does not use the database.
import { afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { guardedSignIn } from '../../src/flow/sign-in/lockout.ts';
import { createLimiter, type Limiter } from '../../src/http/rate-limit.ts';
import { NOT_SHARED } from '../../src/http/shared-limits.ts';
import { openApiPeers } from '../../src/main/wiring/api-peers.ts';
import { connect } from '../../src/store/postgres/connect.ts';
import { makeSignInSetup, PASSWORD, refusalOf, type SignInSetup } from '../flow/sign-in/setup.ts';
import { freshDatabase } from '../support/postgres.ts';
import { eventually } from '../support/service.ts';
import { makeApi } from './api-server.ts';

type Server = { readonly auth: Limiter<string>; readonly create: Limiter<bigint>; isAlone(): boolean; leave(): Promise<void> };

let database: Awaited<ReturnType<typeof freshDatabase>>;
let servers: Server[];
let troubles: unknown[];
let nowMs: number;
beforeEach(async () => {
  database = await freshDatabase();
  [servers, troubles, nowMs] = [[], [], Date.parse('2026-01-01T00:00:00Z')];
});
afterEach(async () => {
  for (const server of servers) await server.leave();
  await database.drop();
  expect(troubles).toEqual([]);
});

async function open(): Promise<Server> {
  const db = connect({ url: database.url, role: 'bursar_app', maxConnections: 4, applicationName: 'test server' });
  const { sharedLimits, join, leave } = openApiPeers(
    db,
    () => nowMs,
    (error) => troubles.push(error),
  );
  const server: Server = {
    auth: createLimiter<string>('auth', { perMinute: 20 }, 1, sharedLimits),
    create: createLimiter<bigint>('create', { perMinute: 120, burst: 60 }, 1, sharedLimits, BigInt),
    isAlone: () => sharedLimits.alone,
    async leave() {
      servers = servers.filter((other) => other !== server);
      await leave();
      await db.close();
    },
  };
  await join();
  servers.push(server);
  return server;
}
/** How many of so many calls pass, which take turns at these servers. */
async function passing(count: number, at: readonly Server[], key = '192.0.2.1'): Promise<number> {
  let passed = 0;
  for (let n = 0; n < count; n++) if (await at[n % at.length]?.auth.take(key, nowMs)) passed += 1;
  return passed;
}
const remaining = (server: Server, key = '192.0.2.1'): string | undefined => {
  const headers = new Map<string, string>();
  server.auth.describe({ header: (name, value) => headers.set(name, value) }, key, nowMs);
  return headers.get('x-ratelimit-remaining');
};
const rows = async (): Promise<bigint | undefined> =>
  (await database.db.query<{ n: bigint }>({ text: 'select count(*) as n from call_counts' })).rows[0]?.n;

describe('servers on one database', () => {
  test('one alone answers at once and writes nothing', async () => {
    const server = await open();
    expect(server.isAlone()).toBe(true);
    expect(server.auth.take('192.0.2.1', nowMs)).toBe(true);
    expect(await rows()).toBe(0n);
  });
  test('calls that take turns at two servers pass as often as at one, and the headers count down', async () => {
    const two = [await open(), await open()];
    expect(two.map((server) => server.isAlone())).toEqual([false, false]);
    expect(await passing(40, two)).toBe(20);
    expect(two.map((server) => remaining(server))).toEqual(['0', '0']);
    nowMs += 6_000;
    expect(await passing(10, two)).toBe(2);
    expect(await passing(4, two, '192.0.2.2')).toBe(4);
    expect(two.map((server) => remaining(server, '192.0.2.2'))).toEqual(['17', '16']);
  });
  test('calls side by side at three servers pass as often as at one', async () => {
    const three = [await open(), await open(), await open()];
    const auth = Array.from({ length: 90 }, (_, n) => three[n % 3]?.auth.take('192.0.2.1', nowMs));
    const create = Array.from({ length: 300 }, (_, n) => three[n % 3]?.create.take(7n, nowMs));
    expect((await Promise.all(auth.map(async (one) => await one))).filter(Boolean)).toHaveLength(20);
    expect((await Promise.all(create.map(async (one) => await one))).filter(Boolean)).toHaveLength(60);
  });
  test('a server that comes later knows what was counted before it came', async () => {
    const first = await open();
    expect(await passing(15, [first])).toBe(15);
    const second = await open();
    expect(await passing(20, [second])).toBe(5);
    expect(await passing(5, [first])).toBe(0);
  });
  test('calls that are made while another server comes are counted once each', async () => {
    const first = await open();
    let passed = 0;
    const coming = open();
    let came = false;
    void coming.then(() => {
      came = true;
    });
    while (!came) {
      if (await first.create.take(7n, nowMs)) passed += 1;
      await new Promise((resolve) => {
        setTimeout(resolve, 2);
      });
      if (passed === 50) break;
    }
    const second = await coming;
    for (let n = 0; n < 80; n++) if (await second.create.take(7n, nowMs)) passed += 1;
    expect(passed).toBe(60);
  });
  test('who is left goes on with what both counted, by itself', async () => {
    const [first, second] = [await open(), await open()];
    expect(await passing(18, [first, second])).toBe(18);
    await second.leave();
    await eventually('the first is alone', () => first.isAlone());
    expect(first.auth.take('192.0.2.1', nowMs)).toBe(true);
    expect(await passing(10, [first])).toBe(1);
    expect(await rows()).toBe(0n);
  });
  test('a server that is stopped and started again goes on where it was', async () => {
    await passing(15, [await open()]);
    await servers[0]?.leave();
    expect(await passing(10, [await open()])).toBe(5);
  });
  test('a server whose session breaks counts with the others until it is alone again', async () => {
    const first = await open();
    await passing(15, [first]);
    await operator(`select pg_terminate_backend(pid) from pg_stat_activity where pid in (select pid from pg_locks where locktype = 'advisory'
      and database = (select oid from pg_database where datname = current_database()))`);
    await eventually('the break is noticed', () => !first.isAlone());
    expect(await passing(10, [first])).toBe(5);
    await eventually('it is alone again', () => first.isAlone());
    expect(await passing(3, [first])).toBe(0);
  });
});

async function operator(text: string): Promise<void> {
  const db = connect({ url: database.url, role: null, maxConnections: 1, applicationName: 'test operator' });
  await db.query({ text });
  await db.close();
}

test('what another server revoked is refused at the next call, before its notification has come', async () => {
  const api = await makeApi({ sharedLimits: { ...NOT_SHARED, alone: false } });
  expect((await api.call('/get_account_info', {})).status).toBe(200);
  await api.sql('alter table sign_ins disable trigger announce');
  await api.sql(`update sign_ins set revoked_at = now(), revoked_because = 'signed_out'`);
  expect((await api.call('/get_account_info', {})).json.error).toBe('invalid_token');
  await api.end();
});

describe('failed sign-ins', () => {
  let setup: SignInSetup;
  beforeAll(async () => {
    setup = await makeSignInSetup();
    return () => setup.end();
  });
  const from = (ipAddress: string) => ({ ipAddress, allowed: 5 });
  const wrong = { username: 'shop', password: 'wrong' };

  test('in turns at two servers: five answers, then the right password is refused too, also by a server that was not there', async () => {
    const [here, there] = [setup.ctx, setup.anotherProcess()];
    for (let n = 0; n < 5; n++) {
      expect(await refusalOf(() => guardedSignIn(n % 2 === 0 ? here : there, wrong, from('192.0.2.1')))).toBe(
        'invalid_credentials',
      );
    }
    const right = { username: 'SHOP', password: PASSWORD };
    for (const ctx of [here, there, setup.anotherProcess()]) {
      await expect(guardedSignIn(ctx, right, from('192.0.2.1'))).rejects.toMatchObject({
        code: 'rate_limited',
        retryAfterSeconds: 900,
      });
    }
    expect(await refusalOf(() => guardedSignIn(here, right, from('192.0.2.2')))).toBe('none');
    setup.advance(900);
    expect(await refusalOf(() => guardedSignIn(there, right, from('192.0.2.1')))).toBe('none');
  });
  test('side by side at two servers: five answers', async () => {
    const two = [setup.ctx, setup.anotherProcess()];
    const guesses = Array.from({ length: 12 }, (_, n) =>
      refusalOf(() => guardedSignIn(two[n % 2] as typeof setup.ctx, wrong, from('192.0.2.3'))),
    );
    const answers = await Promise.all(guesses);
    expect(answers.filter((code) => code === 'invalid_credentials')).toHaveLength(5);
    expect(answers.filter((code) => code === 'rate_limited')).toHaveLength(7);
  });
  test('what is over is removed by those that come after it', async () => {
    const counted = async () =>
      (await setup.ctx.db.query<{ n: bigint }>({ text: 'select count(*) as n from failed_sign_ins' })).rows[0]?.n;
    for (let n = 0; n < 4; n++) await refusalOf(() => guardedSignIn(setup.ctx, wrong, from(`198.51.100.${n}`)));
    setup.advance(900);
    await refusalOf(() => guardedSignIn(setup.ctx, wrong, from('198.51.100.0')));
    expect(await counted()).toBe(1n);
  });
});
