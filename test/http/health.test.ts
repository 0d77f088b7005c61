// /healthz and /readyz: what they answer, without a token and uncounted.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Components, documentSchema } from '../../src/contract/shapes.ts';
import { readiness } from '../../src/contract/system-api.ts';
import { fits, type Schema } from '../support/schema-check.ts';
import { type ApiServer, makeApi } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/;

describe('health and documents', () => {
  test('/healthz and /readyz answer 200 and are not counted', async () => {
    const health = await api.send('/healthz', undefined, {}, 'GET');
    expect([health.status, health.json, health.headers.get('x-ratelimit-limit')]).toEqual([200, { status: 'ok' }, null]);
    const ready = await api.send('/readyz', undefined, {}, 'GET');
    expect(ready.status).toBe(200);
    expect(ready.json.status).toBe('ready');
    expect(ready.json.currencies.BTC).toMatchObject({ state: 'ready', reason: null, height: 100 });
    expect(ready.headers.get('x-request-id')).toMatch(/^req_/);
  });
  test('/readyz names the node in use, what is wrong with the others, and what an audit has stopped', async () => {
    const before = await api.send('/readyz', undefined, {}, 'GET');
    expect(before.json).toMatchObject({ breakers: [], currencies: { BTC: { others: [] } } });
    await api.sql(
      `update node_conditions set node = '10.0.0.7:8332', others = array['10.0.0.8:8332: ECONNREFUSED'] where currency = 'BTC'`,
    );
    await api.sql(
      `insert into breakers (name, tripped_by, findings, tripped_at, seen_at) values ('payouts', '{INV-4}', '{INV-4: something}', now(), now())`,
    );
    const { json, status } = await api.send('/readyz', undefined, {}, 'GET');
    expect([status, json.status]).toEqual([200, 'ready']);
    expect(json.currencies.BTC).toMatchObject({ node: '10.0.0.7:8332', others: ['10.0.0.8:8332: ECONNREFUSED'] });
    expect(json.problems).toEqual(
      expect.arrayContaining([
        'BTC: 10.0.0.8:8332: ECONNREFUSED',
        'payouts are stopped by a red audit (INV-4): see bursar audit',
      ]),
    );
    expect(json.breakers).toEqual([
      { name: 'payouts', tripped_by: ['INV-4'], tripped_at: expect.stringMatching(TIME), seen_at: expect.stringMatching(TIME) },
    ]);
    const schemas: Components = new Map();
    fits(json, documentSchema(readiness, schemas) as Schema, Object.fromEntries(schemas) as Record<string, Schema>, '/readyz');
    await api.sql('delete from breakers');
  });
  test('/readyz names a database transaction that writes events and does not end, and is silent when it has', async () => {
    const problems = async (): Promise<string[]> => (await api.send('/readyz', undefined, {}, 'GET')).json.problems;
    const { json } = await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
    await api.ctx.db.transaction(async (sql) => {
      await sql.query({
        text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
                 select merchant_id, id, 2, 'transaction.reorged', 'started', 'started', 'a test', now() from transactions where id = $1`,
        values: [json.transaction_id],
      });
      expect((await problems()).filter((one) => one.includes('events'))).toEqual([]);
      // as if it had been open for a minute
      const text = `select pg_backend_pid() as pid,
          pg_advisory_xact_lock_shared(hashtext('event writers since'), l.objid::bigint::integer - 60) as aged
        from pg_locks l where l.pid = pg_backend_pid() and l.locktype = 'advisory' and l.objsubid = 2`;
      const [row] = (await sql.query<{ pid: number }>({ text })).rows;
      const [found, ...more] = (await problems()).filter((one) => one.includes('events'));
      expect(more).toEqual([]);
      expect(found).toMatch(
        new RegExp(
          `^a database transaction that writes events has not ended since 20\\S+Z \\(process ${row?.pid} of PostgreSQL, test\\)`,
        ),
      );
      const since = Date.parse(/since (\S+)/.exec(found ?? '')?.[1] ?? '');
      expect(Math.abs(Date.now() - 60_000 - since)).toBeLessThan(30_000);
    });
    expect((await problems()).filter((one) => one.includes('events'))).toEqual([]);
  });

  test('/readyz names webhooks whose secrets this key does not open', async () => {
    const problems = async (): Promise<string[]> =>
      (await api.send('/readyz', undefined, {}, 'GET')).json.problems.filter((one: string) => one.includes('webhook'));
    const { json } = await api.call('/create_webhook', { url: 'http://127.0.0.1:1/' });
    expect(await problems()).toEqual([]);
    await api.sql(`update webhooks set secret = 'sealed:!' where id = $1`, [json.webhook.id]);
    expect(await problems()).toEqual([expect.stringMatching(new RegExp(`^1 of .*${json.webhook.id}.*BURSAR_WEBHOOK_KEY`))]);
    await api.call('/rotate_webhook_secret', { webhook_id: json.webhook.id });
    expect(await problems()).toEqual([]);
  });

  test('/readyz names endpoints that take nothing for half an hour, by what they last did, and no more than five', async () => {
    const problems = async (): Promise<string[]> =>
      (await api.send('/readyz', undefined, {}, 'GET')).json.problems.filter((one: string) => one.includes('webhook'));
    const { json } = await api.call('/create_webhook', { url: 'http://127.0.0.1:1/secret' });
    await api.call('/create_transaction', { amount: '25.00', crypto_selected: 'BTC' });
    const tried = (status: number | null, error: string | null) =>
      api.sql(
        `insert into delivery_attempts (webhook, event_id, at, took_ms, status, error, answer)
           select number, 1, $2, 1, $3, $4, 'secret' from webhooks where id = $1`,
        [json.webhook.id, new Date(api.now()), status, error],
      );
    await tried(204, null);
    await tried(null, 'address_not_allowed: shop.example leads to 10.0.0.1');
    expect(await problems()).toEqual([]);
    api.advance(31 * 60);
    await api.reopen();
    await api.sql('delete from deliveries where event_id > (select min(event_id) from deliveries)');
    const [said, ...more] = await problems();
    expect(more).toEqual([]);
    expect(said).toMatch(
      new RegExp(
        `^webhook ${json.webhook.id} takes nothing \\(address_not_allowed at 20\\S+Z\\): 1 event waits for it since 20\\S+Z; see bursar webhook show ${json.webhook.id}$`,
      ),
    );
    for (const [count, words] of [
      [2, '2 events wait'],
      [9_999, '9999 events wait'],
      [10_000, 'at least 10000 events wait'],
    ] as const) {
      await api.sql(
        `insert into deliveries (webhook, event_id, due_at)
           select number, 1000000 + n, now() from webhooks, generate_series(2, $2::int) n where id = $1 on conflict do nothing`,
        [json.webhook.id, count],
      );
      expect((await problems())[0]).toContain(`: ${words} for it since `);
    }
    await api.sql('delete from deliveries where event_id > 1000000');
    await tried(503, null);
    expect((await problems())[0]).toContain('(status 503 at ');
    await tried(200, null);
    expect(await problems()).toEqual([]);
    // whoever took something within half an hour is not named for what was asked for again
    await tried(500, null);
    expect(await problems()).toEqual([]);
    api.advance(31 * 60);
    await api.reopen();
    expect((await problems())[0]).toContain('(status 500 at ');
    for (let n = 0; n < 6; n++) {
      await api.sql(
        `with w as (insert into webhooks (id, merchant_id, url, secret, created_at) select 'wh_' || $1, merchant_id, url, secret, now() from webhooks where id = $2 returning number),
              a as (insert into delivery_attempts (webhook, event_id, at, took_ms, status, answer) select number, 1, now(), 1, 500, '' from w)
         insert into deliveries (webhook, event_id, due_at) select w.number, min(d.event_id), now() from w, deliveries d group by 1`,
        [n, json.webhook.id],
      );
    }
    const all = await problems();
    expect(all.map((one) => one.startsWith('webhook wh_'))).toEqual([true, true, true, true, true, false]);
    expect(all.at(-1)).toBe('more webhooks fail: see bursar webhook list --failing');
    await api.sql(`delete from deliveries d using webhooks w where w.number = d.webhook and w.id in ('wh_4', 'wh_5')`);
    expect((await problems()).map((one) => one.startsWith('webhook wh_'))).toEqual([true, true, true, true, true]);
    await api.sql('delete from deliveries');
    expect(await problems()).toEqual([]);
  });
});
