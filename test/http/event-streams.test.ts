// The stream of events over real HTTP on a real database: nothing is missed or told twice, in whatever order changes are committed and
// however often a client comes back; and what is refused.
import { describe, expect, test } from 'vitest';
import { STREAM_API } from '../../src/contract/webhook-api.ts';
import { STREAM_LIMITS } from '../../src/http/stream-places.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { type OpenStream, openStream } from '../support/event-stream.ts';
import { useStreams } from './stream-calls.ts';

const PATH = STREAM_API.streamEvents.path;
const calls = useStreams();
const { open, started, cancel } = calls;
const idsOf = (stream: OpenStream): string[] => stream.events().map(({ id }) => id);

/** An event of a transaction, inside a database transaction that the test ends. */
async function announce(sql: Sql, transactionId: string, sequence: number): Promise<void> {
  await sql.query({
    text: `insert into events (merchant_id, object_id, sequence, type, status, previous, reason, at)
             select merchant_id, id, $2, 'transaction.reorged', 'started', 'started', 'a test', now() from transactions where id = $1`,
    values: [transactionId, sequence],
  });
}
/** Draws the number of an event, and commits it when it is told to. */
async function holdEvent(transactionId: string, sequence: number) {
  const drawn = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<boolean>();
  const done = calls.api.ctx.db
    .transaction(async (sql) => {
      await announce(sql, transactionId, sequence);
      drawn.resolve();
      if (!(await ended.promise)) throw new Error('rolled back');
    })
    .catch(() => undefined);
  await drawn.promise;
  return {
    end(commits: boolean): Promise<void> {
      ended.resolve(commits);
      return done;
    },
  };
}

describe('a stream', () => {
  test('tells each event as it is written, as the list has it', async () => {
    const stream = await open();
    expect(stream.response.status).toBe(200);
    expect(Object.fromEntries(stream.response.headers)).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-request-id': expect.stringMatching(/^req_/),
      'x-ratelimit-limit': '1200000',
    });
    const id = await started();
    await cancel(id);
    await stream.count(2);
    const { json } = await calls.api.call('/list_events', { object: id });
    expect(stream.messages.map(({ id: cursor, event }) => [cursor, event])).toEqual(
      json.data.toReversed().map((event: { id: string; type: string }) => [event.id, event.type]),
    );
    expect(stream.events()).toEqual(json.data.toReversed());
  });

  test('is at /v1 too, and its token may be in the header', async () => {
    const stream = await openStream(
      calls.api.base,
      {},
      { authorization: `Bearer ${await calls.api.tokenOf('shop')}` },
      `/v1${PATH}`,
    );
    expect(stream.response.status).toBe(200);
    await stream.close();
  });

  test('goes on where its client was, over more than a page, and begins at a cursor although nothing happened', async () => {
    const first = await open();
    const from = first.cursor();
    await first.close();
    const made: string[] = [];
    for (let n = 0; n < 13; n++) made.push(...(await Promise.all(Array.from({ length: 10 }, () => started()))));
    const all = await open({}, { 'last-event-id': from });
    await all.count(130);
    expect(new Set(all.events().map(({ data }) => data.object.transaction_id))).toEqual(new Set(made));
    expect(all.messages).toHaveLength(130);
    const middle = all.messages[64]!.id;
    // what was sent with the first call is sent again by a client that comes back: the header counts
    const rest = await open({ starting_after: from }, { 'last-event-id': middle });
    await rest.count(65);
    expect(idsOf(rest)).toEqual(idsOf(all).slice(65));
    const fromStart = await open({ starting_after: '0', events: ['transaction.cancelled'] });
    await fromStart.count(1);
    expect(fromStart.events().every(({ type }) => type === 'transaction.cancelled')).toBe(true);
  });

  test('of a merchant without events begins at 0', async () => {
    const stream = await open({}, {}, 'other');
    expect(stream.cursor()).toBe('0');
    await started('other');
    await stream.count(1);
    await stream.close();
    const again = await open({}, { 'last-event-id': '0' }, 'other');
    await again.count(1);
    expect(again.messages).toEqual(stream.messages);
  });

  test('that wants nothing of what was written tells how far it is, so that its client does not come back to before that', async () => {
    const wanted = { events: ['payout.failed'] };
    const first = await open(wanted);
    const from = first.cursor();
    await first.close();
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await started());
    await started('other');
    const again = await open(wanted, { 'last-event-id': from });
    await again.moved(from);
    expect(again.cursor()).toBe(`evt_t${ids.at(-1)?.slice(4)}1`);
    expect(again.messages).toEqual([]);
    // what is wanted after that place comes
    const next = await open({ events: ['transaction.cancelled'] }, { 'last-event-id': again.cursor() });
    await cancel(ids[0] as string);
    await next.count(1);
    expect(next.cursor()).toBe(next.events()[0].id);
  });

  test('tells the types and objects that were asked for, and nothing of other merchants', async () => {
    const id = await started();
    const [cancelled, ofObject, ofPayouts] = [
      await open({ events: ['transaction.cancelled'] }),
      await open({ object: id }),
      await open({ object: 'payout' }),
    ];
    const other = await started();
    await started('other');
    await cancel(other);
    await cancel(id);
    await Promise.all([cancelled.count(2), ofObject.count(1)]);
    expect(cancelled.events().map(({ data }) => data.object.transaction_id)).toEqual([other, id]);
    expect(ofObject.events().map(({ type }) => type)).toEqual(['transaction.cancelled']);
    expect(ofPayouts.messages).toEqual([]);
  });
});

describe('numbers that are committed in another order than they were drawn', () => {
  test('are told in their order: a later one waits for an earlier one, and does not overtake it at a reconnect', async () => {
    const id = await started();
    const stream = await open();
    const held = await holdEvent(id, 2);
    const later = await started();
    const coming = open({}, { 'last-event-id': stream.cursor() });
    expect(stream.messages).toEqual([]);
    await held.end(true);
    await stream.count(2);
    expect(stream.events().map(({ data }) => data.object.transaction_id)).toEqual([id, later]);
    const back = await coming;
    await back.count(2);
    expect(back.messages).toEqual(stream.messages);
  });

  test('one that is rolled back holds nothing up for longer', async () => {
    const id = await started();
    const stream = await open();
    const held = await holdEvent(id, 2);
    const later = await started();
    await held.end(false);
    await stream.count(1);
    expect(stream.events().map(({ data }) => data.object.transaction_id)).toEqual([later]);
  });

  test('are held by nobody for long: the server ends who writes events and then does nothing', async () => {
    const text = `select current_setting('idle_in_transaction_session_timeout') as idle, current_setting('transaction_timeout', true) as whole`;
    type Limits = { readonly idle: string; readonly whole: string | null };
    const limits = async (sql: Sql) => (await sql.query<Limits>({ text })).rows[0]!;
    const id = await started();
    const { db } = calls.api.ctx;
    const usual = await limits(db);
    await db.transaction(async (sql) => {
      await announce(sql, id, 2);
      // before PostgreSQL 17 there is no limit for the whole
      expect(await limits(sql)).toEqual({ idle: '20s', whole: usual.whole === null ? null : '2min' });
    });
    expect(await limits(db)).toEqual(usual);
  });

  test('what is being written when a stream is opened comes before its answer, or on it', async () => {
    const id = await started();
    const before = await open();
    const held = await holdEvent(id, 2);
    let isOpen = false;
    const opening = open().then((stream) => {
      isOpen = true;
      return stream;
    });
    const later = await started();
    expect(isOpen).toBe(false);
    await held.end(true);
    const stream = await opening;
    await before.count(2);
    expect(before.events().map(({ data }) => data.object.transaction_id)).toEqual([id, later]);
    const [, last] = idsOf(before);
    if (stream.cursor() !== last) await stream.count(1);
    expect(stream.cursor()).toBe(last);
  });

  test('many writers at once and clients that keep coming back: each event once, and each object in its order', async () => {
    const before = await open();
    let cursor = before.cursor();
    const told: { id: string; sequence: number; object: string }[] = [];
    let isDone = false;
    const writers = Array.from({ length: 6 }, async () => {
      for (let n = 0; n < 12; n++) await cancel(await started());
    });
    const writing = Promise.all(writers).then(() => {
      isDone = true;
    });
    while (!isDone || told.length < 144) {
      const stream = await open({}, { 'last-event-id': cursor });
      await stream.count(Math.min(7, 144 - told.length));
      await stream.close();
      for (const { id, sequence, data } of stream.events()) told.push({ id, sequence, object: data.object.transaction_id });
      cursor = stream.messages.at(-1)?.id ?? cursor;
    }
    await writing;
    expect(told).toHaveLength(144);
    expect(new Set(told.map(({ id }) => id)).size).toBe(144);
    const last = new Map<string, number>();
    for (const { object, sequence } of told) {
      expect(sequence).toBe((last.get(object) ?? 0) + 1);
      last.set(object, sequence);
    }
    await before.count(144);
    expect(idsOf(before)).toEqual(told.map(({ id }) => id));
  });
});

describe('a stream is refused', () => {
  const refusals: [string, object, Record<string, string>, [number, string, string?]][] = [
    ['with a type that does not exist', { events: ['transaction.paid'] }, {}, [400, 'invalid_request', 'events']],
    ['of what no event is about', { object: 'nope' }, {}, [400, 'invalid_request', 'object']],
    ['with no type', { events: [] }, {}, [400, 'invalid_request', 'events']],
    ['with a cursor of a wrong type', { starting_after: 5 }, {}, [400, 'invalid_request', 'starting_after']],
    ['after an event that does not exist', {}, { 'last-event-id': 'evt_nothing' }, [404, 'not_found', 'starting_after']],
    ['with a wrong token', { access_token: 'x' }, {}, [401, 'invalid_token']],
    ['without a token', { access_token: null }, {}, [401, 'missing_token']],
  ];
  test.each(refusals)('%s', async (_name, body, headers, [status, error, param]) => {
    const reply = await calls.api.call(PATH, body, headers);
    expect([reply.status, reply.json.error, reply.json.param]).toEqual([status, error, param]);
  });

  test('after an event of another merchant, and to a user who may not read', async () => {
    await started('other');
    const [event] = (await calls.api.call('/list_events', { limit: 1 }, {}, 'other')).json.data;
    expect((await calls.api.call(PATH, { starting_after: event.id })).status).toBe(404);
    expect((await calls.api.call(PATH, {}, {}, 'only.payouts')).json.error).toBe('insufficient_permissions');
    expect((await calls.api.send(PATH, undefined, {}, 'GET')).status).toBe(405);
  });

  test('beyond the bound of a merchant, until one is closed; another merchant still gets one', async () => {
    const all = await Promise.all(Array.from({ length: STREAM_LIMITS.ofOne }, () => open()));
    const reply = await calls.api.call(PATH, {});
    expect([reply.status, reply.json.error, reply.headers.get('retry-after')]).toEqual([429, 'rate_limited', '5']);
    expect((await open({}, {}, 'other')).response.status).toBe(200);
    await all[0]?.close();
    for (;;) {
      const again = await open();
      if (again.response.status === 200) break;
    }
    const id = await started();
    await Promise.all(all.slice(1).map((stream) => stream.count(1)));
    expect(new Set(all.slice(1).map((stream) => stream.events()[0].data.object.transaction_id))).toEqual(new Set([id]));
  });
});
