// The worker's judge decides many transactions in one database transaction: each as if it were alone, none waits for a row that another
// session holds, none is delayed by one that cannot be decided, and no change of facts is missed.
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { decideTogether } from '../../../src/flow/transactions/decide.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { isJudged } from '../../../src/store/transactions/due.ts';
import { createJudgeDue } from '../../../src/worker/judge-due.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const MINUTE = 60_000;
let service: ServiceOnDatabase;
let troubles: string[];
beforeEach(async () => {
  service = await openServiceOnDatabase({ feeBps: 100 });
  troubles = [];
});
afterEach(async () => {
  await service.drop();
});

const jobOf = (ctx = service.ctx) => createJudgeDue(ctx, (id, error) => troubles.push(`${id} ${(error as Error).message}`));
async function judgeAll(run = jobOf()): Promise<void> {
  while (await run());
}
async function made(count: number, shop = service.merchantId): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push((await service.create(50_00n, 'BTC', shop)).transactionId);
  return ids;
}
const lastOf = async (id: string): Promise<string> => (await service.path(id)).at(-1) as string;
const allLast = async (ids: readonly string[]): Promise<string[]> => [...new Set(await Promise.all(ids.map(lastOf)))];

/** Another session, which holds what it has locked until it is released. */
async function stranger(text: string, values: unknown[] = []): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: service.url });
  await client.connect();
  await client.query('begin');
  await client.query(text, values);
  return async () => {
    await client.query('rollback');
    await client.end();
  };
}

/** The database ends the session in the middle of what it does. */
async function endSession(sql: Sql): Promise<void> {
  const { rows } = await sql.query<{ pid: number }>({ text: 'select pg_backend_pid() as pid' });
  await service.admin.query('select pg_terminate_backend($1)', [rows[0]?.pid]);
}

/** The context with every database transaction counted. */
function counted(): { ctx: ServiceOnDatabase['ctx']; count: () => number } {
  let count = 0;
  const db = {
    ...service.db,
    transaction: <T>(work: (sql: Sql) => Promise<T>) => {
      count++;
      return service.db.transaction(work);
    },
  };
  return { ctx: { ...service.ctx, db }, count: () => count };
}

describe('together', () => {
  test('what has run out of time shares one database transaction', async () => {
    const ids = await made(60);
    await service.wait(16 * MINUTE);
    const { ctx, count } = counted();
    await judgeAll(jobOf(ctx));
    expect(await allLast(ids)).toEqual(['timedout']);
    expect(count()).toBe(1);
    expect(await service.findings()).toEqual([]);
  });

  test('credits of several merchants follow each other, each balance after the one before it', async () => {
    const other = await service.openShop('other');
    const ids = [...(await made(12)), ...(await made(5, other))];
    for (const [n, id] of ids.entries()) await service.pay(id, 50_000n + BigInt(n));
    await service.mine();
    const { ctx, count } = counted();
    await judgeAll(jobOf(ctx));
    expect(await allLast(ids)).toEqual(['succeeded']);
    expect(count()).toBe(1);
    const { rows } = await service.admin.query(
      `select a.code, -p.amount as amount, p.balance_after from ledger.posting p join ledger.account a on a.id = p.account_id
        where a.kind = 'available' order by p.entry_id`,
    );
    expect(rows).toHaveLength(17);
    const sums = new Map<string, bigint>();
    for (const row of rows) {
      sums.set(row.code, (sums.get(row.code) ?? 0n) + BigInt(row.amount));
      expect(BigInt(row.balance_after)).toBe(sums.get(row.code));
    }
    expect(await service.findings()).toEqual([]);
  });

  test('when all that was due is decided, nothing must be looked for again; not while another session holds some', async () => {
    const ids = await made(5);
    const all: string[] = [];
    const run = createJudgeDue(service.ctx, (id) => troubles.push(id), { onAll: () => all.push('all') });
    await service.wait(16 * MINUTE);
    const release = await stranger('select 1 from transactions where id = $1 for update', [ids[0]]);
    expect([await run(), [...all]]).toEqual([true, []]);
    await release();
    expect([await run(), [...all], await run()]).toEqual([true, ['all'], false]);
    expect(await allLast(ids)).toEqual(['timedout']);
  });

  test('two workers at once: each transaction is decided once', async () => {
    const ids = await made(30);
    for (const id of ids) await service.pay(id, 50_000n);
    await service.mine();
    await Promise.all([judgeAll(), judgeAll(), judgeAll()]);
    await judgeAll();
    for (const id of ids) expect(await service.path(id)).toEqual(['started', 'pending', 'confirmed', 'succeeded']);
    expect(await service.available()).toBe(30n * 49_500n);
    expect(await service.findings()).toEqual([]);
  });

  test('what a worker that dies leaves is all or nothing of each, and the next one does the rest', async () => {
    const ids = await made(10);
    for (const id of ids) await service.pay(id, 50_000n);
    await service.mine();
    const dying = {
      ...service.db,
      transaction: <T>(work: (sql: Sql) => Promise<T>) =>
        service.db.transaction(async (sql) => {
          const result = await work(sql);
          await endSession(sql);
          return result;
        }),
    };
    await expect(jobOf({ ...service.ctx, db: dying })()).rejects.toThrow();
    expect([await allLast(ids), await service.available(), troubles]).toEqual([['started'], 0n, []]);
    await judgeAll();
    expect([await allLast(ids), await service.available()]).toEqual([['succeeded'], 10n * 49_500n]);
  });
});

describe('who waits for whom', () => {
  test('a transaction that somebody holds is left for later, the others are decided, and its watcher goes on', async () => {
    const [held, ...others] = (await made(5)) as [string, ...string[]];
    const letGo = await stranger('select 1 from transactions where id = $1 for update', [held]);
    for (const id of [held, ...others]) await service.pay(id, 50_000n);
    await service.mine();
    const run = jobOf();
    await judgeAll(run);
    expect([await lastOf(held), await allLast(others)]).toEqual(['started', ['succeeded']]);
    expect(await isJudged(service.db)).toBe(false);
    await letGo();
    await judgeAll(run);
    expect([await lastOf(held), troubles]).toEqual(['succeeded', []]);
  });

  test('a balance that somebody holds keeps nobody but its own merchant, and no watcher', async () => {
    const other = await service.openShop('other');
    const ids = await made(3);
    for (const id of ids) await service.pay(id, 50_000n);
    await service.mine();
    await judgeAll();
    const more = await made(3);
    const foreign = await made(3, other);
    const unpaid = await made(3);
    for (const id of [...more, ...foreign]) await service.pay(id, 50_000n);
    const letGo = await stranger(
      `select 1 from ledger.balance where account_id in (select id from ledger.account where code like $1) for update`,
      [`merchant:${service.merchantId}:%`],
    );
    await service.mine();
    await service.wait(16 * MINUTE);
    await judgeAll();
    expect(await allLast(foreign)).toEqual(['succeeded']);
    expect(await allLast(unpaid)).toEqual(['timedout']);
    expect(await allLast(more)).toEqual(['started']);
    await service.pay(more[0] as string, 700n);
    await letGo();
    await judgeAll();
    expect(await allLast(more)).toEqual(['succeeded']);
    expect(await service.findings()).toEqual([]);
  });

  test('facts that change while they are judged are judged again', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 20_000n);
    await service.db.transaction(async (sql) => {
      await decideTogether(service.ctx, sql, [transactionId]);
      // the watcher waits for nobody: its payment is there before the verdict on the first one is
      await service.pay(transactionId, 30_000n);
    });
    expect(await isJudged(service.db)).toBe(false);
    await judgeAll();
    expect((await service.row(transactionId)).crypto_received).toBe('50000');
  });
});

describe('what cannot be decided', () => {
  const POISONS = [
    ['the judge refuses', `update payments set currency = 'XMR' where transaction_id = $1`],
    ['the store cannot read', `update transactions set rate = '1e30' where id = $1`],
    [
      'the ledger refuses',
      `update payments set part_key = null, in_available = 0, credited = 0, judged_block_hash = null where transaction_id = $1`,
    ],
  ] as const;

  test.each(POISONS)('what %s is set aside with an alarm, and the others go on', async (_, poison) => {
    const [bad, ...good] = (await made(7)) as [string, ...string[]];
    await service.pay(bad, 50_000n);
    if (poison.includes('part_key')) {
      await service.mine();
      await judgeAll();
      // as before it was booked: its entry is there with another body
      await service.admin.query(
        `update transactions set status = 'pending', confirmed_at = null, succeeded_at = null where id = $1`,
        [bad],
      );
      await service.admin.query(
        `update payments set amount = amount + 1, on_time_minor = on_time_minor + 1 where transaction_id = $1`,
        [bad],
      );
      await service.admin.query('insert into due_marks (transaction_id) values ($1)', [bad]);
    }
    await service.admin.query(poison, [bad]);
    for (const id of good) await service.pay(id, 50_000n);
    await service.mine();
    const run = jobOf();
    await judgeAll(run);
    expect(await allLast(good)).toEqual(['succeeded']);
    expect(troubles).toHaveLength(1);
    expect(troubles[0]).toMatch(new RegExp(`^${bad} `));
    const { rows } = await service.admin.query(
      'select transaction_id, failures, reason, round(extract(epoch from rests_until - clock_timestamp()))::int as rests from set_aside',
    );
    expect(rows).toMatchObject([{ transaction_id: bad, failures: 1, reason: troubles[0]?.slice(bad.length + 1) }]);
    expect(rows[0].rests).toBeGreaterThan(20);
    expect(await isJudged(service.db), 'nobody waits for it').toBe(true);
    const { problems } = await readReadiness(service.ctx, []);
    expect(problems).toEqual([expect.stringMatching(`^transaction ${bad} could not be decided \\(once since 2026-.*\\): `)]);
  });

  test('it rests for longer every time, whichever worker looks, and the row goes when it can be decided', async () => {
    const { transactionId } = await service.create();
    await service.pay(transactionId, 50_000n);
    await service.admin.query(`update payments set currency = 'XMR'`);
    const rests: number[] = [];
    for (let failure = 1; failure <= 9; failure++) {
      await judgeAll(jobOf());
      await judgeAll(jobOf());
      expect(troubles).toHaveLength(failure);
      const { rows } = await service.admin.query(
        'select failures, round(extract(epoch from rests_until - clock_timestamp()))::int as rests from set_aside',
      );
      expect(rows[0].failures).toBe(failure);
      rests.push(rows[0].rests);
      await service.admin.query(`update set_aside set rests_until = clock_timestamp()`);
    }
    const expected = [30, 60, 120, 240, 480, 960, 1920, 3600, 3600];
    for (const [n, seconds] of expected.entries()) expect(Math.abs((rests[n] as number) - seconds)).toBeLessThan(10);
    await service.admin.query(`update payments set currency = 'BTC'`);
    await judgeAll();
    expect([await lastOf(transactionId), (await service.admin.query('select 1 from set_aside')).rows]).toEqual(['pending', []]);
  });

  test('a database that goes away sets nobody aside', async () => {
    const ids = await made(4);
    await service.wait(16 * MINUTE);
    const broken = {
      ...service.db,
      transaction: <T>(work: (sql: Sql) => Promise<T>) =>
        service.db.transaction((sql) =>
          work({
            query: async (statement) => {
              if (statement.name === 'update_transactions') await endSession(sql);
              return sql.query(statement);
            },
          }),
        ),
    };
    await expect(jobOf({ ...service.ctx, db: broken })()).rejects.toThrow();
    expect(troubles).toEqual([]);
    expect((await service.admin.query('select 1 from set_aside')).rows).toEqual([]);
    await judgeAll();
    expect(await allLast(ids)).toEqual(['timedout']);
  });
});
