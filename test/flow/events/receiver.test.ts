// A receiver that is written from docs/behaviour.md §8 alone: it gets events in any order, some twice and some never, asks /list_events for
// what it missed, and knows in the end what check_transaction and check_payout say. And each event shows its object as it was then.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type EventBody, eventBody } from '../../../src/flow/events/body.ts';
import { listEvents } from '../../../src/flow/events/list-events.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { progress } from '../../../src/flow/payouts/progress.ts';
import { checkPayoutStatus, shownPayout } from '../../../src/flow/payouts/reads.ts';
import { cancelTransaction, resolveTransaction } from '../../../src/flow/transactions/create-cancel-resolve.ts';
import { checkTransaction } from '../../../src/flow/transactions/reads.ts';
import type { FoundEvent } from '../../../src/store/deliveries/events.ts';
import { batchesOf } from '../../support/batches.ts';
import { tellFee } from '../../support/funded.ts';
import { randomBelow } from '../../support/random.ts';
import { openServiceOnDatabase, type Sent, type ServiceOnDatabase } from '../../support/service-on-database.ts';

const SEEDS = 300;
const MOVES = 220;
type Shown = EventBody['data']['object'];
let service: ServiceOnDatabase;
let batches: ReturnType<typeof batchesOf>;
beforeAll(async () => {
  service = await openServiceOnDatabase();
  batches = batchesOf(service);
  await tellFee(service.ctx);
});
afterAll(() => service.drop());

const idOf = (object: Shown): string => ('transaction_id' in object ? object.transaction_id : object.id);

/** "apply one only if its `sequence` is higher than the last one applied of its object" */
function newReceiver() {
  const known = new Map<string, { readonly sequence: number; readonly object: Shown }>();
  return {
    known,
    receive({ sequence, data: { object } }: EventBody): void {
      if (sequence > (known.get(idOf(object))?.sequence ?? 0)) known.set(idOf(object), { sequence, object });
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

/** What /check_transaction and /check_payout say, with the two fields that only events have of a transaction. */
async function checked(id: string): Promise<Shown> {
  const { ctx, merchantId } = service;
  if (id.startsWith('payout_')) return shownPayout(await checkPayoutStatus(ctx, { merchantId, payoutId: id }));
  const { createdAtMs, confirmedAtMs, ...view } = await checkTransaction(ctx, { merchantId, transactionId: id });
  const then = { ...view, createdAtMs, confirmedAtMs, kind: 'transaction', received: view.receivedMinor, label: null } as const;
  const event = { objectId: id, sequence: 1, type: 'transaction.started', atMs: 0, previous: null, payment: null, object: then };
  return eventBody(ctx, event as unknown as FoundEvent).data.object;
}

/** What changes without an event: a receiver that wants it asks. */
function lasting(object: Shown): object {
  if (!('transaction_id' in object)) {
    const { held_reason: _why, ...rest } = object;
    return { ...rest, txid: null, fee: null };
  }
  const { crypto_received: _received, confirmations: _deep, ...rest } = object;
  return rest;
}

function movesOf(below: (n: number) => number, ids: string[], payouts: string[]) {
  const { ctx, merchantId } = service;
  const sent: Sent[] = [];
  const one = (of = ids): string => of[below(of.length)] as string;
  const pay = async (amount: bigint, to = {}) => void sent.push(await service.pay(one(), amount, to));
  const someSent = (): Sent => sent[below(sent.length)] as Sent;
  return [
    async () => ids.push((await service.create()).transactionId),
    () => pay(BigInt(10_000 + 20_000 * below(3))),
    () => pay(BigInt(50_000 + below(9_000))),
    () => pay(30_000n, { currency: 'LTC' }),
    // a replacement of what waits, to the same or to another transaction
    () => pay(BigInt(10_000 + below(60_000)), { inputs: someSent().facts.inputs }),
    () => service.evict(someSent()),
    () => service.vanish('BTC', 1),
    () => service.mine(1 + below(2)),
    () => service.mine(1),
    () => service.wait(60_000 * (1 + below(30))),
    () => cancelTransaction(ctx, { merchantId, transactionId: one() }),
    () =>
      resolveTransaction(ctx, { merchantId, transactionId: one(), part: null, action: below(2) === 0 ? 'accept' : 'decline' }),
    async () => payouts.push(await batches.request(below(2) === 0 ? '0.001' : '0.002')),
    () => approvePayout(ctx, { payoutId: one(payouts), by: 'ann' }),
    () => cancelPayout(ctx, { merchantId, payoutId: one(payouts) }),
    async () => {
      const batch = await batches.formed();
      const signed = await batches.signed(batch);
      if (below(3) > 0) await batches.mined(batch, signed);
      await progress(ctx, batch.id);
    },
  ];
}

test('ends with the state of every object, whatever it got and missed', { timeout: 120_000 }, async () => {
  const below = randomBelow(20_261_123);
  const { ctx, merchantId } = service;
  await batches.earn(6);
  await setSettings(ctx, { merchantId, scopes: new Set(['payouts', 'payments']), change: { payoutApprovalAbove: '150.00' } });
  const ids: string[] = [];
  const payouts: string[] = [];
  const moves = movesOf(below, ids, payouts);
  const earlier = new Set((await listed(100)).map(({ id }) => id));
  const told: EventBody[] = [];
  for (let n = 0; n < MOVES; n++) {
    const move = moves[n < 4 ? 0 : below(moves.length)] as () => Promise<unknown>;
    // many are refused in the state of that moment
    await move().catch(() => undefined);
    await service.judge();
    const fresh = (await listed(100)).filter(({ id }) => !earlier.has(id)).toReversed();
    for (const { id } of fresh) earlier.add(id);
    told.push(...fresh);
    // of several that were written at once the last one shows how it is now
    const last = new Map(fresh.map((event) => [idOf(event.data.object), event.data.object]));
    for (const [id, object] of last)
      if ([...ids, ...payouts].includes(id)) expect(object, `move ${n}`).toEqual(await checked(id));
  }
  const truth = new Map<string, object>();
  for (const id of [...ids, ...payouts]) truth.set(id, lasting(await checked(id)));
  const statuses = new Set([...truth.values()].map((object) => (object as { status: string }).status));
  expect([...statuses].sort()).toEqual(expect.arrayContaining(['completed', 'failed', 'pending', 'review', 'succeeded']));

  expect(new Set(told.map(({ id }) => id)).size).toBe(told.length);
  for (const id of truth.keys()) {
    const mine = told.filter(({ data: { object } }) => idOf(object) === id);
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
    const ends = new Map([...receiver.known].map(([id, { object }]) => [id, lasting(object)]));
    for (const [id, object] of truth) expect(ends.get(id), `seed ${seed}`).toEqual(object);
  }
});
