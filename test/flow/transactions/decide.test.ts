// The one way in which transactions change, called directly: what it leaves to others, what it waits for, in how many database transactions
// it decides, and that credits of one merchant follow each other.
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { cancel } from '../../../src/core/judge/resolve.ts';
import { decide, decidePortion, decideTogether, type Portion, type Together } from '../../../src/flow/transactions/decide.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import type { Sql } from '../../../src/store/postgres/connect.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let service: ServiceOnDatabase;
let other: pg.Client;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  other = new pg.Client({ connectionString: service.url });
  await other.connect();
});
afterAll(async () => {
  await other.end();
  await service.drop();
});

/** With the ids in one order: which is decided first depends on which needs a balance. */
const together = (...ids: string[]): Promise<Together> =>
  service.db.transaction(async (sql) => {
    const result = await decideTogether(service.ctx, sql, ids);
    return { ...result, decided: result.decided.toSorted() };
  });
async function paid(amounts: readonly bigint[] = [50_000n], shop = service.merchantId, method: 'BTC' | 'LTC' = 'BTC') {
  const { transactionId } = await service.create(50_00n, method, shop);
  await service.pay(transactionId, amounts, { currency: method });
  await service.mine(method === 'BTC' ? 1 : 6, method);
  return transactionId;
}
/** What was credited to this merchant and is not there any more. */
function owe(shop: bigint, minor: bigint): Promise<void> {
  const owes = {
    key: `owed:${shop}`,
    kind: 'deposit',
    postings: [
      { account: `asset:receivable:merchant:${shop}:BTC`, amount: minor },
      { account: 'asset:chain:BTC', amount: -minor },
    ],
    parts: [],
  };
  return postEntries(service.db, [{ entry: owes, transactionId: null, atMs: service.now() }]);
}
const statusOf = async (id: string): Promise<string> => String((await service.row(id)).status);

/** Another session has locked what this statement locks, while something runs. */
async function whileHeld<T>(text: string, value: string, run: () => Promise<T>): Promise<T> {
  await other.query('begin');
  try {
    await other.query(text, [value]);
    return await run();
  } finally {
    await other.query('rollback');
  }
}
const ROW = 'select from transactions where id = $1 for update';
const BALANCE = 'select ledger.lock_balances(array[$1])';

async function untilSomeoneWaits(): Promise<void> {
  const text = `select count(*)::int as n from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
  while ((await service.admin.query(text)).rows[0].n === 0);
}

/** The context with every database transaction counted; `before` runs before the first. */
function counted(before: () => Promise<unknown> = async () => undefined) {
  let count = 0;
  const transaction = async <T>(work: (sql: Sql) => Promise<T>): Promise<T> => {
    if (count++ === 0) await before();
    return service.db.transaction(work);
  };
  return { ctx: { ...service.ctx, db: { ...service.db, transaction } }, count: () => count };
}

describe('together', () => {
  test('what another session holds is left for later: a row, or a balance of its merchant', async () => {
    const shop = await service.openShop('busy');
    await together(await paid([50_000n], shop));
    const [mine, theirs] = [await paid(), await paid([50_000n], shop)];
    expect(await whileHeld(ROW, theirs, () => together(mine, theirs))).toEqual({ decided: [mine], busy: [theirs], failed: [] });
    const available = `merchant:${shop}:available:BTC`;
    expect(await whileHeld(BALANCE, available, () => together(theirs))).toEqual({ decided: [], busy: [theirs], failed: [] });
    expect(await together(mine, theirs)).toEqual({ decided: [mine, theirs].sort(), busy: [], failed: [] });
    expect(await Promise.all([mine, theirs].map(statusOf))).toEqual(['succeeded', 'succeeded']);
  });

  test('a merchant who owes repays once, of the first of several credits', async () => {
    const shop = await service.openShop('debtor');
    await owe(shop, 30_000n);
    const ids = [await paid([50_000n], shop), await paid([50_000n], shop), await paid([50_000n], shop, 'LTC')];
    expect(await together(...ids)).toEqual({ decided: ids.toSorted(), busy: [], failed: [] });
    const balances = ['available:BTC', 'available:LTC'].map((code) => service.balance(`merchant:${shop}:${code}`));
    expect(await Promise.all(balances)).toEqual([70_000n, 50_000n]);
    expect(await service.balance(`asset:receivable:merchant:${shop}:BTC`)).toBe(0n);
  });

  test('what the judge cannot decide is told, and the others are decided', async () => {
    const [unreadable, good] = [await paid(), await paid()];
    await service.admin.query(`update payments set currency = 'XMR' where transaction_id = $1`, [unreadable]);
    const { decided, busy, failed } = await together(unreadable, good);
    expect([decided, busy, failed.map(({ id }) => id)]).toEqual([[good], [], [unreadable]]);
  });

  test('what fails once a balance is at hand is told, and the next credit finds that balance as it was', async () => {
    const shop = await service.openShop('half');
    await owe(shop, 30_000n);
    const [bad, good] = [await paid([50_000n, 10_000n], shop), await paid([50_000n], shop)];
    // its price is credited before the judge comes to a payment in a currency that nobody knows
    await service.admin.query(
      `update payments set currency = 'XMR', noticed_at = now(), present = true where transaction_id = $1 and vout = 1`,
      [bad],
    );
    const { decided, busy, failed } = await together(bad, good);
    expect([decided, busy, failed.map(({ id }) => id)]).toEqual([[good], [], [bad]]);
    expect(await service.balance(`asset:receivable:merchant:${shop}:BTC`)).toBe(0n);
    expect(await service.balance(`merchant:${shop}:available:BTC`)).toBe(20_000n);
    expect(await statusOf(bad)).toBe('started');
  });
});

describe('in portions', () => {
  const portion = (id: string, size: number, more: Partial<Portion> = {}) =>
    service.db.transaction((sql) => decidePortion(service.ctx, sql, id, { known: new Map(), portion: size, most: 100, ...more }));
  const kept = async (): Promise<number> =>
    (await service.admin.query('select count(*)::int as n from payment_decisions')).rows[0].n;
  /** Its price is paid in so many outputs: decided at once, and written to none of them yet. */
  async function unwritten(): Promise<string> {
    const id = await paid([20_000n, 20_000n, 10_000n]);
    let last: string = 'more';
    while ((await kept()) === 0 && last === 'more') last = await portion(id, 1);
    expect([await statusOf(id), await kept(), last]).toEqual(['succeeded', 3, 'more']);
    return id;
  }

  test('what is decided of very many is written before anything else is decided', async () => {
    const id = await unwritten();
    expect(await together(id)).toEqual({ decided: [], busy: [id], failed: [] });
    const steps = [await portion(id, 2), await kept(), await portion(id, 2), await kept()];
    expect(steps).toEqual(['more', 1, 'more', 0]);
    let last: string = 'more';
    for (let n = 0; last === 'more' && n < 9; n++) last = await portion(id, 2);
    expect(last).toBe('done');
  });

  test('a call that decides writes all of it first', async () => {
    const id = await unwritten();
    expect((await decide(service.ctx, id))?.status).toBe('succeeded');
    expect(await kept()).toBe(0);
  });

  test('of one that another session holds, or that does not exist, nothing is read; with its merchant’s balance held it waits', async () => {
    const id = await paid([10_000n, 10_000n, 10_000n, 20_000n]);
    let readings = 0;
    const onRead = () => void readings++;
    expect(await portion('txn_none', 9, { onRead })).toBe('busy');
    expect(await whileHeld(ROW, id, () => portion(id, 9, { onRead }))).toBe('busy');
    expect(readings).toBe(0);
    const available = `merchant:${service.merchantId}:available:BTC`;
    expect(await whileHeld(BALANCE, available, () => portion(id, 9, { onRead }))).toBe('busy');
    expect([readings, await statusOf(id)]).toEqual([1, 'started']);
    expect([await portion(id, 9), await statusOf(id)]).toEqual(['done', 'succeeded']);
  });

  test('what the judge cannot decide fails at once, and waits for no balance', async () => {
    const id = await paid([50_000n, 10_000n]);
    await service.admin.query(`update payments set currency = 'XMR' where transaction_id = $1 and vout = 1`, [id]);
    const available = `merchant:${service.merchantId}:available:BTC`;
    await whileHeld(BALANCE, available, () => expect(portion(id, 9)).rejects.toThrow());
  });

  test('one that waits gets the balance when it is free', async () => {
    const id = await paid();
    const available = `merchant:${service.merchantId}:available:BTC`;
    const { waiting } = await whileHeld(BALANCE, available, async () => {
      const running = portion(id, 9, { wait: true });
      await untilSomeoneWaits();
      return { waiting: running };
    });
    expect([await waiting, await statusOf(id)]).toEqual(['done', 'succeeded']);
  });
});

describe('a call', () => {
  test('waits for the row, and finds what was written meanwhile', async () => {
    const { transactionId: id } = await service.create();
    const { waiting } = await whileHeld(ROW, id, async () => {
      const running = decide(service.ctx, id);
      await untilSomeoneWaits();
      return { waiting: running };
    });
    expect((await waiting)?.status).toBe('started');
  });

  test('decides nothing of another merchant’s transaction, nor of none', async () => {
    const { transactionId: id } = await service.create();
    expect(await decide(service.ctx, id, { merchantId: service.merchantId + 100n, decision: cancel })).toBeNull();
    expect(await decide(service.ctx, 'txn_none')).toBeNull();
    expect(await statusOf(id)).toBe('started');
    expect((await decide(service.ctx, id, { merchantId: service.merchantId, decision: cancel }))?.status).toBe('cancelled');
  });

  test('writes what goes with the decision in the same database transaction', async () => {
    const { transactionId: id } = await service.create();
    const written = async (sql: Sql, { status }: { status: string }): Promise<void> => {
      const { rows } = await sql.query<{ status: string }>({
        text: 'select status from transactions where id = $1',
        values: [id],
      });
      throw new Error(`${status} and ${rows[0]?.status}`);
    };
    await expect(decide(service.ctx, id, { decision: cancel, written })).rejects.toThrow('cancelled and cancelled');
    expect(await statusOf(id)).toBe('started');
  });

  test('asks for a refused decision once, and needs no balance for that', async () => {
    const { transactionId: id } = await service.create();
    let asked = 0;
    const refuse = (): void => {
      asked++;
      throw new Error('refused');
    };
    await expect(decide(service.ctx, id, { decision: refuse })).rejects.toThrow('refused');
    expect(asked).toBe(1);
  });
});

describe('a call on one of more payments than one database transaction decides', () => {
  const dust = (count: number) => Array.from({ length: count }, () => 546n);

  test('waits for the row, and decides all that is due before in portions', { timeout: 120_000 }, async () => {
    const { transactionId: id } = await service.create(50_000_00n);
    await service.pay(id, dust(2_001));
    const { ctx, count } = counted();
    const { waiting } = await whileHeld(ROW, id, async () => {
      const running = decide(ctx, id, { merchantId: service.merchantId });
      await untilSomeoneWaits();
      return { waiting: running };
    });
    expect((await waiting)?.status).toBe('pending');
    expect(count()).toBe(4);
  });

  test('reads again where too many have changed since, and fails at once where the judge does', {
    timeout: 120_000,
  }, async () => {
    const { transactionId: id } = await service.create(50_000_00n);
    await service.pay(id, dust(2_001));
    const change = () => service.admin.query('update payments set spent = spent where transaction_id = $1', [id]);
    const { ctx, count } = counted(change);
    expect((await decide(ctx, id))?.status).toBe('pending');
    expect(count()).toBe(5);
    const failing = counted(() =>
      service.admin.query(`update payments set currency = 'XMR' where transaction_id = $1 and vout = 1`, [id]),
    );
    await expect(decide(failing.ctx, id)).rejects.toThrow();
    expect(failing.count()).toBe(1);
  });
});
