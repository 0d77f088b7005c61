// A node that is put back from a copy which was made while a payment was under way: it has the payment, under the same number, and calls it failed once its
// channels are closed and it is started again. The recipient may have taken it after the copy. On a simulated node with a clock that the test moves;
// test/lightning/lnd-copied-under-way.test.ts has it on a real LND.
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { cancelPayout } from '../../src/flow/payouts/cancel-and-approve.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { createHeldPayouts } from '../../src/worker/payouts/held-payouts.ts';
import {
  AMOUNT,
  at,
  clock,
  close,
  code,
  engine,
  forced,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  reached,
  status,
} from './funded-payouts.ts';
import { bothPutBack, counted } from './put-back.ts';

let end: () => Promise<void> = async () => undefined;
beforeEach(() => open());
afterEach(async () => {
  await end();
  end = async () => undefined;
  await close();
});
const WAITS = { status: 'processing', heldReason: null };
const UNKNOWN = { status: 'processing', heldReason: 'unknown_outcome' };
const UNANSWERED = /was not answered/;

/** A payout that is under way, as everybody knows, and whose node is put back to that moment. */
async function copied() {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  expect((await at.payment(id)).payment_index).not.toBeNull();
  const putBack = engine.backup();
  await looks(1, MINUTE);
  await putBack();
  await reached();
  return { id, hash: to.hash };
}

test('while a channel is closed by force it is not believed that it failed', async () => {
  const { id, hash } = await copied();
  forced(true);
  outgoing().resolve(hash, false);
  await looks(3, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
  expect((await at.payment(id)).trouble).toMatch(/closed by force/);
  expect((await at.payment(id)).trouble).not.toMatch(UNANSWERED);
});

test('nor while the other side of a channel is away, until that is there and the channel as it was', async () => {
  const { id, hash } = await copied();
  engine.node().setPeerAway(true);
  outgoing().resolve(hash, false);
  await looks(3, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject(WAITS);
  expect((await at.payment(id)).trouble).toMatch(/other side of a channel is away/);
  engine.node().setPeerAway(false);
  await looks(1, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject({ status: 'failed', error: 'the recipient did not accept the payment' });
});

test('nor is it asked for again where our channels lacked the amount', async () => {
  const { id, hash } = await copied();
  const startedMs = ((await at.payment(id)).node_started_at as Date).getTime();
  forced(true);
  outgoing().resolve(hash, false);
  const sent: string[] = [];
  let looks = 0;
  const lacking: Parameters<typeof at.look>[0] = {
    // it is put back after a look has begun
    async node() {
      const said = await at.paying.node();
      return looks++ % 2 === 0 ? counted(said, () => clock.nowMs - startedMs) : said;
    },
    async track(asked) {
      const said = await at.paying.track(asked);
      return { ...said, payment: said.payment && { ...said.payment, failure: 'FAILURE_REASON_INSUFFICIENT_BALANCE' } };
    },
    send(asked) {
      sent.push(asked.payoutId);
      return at.paying.send(asked);
    },
  };
  for (let n = 0; n < 3; n++) {
    pass(MINUTE);
    await at.look(lacking);
  }
  expect(sent).toEqual([]);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
});

test('nor one of which nobody knows how long the node had been running', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  await at.admin.query('update lightning_payments set node_started_at = null');
  forced(true);
  outgoing().resolve(to.hash, false);
  await looks(3, 2 * MINUTE);
  expect(await at.payout(id)).toMatchObject(UNKNOWN);
});

test('nor on a machine that was put back with its memory, and has run for long by what it says', async () => {
  pass(3 * 60 * MINUTE);
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  engine.node().setPeerAway(true);
  outgoing().resolve(to.hash, false);
  const putBack: Parameters<typeof at.look>[0] = {
    async node() {
      const said = await at.paying.node();
      return counted(said, (ms) => ms - MINUTE);
    },
  };
  for (let n = 0; n < 3; n++) {
    pass(2 * MINUTE);
    await at.look(putBack);
  }
  expect(await at.payout(id)).toMatchObject(WAITS);
});

test('one that was asked for since the node runs is failed by its word, whatever its channels show', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  await at.look();
  engine.node().setPeerAway(true);
  forced(true);
  outgoing().resolve(to.hash, false);
  await looks(3, 2 * MINUTE);
  expect(await status(id)).toBe('failed');
});

test('a database alone is put back: what failed at the node can be cancelled where it is held', async () => {
  await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  const restored = await bothPutBack(
    async () => {
      await clearBreakers(at.ctx.db, 'a test', clock.nowMs);
      await createHeldPayouts(at.ctx, () => undefined).run();
      await at.look();
      outgoing().resolve(to.hash, false);
      await looks(1);
      expect(await status(id)).toBe('failed');
    },
    { putBack: async () => undefined },
  );
  end = restored.end;
  await restored.looks(1);
  expect(await code(cancelPayout(restored.ctx, { merchantId: at.merchantId, payoutId: id }))).toBe('accepted');
});

test('put back together with a database that is older than the copy of the node, it is neither cancelled nor failed', async () => {
  const to = invoice('hold');
  const { id } = await at.request(to.request, AMOUNT);
  let putBack: () => Promise<void> = async () => undefined;
  const restored = await bothPutBack(
    async () => {
      await at.look();
      expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
      putBack = engine.backup();
    },
    {
      putBack: () => putBack(),
      meanwhile() {
        outgoing().resolve(to.hash, false);
        engine.node().setPeerAway(true);
      },
    },
  );
  end = restored.end;
  await restored.looks(1);
  expect(await code(cancelPayout(restored.ctx, { merchantId: at.merchantId, payoutId: id }))).toBe('payout_not_cancellable');
  engine.node().setPeerAway(false);
  forced(true);
  await restored.looks(4, 2 * MINUTE);
  expect(outgoing().payment(to.hash)?.status).toBe('FAILED');
  expect(await restored.seen(id)).toMatchObject(UNKNOWN);
});

describe('put back together with a database and a signer that are older than the copy of the node', () => {
  /** @param of `isHeld`: the copy of the database still holds it back; `failed`: what the node shows once it calls the payment failed */
  async function allPutBack({ isHeld, failed }: { readonly isHeld: boolean; readonly failed: () => void }) {
    if (isHeld) await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
    const to = invoice('hold');
    const { id } = await at.request(to.request, AMOUNT);
    const sent: string[] = [];
    let putBack: () => Promise<void> = async () => undefined;
    const restored = await bothPutBack(
      async () => {
        await clearBreakers(at.ctx.db, 'a test', clock.nowMs);
        await createHeldPayouts(at.ctx, () => undefined).run();
        await at.look();
        expect(outgoing().payment(to.hash)?.status).toBe('IN_FLIGHT');
        putBack = engine.backup();
      },
      {
        putBack: () => putBack(),
        meanwhile() {
          outgoing().resolve(to.hash, false);
          failed();
        },
        over: {
          authorized: async () => ({ payments: [], more: false }),
          send(asked) {
            sent.push(asked.payoutId);
            return at.paying.send(asked);
          },
        },
      },
    );
    end = restored.end;
    const cancelled = () => code(cancelPayout(restored.ctx, { merchantId: at.merchantId, payoutId: id }));
    return { id, sent, restored, cancelled };
  }

  test.each([false, true])(
    'one that the node calls failed is neither asked for again nor cancelled (held: %s)',
    async (isHeld) => {
      const { id, sent, restored, cancelled } = await allPutBack({ isHeld, failed: () => forced(true) });
      await restored.looks(1);
      expect(await cancelled()).toBe('payout_not_cancellable');
      await restored.looks(4, 2 * MINUTE);
      expect(sent).toEqual([]);
      expect(await restored.seen(id)).toMatchObject(UNKNOWN);
    },
  );

  test('where no channel speaks against that it can be cancelled', async () => {
    const { restored, cancelled } = await allPutBack({ isHeld: true, failed: () => undefined });
    await restored.looks(1);
    expect(await cancelled()).toBe('accepted');
  });
});

test('that an earlier payout to the same invoice has failed at the node holds no later one back after a start of the database', async () => {
  const to = invoice('fail');
  const first = await at.request(to.request, AMOUNT);
  await looks(2);
  expect(await status(first.id)).toBe('failed');
  await tripBreaker(at.ctx.db, { name: 'payouts', by: ['X-1'], findings: ['for this test'], atMs: clock.nowMs });
  const { id } = await at.request(to.request, AMOUNT);
  forced(true);
  await at.admin.query(`update comparisons set timeline = 'another'`);
  await at.look();
  expect(await code(cancelPayout(at.ctx, { merchantId: at.merchantId, payoutId: id }))).toBe('accepted');
});
