// Events of transactions on a real database: each change is told once, numbered, with the object as it was then; lists find them.
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { EVENT_TYPES, eventId, eventKey } from '../../../src/core/events.ts';
import { type EventPage, listEvents } from '../../../src/flow/events/list-events.ts';
import { cancelTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { checkTransaction } from '../../../src/flow/transactions/reads.ts';
import { checkedReply } from '../../../src/http/handlers/transaction-replies.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterAll(() => service.drop());

async function events(wanted: Partial<EventPage> = {}) {
  const { ctx, merchantId } = service;
  const all = { limit: 100, startingAfter: null, object: null, type: null, createdGteMs: null, createdLtMs: null };
  return listEvents(ctx, { merchantId, ...all, ...wanted });
}
const eventsOf = async (object: string) => (await events({ object })).data.toReversed();
const checked = async (transactionId: string) =>
  checkedReply(await checkTransaction(service.ctx, { merchantId: service.merchantId, transactionId }));

describe('the events of a transaction', () => {
  test('tell each status once, numbered without a gap, with the transaction as it was then', async () => {
    const { transactionId } = await service.create(50_00n);
    await service.wait(1_000);
    await service.pay(transactionId, 20_000n);
    await service.judge();
    const paidAt = service.now();
    const pending = await checked(transactionId);
    await service.wait(60_000);
    await service.pay(transactionId, 30_000n);
    await service.mine(1);
    await service.judge();
    const all = await eventsOf(transactionId);
    expect(all.map(({ type, sequence, data }) => [type, sequence, data.previous.status])).toEqual([
      ['transaction.started', 1, null],
      ['transaction.pending', 2, 'started'],
      ['transaction.confirmed', 3, 'pending'],
      ['transaction.succeeded', 4, 'confirmed'],
    ]);
    expect(all[0]?.data.object).toMatchObject({
      status: 'started',
      crypto_received: '0.00000000',
      confirmations: 0,
      confirmed_at: null,
    });
    // what it was paid with later is not in it
    expect(all[1]?.data.object).toEqual({ ...pending, crypto_selected: 'BTC', label: null });
    expect(all[1]?.created_at).toBe(new Date(paidAt).toISOString());
    expect(all[3]?.data.object).toEqual({ ...(await checked(transactionId)), crypto_selected: 'BTC', label: null });
    expect(all.map(({ id }) => eventKey(id))).toEqual(all.map(({ sequence }) => ({ objectId: transactionId, sequence })));
  });

  test('tell of another payment, and of one in another currency, which change no status', async () => {
    const { transactionId } = await service.create(50_00n);
    await service.pay(transactionId, 50_000n);
    await service.mine();
    await service.judge();
    const extra = await service.pay(transactionId, 7_000n);
    await service.judge();
    const other = await service.pay(transactionId, 9_000n, { currency: 'LTC' });
    await service.judge();
    const [first, second] = (await eventsOf(transactionId)).slice(-2);
    expect(first).toMatchObject({
      type: 'transaction.extra_payment',
      data: {
        object: { status: 'succeeded', crypto_received: '0.00057000' },
        previous: { status: 'succeeded' },
        payment: { currency: 'BTC', txid: extra.facts.txid, amount: '0.00007000' },
      },
    });
    expect(second).toMatchObject({
      type: 'transaction.other_asset',
      sequence: 6,
      data: { previous: { status: 'succeeded' }, payment: { currency: 'LTC', txid: other.facts.txid, amount: '0.00009000' } },
    });
  });

  test('of a review show the confirmations and the time that check_transaction shows', async () => {
    const { transactionId } = await service.create(50_00n);
    await service.wait(3_600_000 * 3);
    await service.judge();
    await service.pay(transactionId, 10_000n);
    await service.judge();
    const last = (await eventsOf(transactionId)).at(-1);
    expect(last?.type).toBe('transaction.review');
    expect(last?.data.object).toEqual({ ...(await checked(transactionId)), crypto_selected: 'BTC', label: null });
  });

  test('do not change with the transaction', async () => {
    const { transactionId } = await service.create();
    const before = await eventsOf(transactionId);
    await cancelTransaction(service.ctx, { merchantId: service.merchantId, transactionId });
    expect((await eventsOf(transactionId)).slice(0, 1)).toEqual(before);
  });
});

describe('a list', () => {
  test('is newest first, has every event once over its pages, and none of another merchant', async () => {
    const other = await service.openShop('events-other');
    const { transactionId } = await service.create(50_00n, 'BTC', other);
    const whole = (await events()).data;
    expect(whole.map(({ id }) => id)).not.toContain(eventId({ objectId: transactionId, sequence: 1 }));
    expect(whole.length).toBeGreaterThan(10);
    const paged: (typeof whole)[number][] = [];
    for (let startingAfter: string | null = null; ; startingAfter = paged.at(-1)?.id ?? null) {
      const { data, hasMore } = await events({ limit: 3, startingAfter });
      paged.push(...data);
      if (!hasMore) break;
    }
    expect(paged).toEqual(whole);
    expect(whole.map(({ created_at }) => created_at)).toEqual(
      whole
        .map(({ created_at }) => created_at)
        .sort()
        .reverse(),
    );
  });

  test('has one type, one kind, one object, or a time', async () => {
    const whole = (await events()).data;
    const type = 'transaction.succeeded';
    expect((await events({ type })).data).toEqual(whole.filter((one) => one.type === type));
    expect((await events({ object: 'transaction' })).data).toEqual(whole);
    expect((await events({ object: 'payout' })).data).toEqual([]);
    expect((await events({ object: 'payout', type })).data).toEqual([]);
    const at = whole[4]?.created_at as string;
    expect((await events({ createdGteMs: Date.parse(at) })).data).toEqual(whole.filter(({ created_at }) => created_at >= at));
    expect((await events({ createdLtMs: Date.parse(at) })).data).toEqual(whole.filter(({ created_at }) => created_at < at));
    const { transactionId } = await service.create();
    expect((await events({ object: transactionId, type })).data).toEqual([]);
    expect((await events({ object: transactionId })).data).toHaveLength(1);
    expect((await events({ object: 'txn_nobody' })).data).toEqual([]);
  });

  test('says that there is more only where there is', async () => {
    const { data } = await events();
    const last = data.at(-1)?.created_at as string;
    expect((await events({ limit: data.length })).hasMore).toBe(false);
    expect((await events({ limit: data.length - 1 })).hasMore).toBe(true);
    expect(await events({ limit: 1, createdLtMs: Date.parse(last) })).toEqual({ data: [], hasMore: false });
  });

  test('begins after one of the merchant’s own events only', async () => {
    const other = await service.openShop('events-stranger');
    const { transactionId } = await service.create(50_00n, 'BTC', other);
    for (const startingAfter of [
      eventId({ objectId: transactionId, sequence: 1 }),
      'evt_',
      'evt_t0000000000000000000000001',
      'x',
    ])
      await expect(events({ startingAfter })).rejects.toMatchObject({ code: 'not_found', param: 'starting_after' });
  });

  test('ends within its limit of time, whoever it waits for', async () => {
    const client = await service.admin.connect();
    try {
      await client.query('begin');
      await client.query('lock table events in access exclusive mode');
      await expect(events()).rejects.toThrow(/statement timeout/);
    } finally {
      await client.query('rollback');
      client.release();
    }
    expect((await events({ limit: 1 })).data).toHaveLength(1);
  });

  test('finds every type by an index', async () => {
    const plan = await service.admin.query(
      `explain select * from unnest($1::text[]) k (type) cross join lateral (
         select * from events q where q.merchant_id = 1 and q.type = k.type order by q.at desc, q.id desc limit 21) e`,
      [EVENT_TYPES],
    );
    expect(plan.rows.map((row) => row['QUERY PLAN']).join('\n')).toContain('events_kind');
  });
});
