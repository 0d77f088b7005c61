// A receiver that is written from docs/behaviour.md §8 alone: it gets events in any order, some twice and some never, asks /list_events for
// what it missed, and knows in the end what check_transaction says of every transaction.
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EventBody } from '../../../src/flow/events/body.ts';
import { listEvents } from '../../../src/flow/events/list-events.ts';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { checkTransaction } from '../../../src/flow/transactions/reads.ts';
import { randomBelow } from '../../support/random.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const SEEDS = 300;
const MOVES = 160;
let service: ServiceOnDatabase;
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterAll(() => service.drop());

/** "apply one only if its `sequence` is higher than the last one applied of its object" */
function newReceiver() {
  const known = new Map<string, { readonly sequence: number; readonly status: string }>();
  return {
    known,
    receive({ sequence, data: { object } }: EventBody): void {
      const id = 'transaction_id' in object ? object.transaction_id : object.id;
      if (sequence > (known.get(id)?.sequence ?? 0)) known.set(id, { sequence, status: object.status });
    },
  };
}

async function listed(limit: number): Promise<EventBody[]> {
  const { ctx, merchantId } = service;
  const all: EventBody[] = [];
  const filter = { merchantId, limit, object: null, type: null, createdGteMs: null, createdLtMs: null };
  for (;;) {
    const { data, hasMore } = await listEvents(ctx, { ...filter, startingAfter: all.at(-1)?.id ?? null });
    all.push(...data);
    if (!hasMore) return all;
  }
}

test('ends with the status of every transaction, whatever it got and missed', { timeout: 120_000 }, async () => {
  const below = randomBelow(20_261_123);
  const ids: string[] = [];
  const one = (): string => ids[below(ids.length)] as string;
  const { ctx, merchantId } = service;
  const moves: (() => Promise<unknown>)[] = [
    async () => ids.push((await service.create()).transactionId),
    () => service.pay(one(), BigInt(10_000 + 20_000 * below(3))),
    () => service.pay(one(), BigInt(50_000 + below(9_000))),
    () => service.pay(one(), 30_000n, { currency: 'LTC' }),
    () => service.mine(1 + below(2)),
    () => service.wait(60_000 * (1 + below(30))),
    () => cancelTransaction(ctx, { merchantId, transactionId: one() }),
    () =>
      resolveTransaction(ctx, { merchantId, transactionId: one(), part: null, action: below(2) === 0 ? 'accept' : 'decline' }),
  ];
  for (let n = 0; n < MOVES; n++) {
    const move = moves[n < 4 ? 0 : below(moves.length)] as () => Promise<unknown>;
    // many are refused in the state of that moment
    await move().catch(() => undefined);
    await service.judge();
  }
  const truth = new Map<string, string>();
  for (const transactionId of ids) truth.set(transactionId, (await checkTransaction(ctx, { merchantId, transactionId })).status);
  expect(new Set(truth.values()).size).toBeGreaterThan(3);

  const told = (await listed(100)).toReversed();
  expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
  for (const id of ids) {
    const mine = told.filter(({ data: { object } }) => 'transaction_id' in object && object.transaction_id === id);
    expect(mine.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(mine.map((_, n) => n + 1));
  }
  for (let seed = 1; seed <= SEEDS; seed++) {
    const chance = randomBelow(seed);
    const receiver = newReceiver();
    const arriving = [...told, ...told].filter(() => chance(10) < 4);
    const order = arriving.map((event) => ({ event, at: chance(1_000_000) })).sort((a, b) => a.at - b.at);
    for (const { event } of order) receiver.receive(event);
    // it was down for some of them
    for (const event of seed % 50 === 0 ? await listed(1 + chance(100)) : told) receiver.receive(event);
    expect(new Map([...receiver.known].map(([id, { status }]) => [id, status])), `seed ${seed}`).toEqual(truth);
  }
});
