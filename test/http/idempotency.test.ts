// A key makes a write happen once: replays, conflicts, twenty at once, crashes in the middle, 24 hours, and which answers are not stored.
import type { QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { within } from '../../src/flow/context.ts';
import { answerOnce } from '../../src/flow/idempotency.ts';
import { createAuthenticator, signOut } from '../../src/flow/sign-in/sign-in.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { pruneKeys } from '../../src/store/transactions/idempotency.ts';
import { type ApiServer, makeApi, PASSWORD } from './api-server.ts';

let api: ApiServer;
beforeAll(async () => {
  api = await makeApi();
});
afterAll(async () => {
  expect(api.bugs).toEqual([]);
  await api.end();
});
const order = { amount: '25.00', crypto_selected: 'BTC', label: 'order' };
const key = (name: string) => ({ 'idempotency-key': name });
const count = async (table: string): Promise<number> =>
  ((await api.sql(`select count(*)::int as n from ${table}`)) as [{ n: number }])[0].n;

test('the same key and body: the stored answer, byte for byte, and one transaction', async () => {
  const first = await api.call('/create_transaction', order, key('a'));
  expect(first.headers.get('idempotent-replayed')).toBeNull();
  const before = await count('transactions');
  const again = await api.call('/create_transaction', order, key('a'));
  expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([200, first.text, 'true']);
  expect(again.headers.get('content-type')).toBe(first.headers.get('content-type'));
  expect(await count('transactions')).toBe(before);
});
test('the order of fields, /v1, the place of the key and of the token do not matter', async () => {
  const first = await api.call('/create_transaction', order, key('b'));
  const { label, amount, crypto_selected } = order;
  const token = await api.tokenOf('shop');
  const moved = { label, crypto_selected, idempotency_key: 'b', amount };
  const again = await api.send('/v1/create_transaction', moved, { authorization: `Bearer ${token}` });
  expect([again.text, again.headers.get('idempotent-replayed')]).toEqual([first.text, 'true']);
});
test('a retry after a refresh replays', async () => {
  const pair = (await api.send('/auth', { username: 'shop', password: PASSWORD })).json;
  const first = await api.send('/create_transaction', { ...order, access_token: pair.access_token }, key('c'));
  const next = (await api.send('/auth_refresh', pair)).json;
  const again = await api.send('/create_transaction', { ...order, access_token: next.access_token }, key('c'));
  expect(again.text).toBe(first.text);
});
test('another merchant and another operation have keys of their own', async () => {
  const first = await api.call('/create_transaction', order, key('d'));
  const other = await api.call('/create_transaction', order, key('d'), 'other');
  expect(other.json.transaction_id).not.toBe(first.json.transaction_id);
  const cancelled = await api.call('/cancel_transaction', { transaction_id: first.json.transaction_id }, key('d'));
  expect(cancelled.json.status).toBe('cancelled');
});
test('another body: 409 idempotency_conflict, and nothing happens', async () => {
  await api.call('/create_transaction', order, key('e'));
  const before = await count('transactions');
  for (const body of [
    { ...order, amount: '25' },
    { ...order, x: null },
    { ...order, label: undefined },
  ]) {
    const { status, json } = await api.call('/create_transaction', body, key('e'));
    expect([status, json.error]).toEqual([409, 'idempotency_conflict']);
  }
  expect(await count('transactions')).toBe(before);
});
test('twenty at once: one effect, the others get its answer or request_in_progress', async () => {
  const before = await count('transactions');
  const replies = await Promise.all(Array.from({ length: 20 }, () => api.call('/create_transaction', order, key('f'))));
  expect(await count('transactions')).toBe(before + 1);
  const made = new Set(replies.filter(({ status }) => status === 200).map(({ text }) => text));
  expect(made.size).toBe(1);
  for (const { status, json } of replies) if (status !== 200) expect([status, json.error]).toEqual([409, 'request_in_progress']);
});
test('twenty at once of a call that has its answer: each gets it', async () => {
  const first = await api.call('/create_transaction', order, key('answered'));
  const replies = await Promise.all(Array.from({ length: 20 }, () => api.call('/create_transaction', order, key('answered'))));
  expect(new Set(replies.map(({ text }) => text))).toEqual(new Set([first.text]));
  const other = { ...order, label: 'another' };
  const others = await Promise.all(Array.from({ length: 20 }, () => api.call('/create_transaction', other, key('answered'))));
  expect(new Set(others.map(({ json }) => json.error))).toEqual(new Set(['idempotency_conflict']));
});
test('many different keys at once do not stand in each other’s way', async () => {
  const replies = await Promise.all(
    Array.from({ length: 120 }, (_, n) => api.call('/create_transaction', order, key(`many ${n}`))),
  );
  expect(new Set(replies.map(({ json }) => json.wallet_address)).size).toBe(120);
});
test('refusals are not remembered, except those about a state', async () => {
  await api.call('/create_transaction', { ...order, amount: '0.49' }, key('g'));
  expect((await api.call('/create_transaction', order, key('g'))).status).toBe(200);

  const { transaction_id } = (await api.call('/create_transaction', order)).json;
  await api.sql(`update transactions set status = 'succeeded' where id = $1`, [transaction_id]);
  const refused = await api.call('/cancel_transaction', { transaction_id }, key('h'));
  expect(refused.json.error).toBe('transaction_not_cancellable');
  await api.sql(`update transactions set status = 'started' where id = $1`, [transaction_id]);
  const again = await api.call('/cancel_transaction', { transaction_id }, key('h'));
  expect([again.status, again.text, again.headers.get('idempotent-replayed')]).toEqual([409, refused.text, 'true']);
  expect((await api.call('/cancel_transaction', { transaction_id }, key('i'))).status).toBe(200);
});
test('a crash between effect and answer leaves neither, and the key free', async () => {
  const [{ id }] = (await api.sql('select id from merchants where affiliate_id = $1', [api.affiliateId])) as [{ id: bigint }];
  const of = {
    merchantId: BigInt(id),
    operation: '/create_transaction',
    key: 'crash',
    bodyHash: Buffer.alloc(32),
    kept: 'a day',
  } as const;
  const before = [await count('transactions'), await count('events'), await count('idempotency_keys')];
  const input = { merchantId: of.merchantId, usdMinor: 2500n, method: 'BTC', label: null, email: null } as const;
  const crashing = answerOnce(
    api.ctx,
    of,
    async (ctx) => {
      await createTransaction(ctx, input);
      await ctx.db.query({ text: 'select pg_terminate_backend(pg_backend_pid())' });
      return '{}';
    },
    () => '',
  );
  await expect(crashing).rejects.toThrow();
  expect([await count('transactions'), await count('events'), await count('idempotency_keys')]).toEqual(before);
  const answer = await answerOnce(
    api.ctx,
    of,
    async () => '{"done":true}',
    () => '',
  );
  expect(answer).toEqual({ httpStatus: 200, text: '{"done":true}', replayed: false });
});
test('after a keyed sign-out its token is refused, also where somebody looked it up between the effect and the commit', async () => {
  // gets nothing from the database: it forgets only what this process revokes
  const authenticator = createAuthenticator(api.ctx);
  const { access_token } = (await api.send('/auth', { username: 'shop', password: PASSWORD })).json;
  const caller = await authenticator.authenticateNow(access_token);
  const of = {
    merchantId: caller.merchantId,
    operation: '/sign_out',
    key: 'race',
    bodyHash: Buffer.alloc(32),
    kept: 'a day',
  } as const;
  await answerOnce(
    api.ctx,
    of,
    async (ctx) => {
      await signOut(ctx, { signInId: caller.signInId });
      expect((await authenticator.authenticateNow(access_token)).signInId).toBe(caller.signInId);
      return '{}';
    },
    () => '',
  );
  await expect((async () => await authenticator.authenticate(access_token))()).rejects.toMatchObject({ code: 'invalid_token' });
  await authenticator.close();
});
test('a look-up that began before the commit and ends after it is not kept', async () => {
  const { access_token } = (await api.send('/auth', { username: 'shop', password: PASSWORD })).json;
  const held = Promise.withResolvers<void>();
  const reached = Promise.withResolvers<void>();
  let hold = false;
  const slow: Database = {
    ...api.ctx.db,
    async query<R extends QueryResultRow>(statement: QueryConfig): Promise<QueryResult<R>> {
      const result = await api.ctx.db.query<R>(statement);
      if (hold && statement.name === 'sign_in_present') {
        reached.resolve();
        await held.promise;
      }
      return result;
    },
  };
  const authenticator = createAuthenticator({ ...api.ctx, db: slow });
  const caller = await authenticator.authenticateNow(access_token);
  hold = true;
  const overtaken = authenticator.authenticateNow(access_token);
  await reached.promise;
  await signOut(api.ctx, { signInId: caller.signInId });
  hold = false;
  held.resolve();
  await overtaken;
  await expect((async () => await authenticator.authenticate(access_token))()).rejects.toMatchObject({ code: 'invalid_token' });
  await authenticator.close();
});
test('a sign-out that is a replay signs out its own sign-in as well', async () => {
  const pairs = [];
  for (let n = 0; n < 2; n++) pairs.push((await api.send('/auth', { username: 'shop', password: PASSWORD })).json);
  for (const [n, { access_token }] of pairs.entries()) {
    const reply = await api.send('/sign_out', { access_token }, key('out'));
    expect([reply.status, reply.text, reply.headers.get('idempotent-replayed')]).toEqual([
      200,
      '{"success":true}',
      n === 0 ? null : 'true',
    ]);
    expect((await api.send('/get_account_info', { access_token })).status).toBe(401);
  }
});
test('within a transaction a verb that refuses takes back its own writes only', async () => {
  await api.ctx.db.transaction(async (sql) => {
    const inside = within(api.ctx, sql, () => undefined);
    await inside.db.query({ text: `insert into rate_history (currency, at, usd) values ('DOGE', now(), 1)` });
    const failing = inside.db.transaction(async (inner) => {
      await inner.query({ text: `insert into rate_history (currency, at, usd) values ('DASH', now(), 1)` });
      throw new Error('no');
    });
    await expect(failing).rejects.toThrow('no');
  });
  expect(await api.sql(`select currency from rate_history where currency in ('DOGE', 'DASH')`)).toEqual([{ currency: 'DOGE' }]);
});
test('keys are kept 24 hours on the service’s clock, and pruned after that', async () => {
  const first = await api.call('/create_transaction', order, key('day'));
  api.advance(86_399);
  api.tokens.clear();
  await api.reopen();
  expect((await api.call('/create_transaction', order, key('day'))).text).toBe(first.text);
  api.advance(1);
  const late = await api.call('/create_transaction', order, key('day'));
  expect(late.json.transaction_id).not.toBe(first.json.transaction_id);
  await api.sql(
    `insert into idempotency_keys select merchant_id, '/request_payout', 'p', body_hash, 200, '{}', created_at, null from idempotency_keys limit 1`,
  );
  api.advance(86_400);
  while ((await pruneKeys(api.ctx.db, api.now(), 50)) > 0);
  expect(await api.sql('select key from idempotency_keys')).toEqual([{ key: 'p' }]);
});
test('a key of any printable characters is the same in the header and in the body', async () => {
  api.tokens.clear();
  const name = 'Größe "7" €';
  const inHeader = Buffer.from(name, 'utf8').toString('latin1');
  const first = await api.call('/set_settings', { late_payments: 'accept' }, key(inHeader));
  expect(first.status).toBe(200);
  const again = await api.call('/set_settings', { late_payments: 'accept', idempotency_key: name });
  expect(again.headers.get('idempotent-replayed')).toBe('true');
  for (const length of [1, 255]) {
    expect((await api.call('/set_settings', { late_payments: 'accept' }, key('k'.repeat(length)))).status).toBe(200);
  }
});
