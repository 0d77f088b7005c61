// A database that is there but does not answer: calls are refused in time, nothing that may have happened is called a failure, and when the
// database answers again everything continues.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { answerOnce } from '../../src/flow/idempotency.ts';
import { refusalOf } from '../../src/http/reply-error.ts';
import { portsFor } from '../support/ports.ts';
import { openRelayedDatabase } from '../support/relay.ts';
import { eventually } from '../support/service.ts';

const WITHIN_MS = 600;
let opened: Awaited<ReturnType<typeof openRelayedDatabase>>;
let relay: typeof opened.relay;
let db: typeof opened.db;
beforeEach(async () => {
  opened = await openRelayedDatabase({ answersWithinMs: WITHIN_MS });
  ({ relay, db } = opened);
});
afterEach(() => opened.close());

/** What a call that fails this way is answered with, and after how long. */
async function answered(work: Promise<unknown>): Promise<[string, boolean]> {
  const startedMs = performance.now();
  const error = await work.then(
    () => null,
    (failure: unknown) => failure,
  );
  return [error === null ? 'done' : refusalOf(error).code, performance.now() - startedMs < 3 * WITHIN_MS];
}

test('statements, transactions and who waits for a session are all refused in time, and go on afterwards', async () => {
  const ask = () => db.query({ text: 'select 1' });
  const insert = () => db.transaction((sql) => sql.query({ text: 'select 1' }));
  await Promise.all([ask(), insert()]);
  relay.freeze();
  expect(await Promise.all([ask(), insert(), ask(), insert(), ask()].map(answered))).toEqual(
    Array.from({ length: 5 }, () => ['overloaded', true]),
  );
  expect(await answered(ask())).toEqual(['overloaded', true]);
  relay.thaw();
  expect(await Promise.all([ask(), insert(), ask()].map(answered))).toEqual(Array.from({ length: 3 }, () => ['done', true]));
});

test('a statement that takes too long is ended by the database, and its session stays', async () => {
  const pid = async () => (await db.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' })).rows[0]?.pid;
  const before = await pid();
  expect(await answered(db.query({ text: 'select pg_sleep(20)' }))).toEqual(['overloaded', true]);
  expect(await pid()).toBe(before);
});

test('a connection that breaks between two statements of a transaction is a passing trouble, not a bug', async () => {
  const work = db.transaction(async (sql) => {
    await sql.query({ text: 'select 1' });
    relay.cut();
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
    await sql.query({ text: 'select 2' });
  });
  expect(await answered(work)).toEqual(['overloaded', true]);
  expect(await answered(db.query({ text: 'select 1' }))).toEqual(['done', true]);
});

test('a write whose commit was not answered is 503 overloaded, and its key shows later what became of it', async () => {
  // as much of the context as a key and its row take
  const ctx = { db, ports: portsFor('sandbox', { now: () => 1_000_000 }), batches: {} } as unknown as Parameters<
    typeof answerOnce
  >[0];
  await opened.direct.query({
    text: `insert into merchants (id, affiliate_id, email, business_name, created_at) overriding system value
           values (1, 'aff_' || repeat('0', 22), 'a@example.com', 'A', now())`,
  });
  const key = { merchantId: 1n, operation: '/cancel_transaction', key: 'k', bodyHash: Buffer.alloc(32), kept: 'a day' } as const;
  const write = (effect: () => Promise<string>) => answerOnce(ctx, key, effect, () => '');
  const first = write(async () => {
    relay.freeze();
    return '{"n":1}';
  });
  expect(await answered(first)).toEqual(['overloaded', true]);
  relay.thaw();
  // until the database notices that the first one's session is gone, that one is still running
  const second = await eventually('the key is free', () =>
    write(async () => '{"n":2}').catch((error: Error) => {
      expect(error).toMatchObject({ code: 'request_in_progress' });
      return null;
    }),
  );
  // either it happened, and the answer is the stored one, or it did not, and it is done now
  expect([
    { httpStatus: 200, text: '{"n":1}', replayed: true },
    { httpStatus: 200, text: '{"n":2}', replayed: false },
  ]).toContainEqual(second);
  expect((await write(async () => '{"n":3}')).replayed).toBe(true);
});

test('a disk, a memory or a table of locks that is full is a passing trouble too', async () => {
  for (const code of ['53000', '53100', '53200', '53300', '53400']) {
    const full = db.query({ text: `do $$ begin raise exception 'full' using errcode = '${code}'; end $$` });
    expect(await answered(full), code).toEqual(['overloaded', true]);
  }
});
