// What follows from each word of the node on a payment that it has not ended, or may have forgotten: when it is looked at again, what its operator is told,
// and from when on it waits for him. On the simulated node, with a payment that it holds back, and a clock that the test moves.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { PayingNode, PaymentFacts, TrackedPayment } from '../../src/core/lightning/payer.ts';
import type { LightningPort } from '../../src/core/lightning/port.ts';
import type { Context } from '../../src/flow/context.ts';
import type { Asked } from '../../src/flow/lightning/restored-node.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { type LightningPayment, leasePayment } from '../../src/store/lightning/payment-rows.ts';
import {
  asItIsNow,
  bookPaid,
  forgottenPerhaps,
  heldUnlisted,
  inFlight,
  notInJournal,
  ofAnotherNode,
} from '../../src/worker/payouts/lightning/hanging.ts';
import { AMOUNT, at, clock, close, engine, invoice, open, outgoing, pass } from './funded-payouts.ts';

const [SECOND, RARELY, HOUR] = [1_000, 60_000, 3_600_000];
const DAY = 24 * HOUR;

/** A payout that the node was asked for, and that this worker has leased. */
async function leased(): Promise<LightningPayment> {
  const { id } = await at.request(invoice('hold').request, AMOUNT);
  await at.look();
  pass(16 * SECOND);
  const lease = { owner: 'test', nowMs: clock.nowMs, untilMs: clock.nowMs + HOUR, not: [] };
  for (let one = await leasePayment(at.ctx.db, lease); one !== null; one = await leasePayment(at.ctx.db, lease))
    if (one.payoutId === id) return one;
  throw new Error('it is not leased');
}

let payment: LightningPayment;
let nowMs: number;
beforeAll(async () => {
  await open();
  payment = await leased();
  nowMs = clock.nowMs;
});
afterAll(close);
let step: string;
beforeEach(async () => {
  ({ step } = (await at.admin.query('select step from payouts where id = $1', [payment.payoutId])).rows[0]);
});
afterEach(async () => {
  clock.nowMs = nowMs;
  await at.admin.query('update payouts set step = $2, held_reason = null where id = $1', [payment.payoutId, step]);
  await at.admin.query('update lightning_payments set doubted = false where payout_id = $1', [payment.payoutId]);
});

/** As everything is here, but for what the port to the node says; null: there is none. */
const where = (port: Partial<LightningPort> | null): Context => {
  const lightning = port === null ? null : ({ ...at.ctx.ports.lightning, ...port } as LightningPort);
  return { ...at.ctx, ports: { ...at.ctx.ports, lightning } };
};
const isHeld = async (id = payment.payoutId): Promise<boolean> => (await at.payout(id)).heldReason === 'unknown_outcome';
const silent = () => Promise.reject(new NodeTrouble('down', 'it does not answer'));
const faulty = () => Promise.reject(new TypeError('a fault'));
const said = (more: Partial<PaymentFacts> = {}): PaymentFacts => ({
  ...{ paymentHash: payment.paymentHash, status: 'in_flight', amountMsat: '1000000', feeMsat: '0', preimage: null },
  ...{ failure: null, paymentIndex: '1', isPartOpen: false },
  ...more,
});

describe('one that it calls under way', () => {
  type Case = {
    /** After the node was last asked, and when its invoice expires after that. */
    readonly afterMs: number;
    readonly expiresMs?: number;
    readonly tracked?: Partial<TrackedPayment>;
    readonly port?: Partial<LightningPort> | null;
  };
  async function looked({ afterMs, expiresMs = HOUR, tracked = {}, port = {} }: Case) {
    const { askedAtMs } = payment;
    const of = { ...payment, createdAtMs: askedAtMs, expiresAtMs: askedAtMs + expiresMs };
    return inFlight(where(port), of, { isPending: false, ...tracked, payment: said() }, askedAtMs + afterMs);
  }

  test.each([
    ['at first every second', -5 * SECOND, SECOND],
    ['then more and more rarely', 60 * SECOND, 2 * SECOND],
    ['and every ten seconds in the end', 3_000 * SECOND, 10 * SECOND],
  ])('is looked at %s', async (_how, afterMs, againMs) => {
    expect(await looked({ afterMs })).toEqual({ againMs });
    expect(await isHeld()).toBe(false);
  });

  test.each<[string, Case]>([
    ['its invoice expires', { afterMs: HOUR - 1 }],
    ['the node looks for a route, though its invoice has expired', { afterMs: 599_999, expiresMs: SECOND }],
    ['a day has passed, though its invoice never expires', { afterMs: DAY - 1, expiresMs: 9 * DAY }],
  ])('waits for nobody before %s', async (_what, before) => {
    expect(await looked(before)).toEqual({ againMs: 10 * SECOND });
    expect(await isHeld()).toBe(false);
    expect(await looked({ ...before, afterMs: before.afterMs + 1 })).toEqual({
      againMs: RARELY,
      trouble: expect.stringContaining('hangs for good'),
    });
    expect(await isHeld()).toBe(true);
  });

  test.each<[string, Omit<Case, 'afterMs'>, object]>([
    ['a channel holds', { tracked: { isPending: true } }, { againMs: 10 * SECOND }],
    [
      'may still arrive',
      { tracked: { isPending: true, arrivesUntil: 500 } },
      { againMs: RARELY, trouble: expect.stringContaining('up to block 500') },
    ],
    [
      'may be decided on the chain',
      { port: { isClosing: async () => true } },
      { againMs: RARELY, trouble: expect.stringContaining('the chain decides within days') },
    ],
    [
      'may be in a channel of which nothing is known',
      { port: { isClosing: silent } },
      { againMs: RARELY, trouble: expect.stringContaining('is not known: it does not answer') },
    ],
  ])('is decided by nobody while it %s', async (_what, how, next) => {
    expect(await looked({ afterMs: HOUR, ...how })).toEqual(next);
    expect(await isHeld()).toBe(false);
  });

  test('waits for its operator where no node is configured any more, and not for a fault of ours', async () => {
    await expect(looked({ afterMs: HOUR, port: { isClosing: faulty } })).rejects.toThrow('a fault');
    expect(await isHeld()).toBe(false);
    expect(await looked({ afterMs: HOUR, port: null })).toMatchObject({ trouble: expect.stringContaining('hangs for good') });
    expect(await isHeld()).toBe(true);
  });
});

describe('what it has perhaps forgotten', () => {
  const [NOT_ANSWERED, STARTED] = [
    /^a request to pay it was not answered/,
    /^the Lightning node calls it failed, and was started/,
  ];
  const START = Date.UTC(2026, 0, 1);
  type Seen = { readonly startedAtMs: number; readonly startSeenAtMs: number; readonly seenAtMs: number };
  const seen = (more: Partial<Seen> = {}): Seen => ({ startedAtMs: START, startSeenAtMs: START, seenAtMs: nowMs, ...more });
  const known = { sends: 1, paymentIndex: 1n, unansweredUntilMs: null, nodeStartedAtMs: START } as const;
  const doubtful = { ...known, unansweredUntilMs: 1, paymentIndex: null } as const;
  /** What is said of it, and what the port was asked. */
  async function looked(of: Partial<LightningPayment>, node = seen(), says: 'no' | 'yes' | 'not_met' = 'yes') {
    let asked: Parameters<LightningPort['mayBeOlder']> | null = null;
    const mayBeOlder: LightningPort['mayBeOlder'] = async (...all) => {
      asked = all;
      return says;
    };
    const next = await forgottenPerhaps(where({ mayBeOlder }), at.paying, { ...payment, ...of }, node);
    return { next, asked: asked as Parameters<LightningPort['mayBeOlder']> | null };
  }

  test.each<[string, Partial<LightningPayment>, Partial<Seen>]>([
    ['it has run on and answered', known, {}],
    ['it has answered the only request', { ...known, unansweredUntilMs: 1 }, {}],
    ['it has answered each of two requests', { ...known, sends: 2 }, {}],
    ['it never had it, and was started since', { ...known, paymentIndex: null }, { startedAtMs: START + HOUR }],
    ['what is read of its start differs by little', known, { startedAtMs: START + 10 * SECOND }],
  ])('where %s its word counts, and its channels are not asked', async (_what, of, node) => {
    expect(await looked(of, seen(node))).toEqual({ next: null, asked: null });
  });

  test.each<[string, Partial<LightningPayment>, Partial<Seen>, RegExp]>([
    ['a request was not answered', doubtful, {}, NOT_ANSWERED],
    ['one of two requests was not answered', { ...known, unansweredUntilMs: 1, sends: 2 }, {}, NOT_ANSWERED],
    ['it was started since', known, { startedAtMs: START + 10 * SECOND + 1 }, STARTED],
    ['it is not known when it was started', { ...known, nodeStartedAtMs: null }, {}, STARTED],
  ])('where %s its channels decide', async (_what, of, node, why) => {
    expect(await looked(of, seen(node), 'no')).toMatchObject({ next: null, asked: expect.any(Array) });
    expect(await isHeld()).toBe(false);
    const { next } = await looked(of, seen(node));
    expect(next).toEqual({ againMs: RARELY, trouble: expect.stringMatching(why) });
    expect(next?.trouble).toContain('a channel was closed since');
    expect(await isHeld()).toBe(true);
  });

  test('while the other side of a channel is away it waits for that, and in the end for its operator', async () => {
    const of = { ...doubtful, expiresAtMs: payment.askedAtMs + HOUR };
    clock.nowMs = payment.askedAtMs + HOUR - 1;
    const { next } = await looked(of, seen(), 'not_met');
    expect(next).toEqual({ againMs: RARELY, trouble: expect.stringMatching(/other side of a channel is away.*put back since$/) });
    expect(await isHeld()).toBe(false);
    clock.nowMs += 1;
    const late = await looked(of, seen(), 'not_met');
    expect(late.next).toEqual({ againMs: RARELY, trouble: expect.stringMatching(/put back since; ask its recipient/) });
    expect(await isHeld()).toBe(true);
  });

  test('its channels are asked about the time since it was requested, as it had them then, and as it has run since', async () => {
    const of = { ...doubtful, createdAtMs: nowMs - HOUR, nodeStartedAtMs: null };
    const ran = seen({ startSeenAtMs: nowMs - 2 * HOUR });
    const { rows } = await at.admin.query('select channel_point from lightning_channels where node = $1', [payment.node]);
    const had = rows.map(({ channel_point }) => channel_point);
    expect(had).not.toEqual([]);
    const run = async (more: Partial<LightningPayment>, node: Seen) => (await looked({ ...of, ...more }, node)).asked?.[2];
    expect((await looked(of, ran)).asked?.slice(0, 2)).toEqual([HOUR, { had, closedBefore: [] }]);
    expect(await run({}, ran)).toEqual({ hasRunOn: true, areMet: true });
    // seen in this run a moment too late, started since, and just back with its memory
    expect(await run({}, { ...ran, startSeenAtMs: nowMs - 2 * HOUR + 1 })).toMatchObject({ hasRunOn: false });
    expect(await run({ nodeStartedAtMs: START - HOUR }, ran)).toMatchObject({ hasRunOn: false });
    expect(await run({}, seen({ startSeenAtMs: nowMs }))).toEqual({ hasRunOn: false, areMet: false });
  });

  test('where nobody says how its channels are it stays as it is; where no node is configured its word counts', async () => {
    const of = { ...payment, ...doubtful };
    expect(await forgottenPerhaps(where({ mayBeOlder: silent }), at.paying, of, seen())).toEqual({
      againMs: RARELY,
      trouble: expect.stringMatching(/put back since is not known: it does not answer$/),
    });
    await expect(forgottenPerhaps(where({ mayBeOlder: faulty }), at.paying, of, seen())).rejects.toThrow('a fault');
    expect(await forgottenPerhaps(where(null), at.paying, of, seen())).toBeNull();
    expect(await isHeld()).toBe(false);
  });

  test.each<[string, Partial<LightningPayment>, boolean]>([
    ['one that was never asked for', { paymentIndex: null, unansweredUntilMs: null }, false],
    ['one that it has', { paymentIndex: 1n, unansweredUntilMs: null }, true],
    ['one of which a request was not answered', { paymentIndex: null, unansweredUntilMs: 1 }, true],
  ])('of %s the node is asked anew what it is: %s', async (_what, of, isAsked) => {
    const before = { identity: 'as it was' } as Asked;
    const now = await asItIsNow(at.ctx, at.paying, before, { ...payment, ...of });
    expect(now.identity).toBe(isAsked ? engine.node().identity : 'as it was');
  });
});

test('one that may still arrive waits for no operator though the journal of the signer does not have it, and for him afterwards', async () => {
  const of = { ...payment, unansweredUntilMs: nowMs };
  expect(await notInJournal(at.ctx, of, 'refused')).toEqual({ againMs: SECOND, trouble: 'refused' });
  expect(await isHeld()).toBe(false);
  pass(60 * SECOND + 1);
  expect(await notInJournal(at.ctx, of, 'refused')).toEqual({
    againMs: RARELY,
    trouble: expect.stringMatching(/^refused; the Lightning node does not have it: decide/),
  });
  expect(await isHeld()).toBe(true);
});

test('while another node is there one waits, and for its operator from when it would hang', async () => {
  const another = { identity: `02${'ab'.repeat(32)}` } as PayingNode;
  const of = { ...payment, expiresAtMs: payment.askedAtMs + HOUR };
  const told = { againMs: RARELY, trouble: expect.stringMatching(/was asked to pay it, and this is node 02abab/) };
  clock.nowMs = payment.askedAtMs + HOUR - 1;
  expect(await ofAnotherNode(at.ctx, of, another)).toEqual(told);
  expect(await isHeld()).toBe(false);
  clock.nowMs += 1;
  expect(await ofAnotherNode(at.ctx, of, another)).toEqual(told);
  expect(await isHeld()).toBe(true);
});

test('one that a channel holds, and the node does not list, waits for its operator, and only a preimage counts from then on', async () => {
  expect((await at.payment(payment.payoutId)).doubted).toBe(false);
  expect(await heldUnlisted(at.ctx, payment)).toEqual({
    againMs: RARELY,
    trouble: expect.stringMatching(/^a channel holds an HTLC of it, and the Lightning node says that it has no such payment/),
  });
  expect(await isHeld()).toBe(true);
  expect((await at.payment(payment.payoutId)).doubted).toBe(true);
});

describe('one with a receipt', () => {
  async function paid(): Promise<{ readonly of: LightningPayment; readonly facts: PaymentFacts }> {
    const of = await leased();
    outgoing().resolve(of.paymentHash, true);
    return { of, facts: (await at.paying.track(of.paymentHash)).payment as PaymentFacts };
  }
  const status = async ({ payoutId }: LightningPayment) => (await at.payout(payoutId)).status;

  test.each<[string, object, object]>([
    ['without a word of its parts', { takenMsat: undefined }, { againMs: 15 * SECOND }],
    ['for all of it', { takenMsat: '1000000' }, { againMs: 15 * SECOND }],
    [
      'for a part of it',
      { takenMsat: '999999' },
      { againMs: 15 * SECOND, trouble: expect.stringMatching(/^its recipient has taken 999999 of 1000000 thousandths/) },
    ],
  ])('%s is completed', async (_what, more, next) => {
    const { of, facts } = await paid();
    expect(await bookPaid(at.ctx, of, { ...facts, ...more })).toEqual(next);
    expect(await status(of)).toBe('completed');
  });

  test('one that is still under way, and of which a part was taken, is completed and waits for nobody', async () => {
    const { of, facts } = await paid();
    const tracked = { isPending: false, payment: { ...facts, status: 'in_flight' } } as const;
    expect(await inFlight(at.ctx, of, tracked, of.askedAtMs + DAY)).toMatchObject({ againMs: 15 * SECOND });
    expect(await status(of)).toBe('completed');
  });

  test('with another amount was paid for somebody else, and waits for its operator', async () => {
    const { of, facts } = await paid();
    expect(await bookPaid(at.ctx, of, { ...facts, amountMsat: '999999' })).toEqual({
      againMs: RARELY,
      trouble: expect.stringMatching(/with 999999 thousandths of a satoshi for a fee of 2000, and/),
    });
    expect(await isHeld(of.payoutId)).toBe(true);
  });
});
