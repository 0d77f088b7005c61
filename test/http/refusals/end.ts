// Tests that leave rows behind or change the service for good, and so come last: used keys, states, times, suspension, limits, bugs, an
// absent database; and whether every documented refusal has occurred. Last section of refusals.test.ts.
import { expect, test } from 'vitest';
import { refusalsOf } from '../../../src/contract/endpoint.ts';
import { MERCHANT_API } from '../../../src/contract/merchant-api.ts';
import { createAuthenticator, signIn } from '../../../src/flow/sign-in/sign-in.ts';
import { createServer } from '../../../src/http/server.ts';
import { NOT_SHARED } from '../../../src/http/shared-limits.ts';
import { openEventTail } from '../../../src/main/wiring/event-tail.ts';
import { createCheckoutTokens } from '../../../src/outside/checkout-tokens.ts';
import { connect } from '../../../src/store/postgres/connect.ts';
import { freePort } from '../../support/core-daemon.ts';
import { SEALS } from '../../support/ports.ts';
import { makeApi, PASSWORD, type Reply } from '../api-server.ts';
import { NAMES, type Name, type RefusedCalls, WITH_TOKEN } from './refused-calls.ts';

export function refusesInTheEnd(calls: RefusedCalls): void {
  const { good, note, refused } = calls;

  test('nothing of all this has left a row behind', async () => {
    // but the count of failed sign-ins, which is there to stay for its window
    const { failed_sign_ins: failed, ...rows } = await calls.api.rowCounts();
    expect({ ...rows, failed_sign_ins: 0 }).toEqual(calls.rowsBefore);
    expect(failed).toBeGreaterThan(0);
    expect(calls.api.bugs).toEqual([]);
  });
  test('keys that were used with another body', async () => {
    const pairs: Partial<Record<Name, object>> = {
      createTransaction: { amount: '6' },
      cancelTransaction: { x: 1 },
      resolveTransaction: { x: 1 },
      setSettings: { x: 1 },
      requestPayout: { amount: '0.02' },
      cancelPayout: { x: 1 },
      setPayoutSettings: { x: 1 },
      createWebhook: { x: 1 },
      redeliverEvent: { x: 1 },
      rotateWebhookSecret: { x: 1 },
      deleteWebhook: { x: 1 },
    };
    for (const [name, change] of Object.entries(pairs) as [Name, object][]) {
      const key = { 'idempotency-key': 'other body' };
      await calls.api.call(MERCHANT_API[name].path, good(name), key);
      await refused(name, 'idempotency_conflict', { ...good(name), ...change }, key);
    }
    const { access_token } = (await calls.api.send('/auth', good('auth'))).json;
    await calls.api.send('/sign_out', { access_token }, { 'idempotency-key': 'other body' });
    await refused('signOut', 'idempotency_conflict', { x: 1 }, { 'idempotency-key': 'other body' });
  });
  test('states and times', async () => {
    await calls.api.sql(`update transactions set status = 'succeeded' where id = $1`, [calls.transactionId]);
    const reply = await refused('cancelTransaction', 'transaction_not_cancellable', { transaction_id: calls.transactionId });
    expect(reply.json.message).toContain('succeeded');
    await refused('cancelPayout', 'payout_not_cancellable', { payout_id: calls.payoutId });
    for (let n = 1; n < 16; n++) await calls.api.call('/create_webhook', good('createWebhook'));
    await refused('createWebhook', 'too_many_webhooks', good('createWebhook'));
    await refused('listBalanceEntries', 'not_found', { starting_after: '999999999' });
    calls.api.advance(301);
    await refused('createTransaction', 'rate_unavailable', good('createTransaction'));
    const ach = { ...good('requestPayout'), method: 'ach', amount: '100', destination: 'ach:091000019:12345' };
    await refused('requestPayout', 'rate_unavailable', ach);
    calls.api.advance(600);
    for (const name of WITH_TOKEN) await refused(name, 'token_expired', good(name));
    const pair = (await calls.api.send('/auth', good('auth'))).json;
    await refused('refresh', 'conflicting_credentials', pair, { authorization: 'Bearer x' });
    const next = (await calls.api.send('/auth_refresh', pair)).json;
    expect((await calls.api.send('/auth_refresh', next)).status).toBe(200);
    await refused('refresh', 'refresh_token_reused', pair);
    const old = (await calls.api.send('/auth', good('auth'))).json;
    calls.api.advance(1_296_000);
    await refused('refresh', 'refresh_token_expired', old);
    await refused('refresh', 'invalid_token', { ...old, refresh_token: old.access_token });
  });
  test('a suspended account', async () => {
    calls.api.tokens.clear();
    const pair = (await calls.api.send('/auth', good('auth'))).json;
    await calls.api.tokenOf('shop');
    await calls.api.sql('update merchants set suspended_at = now() where affiliate_id = $1', [calls.api.affiliateId]);
    await expect.poll(async () => (await calls.api.call('/get_rates', {})).json.error).toBe('account_suspended');
    for (const name of WITH_TOKEN) await refused(name, 'account_suspended', good(name));
    await refused('auth', 'account_suspended', good('auth'));
    await refused('refresh', 'account_suspended', pair);
    await calls.api.sql('update merchants set suspended_at = null');
  });
  test('too many calls, and calls without TLS', async () => {
    const strict = await makeApi({ rateLimitScale: 0.001 });
    await strict.tokenOf('shop');
    for (const name of NAMES) {
      const { path, access } = MERCHANT_API[name];
      const call = () => (access.kind === 'token' ? strict.call(path, good(name)) : strict.send(path, good(name)));
      if (name !== 'auth') await call();
      if (name === 'signOut')
        strict.tokens.set('shop', (await signIn(strict.ctx, { username: 'shop', password: PASSWORD })).accessToken);
      const reply = note(name, await call());
      expect([name, reply.json.error]).toEqual([name, 'rate_limited']);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    await strict.end();
    const open = await makeApi({ network: 'regtest' });
    for (const name of NAMES) {
      expect(note(name, await open.send(MERCHANT_API[name].path, good(name))).json.error).toBe('https_required');
    }
    await open.end();
  });
  test('a bug is answered as internal_error without details, a database that is away as overloaded', async () => {
    const token = await calls.api.tokenOf('shop');
    const tables = [
      'public.sign_ins',
      'public.users',
      'public.merchants',
      'public.transactions',
      'public.merchant_settings',
      'public.rates',
    ];
    tables.push(
      'public.payouts',
      'public.payout_settings',
      'ledger.account',
      'public.signing_keys',
      'public.webhooks',
      'public.events',
    );
    const existing: string[] = [];
    for (const table of tables) {
      const [schema, name] = table.split('.') as [string, string];
      const [{ n }] = (await calls.api.sql('select count(*)::int as n from pg_tables where schemaname = $1 and tablename = $2', [
        schema,
        name,
      ])) as [{ n: number }];
      if (n === 1) existing.push(table);
    }
    const renew = (await calls.api.send('/auth', good('auth'))).json;
    await calls.api.call('/get_rates', {});
    for (const table of existing) await calls.api.sql(`alter table ${table} rename to ${table.split('.')[1]}_away`);
    for (const name of NAMES) {
      const body = name === 'refresh' ? renew : { access_token: token, ...good(name) };
      const reply = note(name, await calls.api.send(MERCHANT_API[name].path, body));
      expect([name, reply.status, reply.text]).toEqual([
        name,
        500,
        '{"error":"internal_error","message":"Something went wrong on our side."}',
      ]);
    }
    for (const table of existing) await calls.api.sql(`alter table ${table}_away rename to ${table.split('.')[1]}`);
    expect(calls.api.bugs.length).toBeGreaterThanOrEqual(NAMES.length);

    const db = connect({
      url: `postgres://x@127.0.0.1:${await freePort()}/x`,
      role: null,
      maxConnections: 2,
      applicationName: 'test',
    });
    const ctx = { ...calls.api.ctx, db };
    const authenticator = createAuthenticator(ctx);
    const away = createServer({
      ctx,
      authenticator,
      eventTail: openEventTail(db, () => undefined),
      network: 'sandbox',
      publicUrl: null,
      rateLimitScale: 1000,
      sharedLimits: NOT_SHARED,
      trustedProxies: [],
      sandbox: null,
      statusNotifier: { next: () => Promise.resolve() },
      report: () => undefined,
      version: '0',
      checkoutTokens: createCheckoutTokens(SEALS),
    });
    const base = await away.listen({ port: 0, host: '127.0.0.1' });
    const post = async (path: string, body: object): Promise<Reply> => {
      const response = await fetch(base + path, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify(body),
      });
      const text = await response.text();
      return { status: response.status, headers: response.headers, text, json: JSON.parse(text) };
    };
    for (const name of NAMES) {
      const body = name === 'refresh' ? renew : { access_token: token, ...good(name) };
      const reply = note(name, await post(MERCHANT_API[name].path, body));
      expect([name, reply.json.error]).toEqual([name, 'overloaded']);
      expect(reply.headers.get('retry-after')).toMatch(/^[1-9]\d*$/);
    }
    expect((await fetch(`${base}/readyz`)).status).toBe(503);
    expect((await fetch(`${base}/healthz`)).status).toBe(200);
    await away.close();
    await authenticator.close();
    await db.close();
  });
  test('every refusal that a document names has been given', () => {
    for (const name of NAMES) {
      const documented = refusalsOf(MERCHANT_API[name]);
      expect({ [name]: documented.filter((code) => !calls.seen.get(name)?.has(code)) }).toEqual({ [name]: [] });
    }
  });
}
