// What is known of what our Lightning node lists as paid or under way, and which of it nobody here has asked for: each answer that the books are compared by,
// on the rows of a real database.
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { PaymentFacts } from '../../src/core/lightning/payer.ts';
import {
  isBookedHere,
  isUndecided,
  listedFee,
  lockUnasked,
  readPaymentsCompared,
  recordSent,
  setAcknowledged,
  setForgotten,
  setListedFor,
  setOperators,
  unaskedHashes,
} from '../../src/store/lightning/sent-payments.ts';
import { AMOUNT, at, clock, close, engine, invoice, open } from './funded-payouts.ts';

const HASH = 'ab'.repeat(32);
const NOBODY = 'cd'.repeat(32);
let node: string;
/** A payout that the node was asked to pay. */
let payout: { readonly id: string; readonly hash: string };
let another: { readonly id: string };
/** The step of one that the node was asked for. */
let under: string;
beforeAll(async () => {
  await open();
  node = engine.node().identity;
  const { request, hash } = invoice('hold');
  payout = { id: (await at.request(request, AMOUNT)).id, hash };
  another = await at.request(invoice('hold').request, AMOUNT);
  await at.look();
  await sql('update lightning_nodes set payments_compared = 10');
  [{ step: under }] = await sql('select step from payouts where id = $1', [payout.id]);
});
afterAll(close);
afterEach(async () => {
  await sql('delete from lightning_sent');
  await sql('delete from lightning_unknown_invoices');
  await sql('update lightning_nodes set payments_compared = 10, restored_at = null, held_at = null, listed_for = null');
  await becomes('sent', 'processing');
});

const sql = async (text: string, values: readonly unknown[] = []) => (await at.admin.query(text, [...values])).rows;
/** What the payout and its payment are. */
async function becomes(state: string, status: string, more: { readonly index?: number; readonly doubted?: boolean } = {}) {
  const { index = 1, doubted = false } = more;
  const [preimage, fee] = state === 'paid' ? [Buffer.alloc(32, 7), 0] : [null, null];
  await sql(
    `update lightning_payments set state = $2, node = $3, payment_index = $4, doubted = $5, forgotten_at = null, preimage = $6, fee_msat = $7,
            payment_hash = coalesce(encode(sha256($6), 'hex'), $8), due_at = null where payout_id = $1`,
    [payout.id, state, node, index, doubted, preimage, fee, payout.hash],
  );
  const [step, error] = status === 'processing' ? [under, null] : ['ended', status === 'failed' ? 'refused' : null];
  await sql('update payouts set status = $2, step = $3, error = $4 where id = $1', [payout.id, status, step, error]);
}
const one = (paymentHash: string, more: Partial<PaymentFacts> = {}): PaymentFacts => ({
  ...{ paymentHash, status: 'succeeded', amountMsat: '1000000', feeMsat: '70', preimage: null, failure: null, paymentIndex: '1' },
  isPartOpen: false,
  ...more,
});
const listed = (...page: readonly PaymentFacts[]) =>
  recordSent(at.ctx.db, node, { afterIndex: 0n, payments: page }, 10n, clock.nowMs);
const rows = () =>
  sql(
    'select payment_index::int as n, payment_hash as hash, state, acknowledged_at is not null as booked, is_operators as own from lightning_sent order by 1',
  );

describe('what a page of its list says', () => {
  test('is kept, but for what has failed, and up to where everything has ended', async () => {
    await listed(
      one(HASH),
      one(NOBODY, { paymentIndex: '2', status: 'in_flight' }),
      one(payout.hash, { paymentIndex: '3', status: 'failed' }),
    );
    const kept = [
      { n: 1, hash: HASH, state: 'succeeded', booked: false, own: false },
      { n: 2, hash: NOBODY, state: 'in_flight', booked: false, own: false },
    ];
    expect(await rows()).toEqual(kept);
    const failed = one(NOBODY, { paymentIndex: '2', status: 'failed' });
    await recordSent(at.ctx.db, node, { afterIndex: 1n, payments: [failed] }, 12n, clock.nowMs);
    expect(await rows()).toEqual(kept.slice(0, 1));
    expect(await readPaymentsCompared(at.ctx.db, node)).toEqual({ compared: 12n, heldAt: null });
  });

  test('is all that is under way up to its last one, and what was paid stays where the list does not have it any more', async () => {
    const underWay = ['1', '2', '4', '5'].map((paymentIndex) => one(NOBODY, { paymentIndex, status: 'in_flight' }));
    await listed(...underWay, one(HASH, { paymentIndex: '3' }));
    await recordSent(at.ctx.db, node, { afterIndex: 1n, payments: [one(payout.hash, { paymentIndex: '4' })] }, 10n, clock.nowMs);
    expect((await rows()).map(({ n, state }) => [n, state])).toEqual([
      [1, 'in_flight'],
      [3, 'succeeded'],
      [4, 'succeeded'],
      [5, 'in_flight'],
    ]);
    await recordSent(at.ctx.db, `02${HASH}`, { afterIndex: 0n, payments: [one(HASH, { paymentIndex: '9' })] }, 10n, clock.nowMs);
    await recordSent(at.ctx.db, node, { afterIndex: 0n, payments: [] }, 10n, clock.nowMs);
    expect((await rows()).map(({ n }) => n)).toEqual([1, 3, 4, 5, 9]);
  });

  test('does not change what was booked, where it is the same payment', async () => {
    await listed(one(HASH), one(NOBODY, { paymentIndex: '2' }));
    for (const hash of [HASH, NOBODY]) await setAcknowledged(at.ctx.db, hash, true, clock.nowMs);
    await listed(one(HASH), one(payout.hash, { paymentIndex: '2' }));
    expect(await rows()).toMatchObject([
      { booked: true, own: true },
      { hash: payout.hash, booked: false, own: false },
    ]);
  });

  test('its fee is what has succeeded has cost', async () => {
    await listed(one(HASH), one(NOBODY, { paymentIndex: '2', status: 'in_flight' }));
    expect(await Promise.all([HASH, NOBODY, payout.hash].map((hash) => listedFee(at.ctx.db, hash)))).toEqual([70n, null, null]);
  });
});

test('how far it was compared is known of a node that was asked, and what was read to its end is kept', async () => {
  expect(await readPaymentsCompared(at.ctx.db, `02${HASH}`)).toEqual({ compared: null, heldAt: null });
  const heldAt = new Date(clock.nowMs);
  await sql('update lightning_nodes set held_at = $1', [heldAt]);
  expect(await readPaymentsCompared(at.ctx.db, node)).toEqual({ compared: 10n, heldAt });
  await setListedFor(at.ctx.db, node, heldAt);
  expect(await sql('select listed_for from lightning_nodes')).toEqual([{ listed_for: heldAt }]);
});

describe('what no payout here has asked for', () => {
  const asked = (hash: string) => at.ctx.db.transaction((on) => lockUnasked(on, hash));
  const NOT_ASKED = { isUnderWay: false, isOperators: false, amountMsat: 1_000_000n, feeMsat: 70n, isOfFailed: false };

  test('is what it lists for a hash of no payout, until that is booked', async () => {
    expect(await asked(HASH)).toBeNull();
    await listed(one(HASH));
    expect(await asked(HASH)).toEqual({ node, ...NOT_ASKED });
    expect(await unaskedHashes(at.ctx.db)).toEqual([HASH]);
    expect(await isUndecided(at.ctx.db, node)).toBe(true);
    await setAcknowledged(at.ctx.db, HASH, false, clock.nowMs);
    expect(await asked(HASH)).toBeNull();
    expect(await unaskedHashes(at.ctx.db)).toEqual([]);
    expect(await isUndecided(at.ctx.db, node)).toBe(false);
  });

  test('is locked by whoever has it booked', async () => {
    await listed(one(HASH));
    await at.ctx.db.transaction(async (on) => {
      await lockUnasked(on, HASH);
      await expect(sql('select from lightning_sent where payment_hash = $1 for update nowait', [HASH])).rejects.toMatchObject({
        code: '55P03',
      });
    });
  });

  test('is what it lists for a payout that has failed, and not for one that has not', async () => {
    await listed(one(payout.hash));
    expect(await asked(payout.hash)).toBeNull();
    expect(await unaskedHashes(at.ctx.db)).toEqual([]);
    await becomes('failed', 'failed');
    expect(await asked(payout.hash)).toEqual({ node, ...NOT_ASKED, isOfFailed: true });
    expect(await unaskedHashes(at.ctx.db)).toEqual([payout.hash]);
  });

  test.each([
    ['under way under its number', { status: 'in_flight', paymentIndex: '3' }, []],
    ['under way under an earlier number', { status: 'in_flight', paymentIndex: '2' }, []],
    ['under way under a later number, as one asked for again', { status: 'in_flight', paymentIndex: '4' }, [1]],
    ['paid under its number', { status: 'succeeded', paymentIndex: '3' }, [1]],
  ] as const)('of one that has failed here is what is %s: %j, %j', async (_what, as, found) => {
    await becomes('failed', 'failed', { index: 3 });
    await listed(one(payout.hash, as));
    expect(await unaskedHashes(at.ctx.db)).toHaveLength(found.length);
    expect(await unaskedHashes(at.ctx.db, { node, afterIndex: 1n })).toHaveLength(found.length);
    expect(await isUndecided(at.ctx.db, node)).toBe(found.length > 0);
    // another node gives numbers of its own
    await sql(`update lightning_payments set node = '02' || $1 where payout_id = $2`, [HASH, payout.id]);
    expect(await unaskedHashes(at.ctx.db)).toEqual([payout.hash]);
    // what an operator has called failed nobody asks for again, and its node may have been away then
    await sql(`update lightning_payments set state = 'closed' where payout_id = $1`, [payout.id]);
    expect(await unaskedHashes(at.ctx.db)).toHaveLength(as.status === 'succeeded' ? 1 : 0);
    // whoever wants to have it booked is told that it is under way
    expect(await asked(payout.hash)).toMatchObject({ isUnderWay: as.status === 'in_flight', isOfFailed: true });
  });

  test('is under way until it has succeeded, and stops nothing once its operator has said that it is his', async () => {
    await listed(one(HASH, { status: 'in_flight' }), one(NOBODY, { paymentIndex: '2' }));
    expect(await asked(HASH)).toEqual({ node, ...NOT_ASKED, isUnderWay: true });
    for (const hash of [HASH, NOBODY]) await setOperators(at.ctx.db, hash);
    expect(await asked(HASH)).toMatchObject({ isOperators: true });
    // what has succeeded is booked otherwise
    expect(await asked(NOBODY)).toMatchObject({ isOperators: false });
    expect(await unaskedHashes(at.ctx.db)).toEqual([NOBODY]);
    await setAcknowledged(at.ctx.db, NOBODY, false, clock.nowMs);
    expect(await isUndecided(at.ctx.db, node)).toBe(false);
  });

  test.each([
    ['was paid', '1000', null, true],
    ['was not paid', null, null, false],
    ['was paid, and is booked', '1000', new Date(), false],
  ])(
    'an invoice of the node that nobody here has made, and that %s, is undecided: %s',
    async (_what, paidMsat, bookedAt, wanted) => {
      await sql(
        'insert into lightning_unknown_invoices (payment_hash, node, paid_msat, acknowledged_at, added_at) values ($1, $2, $3, $4, now())',
        [HASH, node, paidMsat, bookedAt],
      );
      expect(await isUndecided(at.ctx.db, node)).toBe(wanted);
      expect(await isUndecided(at.ctx.db, `02${HASH}`)).toBe(false);
    },
  );
});

describe('what it has paid for a hash is in the books', () => {
  const booked = (hash: string, payoutId: string) => isBookedHere(at.ctx.db, hash, payoutId);
  test('once an operator has booked it', async () => {
    await listed(one(HASH));
    expect(await booked(HASH, payout.id)).toBe(false);
    await setAcknowledged(at.ctx.db, HASH, false, clock.nowMs);
    expect(await booked(HASH, payout.id)).toBe(true);
  });

  test('where another payout has had it paid, and did not fail', async () => {
    expect(await booked(payout.hash, payout.id)).toBe(false);
    expect(await booked(payout.hash, another.id)).toBe(true);
    await becomes('failed', 'failed');
    expect(await booked(payout.hash, another.id)).toBe(false);
  });
});

describe('what a payout had paid, and its node does not list', () => {
  const PAID_HASH = async (): Promise<string> =>
    (await sql('select payment_hash from lightning_payments where payout_id = $1', [payout.id]))[0].payment_hash;
  const restored = () => sql('update lightning_nodes set restored_at = now()');
  const forgotten = async () => setForgotten(at.ctx.db, await PAID_HASH(), clock.nowMs);

  test.each<[string, boolean, () => Promise<unknown>]>([
    [
      'that has its preimage, where the node was restored',
      true,
      async () => [await becomes('paid', 'completed', { index: 10 }), await restored()],
    ],
    [
      'that has its preimage, where the node was never restored, and its payments were deleted',
      true,
      () => becomes('paid', 'completed', { index: 10 }),
    ],
    [
      'that has its preimage, beyond what was compared since',
      false,
      async () => [await becomes('paid', 'completed', { index: 11 }), await restored()],
    ],
    [
      'that has its preimage and is in doubt, wherever it was',
      true,
      async () => [await becomes('paid', 'completed', { index: 11, doubted: true }), await restored()],
    ],
    [
      'that has its preimage, and the node lists it after all',
      false,
      async () => [
        await becomes('paid', 'completed'),
        await restored(),
        await listed(one(await PAID_HASH(), { paymentIndex: '4' })),
      ],
    ],
    ['that an operator has found paid', true, () => becomes('closed', 'completed', { index: 10 })],
    [
      'that an operator has found paid, beyond what was compared since',
      false,
      () => becomes('closed', 'completed', { index: 11 }),
    ],
    [
      'that an operator has found paid, and is in doubt',
      false,
      () => becomes('closed', 'completed', { index: 10, doubted: true }),
    ],
    ['that has failed', false, async () => [await becomes('closed', 'failed'), await restored()]],
    ['that is under way', false, restored],
  ])('one %s is told to be forgotten: %s', async (_which, wanted, as) => {
    await as();
    expect(await forgotten()).toBe(wanted ? payout.id : null);
    const [{ told }] = await sql('select forgotten_at is not null as told from lightning_payments where payout_id = $1', [
      payout.id,
    ]);
    expect(told).toBe(wanted);
    // once
    expect(await forgotten()).toBeNull();
  });
});
