// Payments over Lightning from the invoice to the balance, with every way in which the node, our processes and the payer can be late.
import { beforeEach, describe, expect, test } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { cancelTransaction, resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { checkTransaction } from '../../src/flow/transactions/reads.ts';
import { beginCursor } from '../../src/store/chain/blocks.ts';
import { eventually } from '../support/service.ts';
import { clock, eachWithSimulatedNode, engine, MINUTE, pass, pay, port, service } from './simulated-service.ts';

const DAY = 24 * 60 * MINUTE;
eachWithSimulatedNode();
beforeEach(() => service.work());

const refusal = async (work: Promise<unknown>): Promise<Refusal> => {
  const error = await work.then(
    () => null,
    (caught) => caught,
  );
  expect(error).toBeInstanceOf(Refusal);
  return error;
};
const PAID = ['started', 'pending', 'confirmed', 'succeeded'];

describe('a payment', () => {
  test('is credited once, as soon as the node announces it, and everything agrees', async () => {
    const made = await service.create();
    expect(made).toMatchObject({ amountDue: 50_000n, status: 'started' });
    expect(made.uri).toBe(`LIGHTNING:${made.address.toUpperCase()}`);
    await pay(made.transactionId);
    await eventually('the announcement', async () => (await service.admin.query('select 1 from payments')).rowCount === 1);
    await service.judge();
    expect(await service.path(made.transactionId)).toEqual(PAID);
    const shown = await checkTransaction(service.ctx, { merchantId: service.merchantId, transactionId: made.transactionId });
    expect(shown).toMatchObject({ receivedMinor: 50_000n, confirmations: 1, amountDue: 50_000n });
    expect(await service.available()).toBe(50_000n);
    expect(await service.balance('asset:ln:BTC')).toBe(50_000n);
    await service.compare();
    await pass(30 * MINUTE);
    await service.work();
    await service.compare();
    expect(await service.findings()).toEqual([]);
    expect(await service.available()).toBe(50_000n);
  });

  test('is owed to the merchant and covered by the Lightning node: outputs on the chain need not cover it', async () => {
    const block = { height: 100, hash: 'b'.repeat(64), previousHash: 'a'.repeat(64), timeMs: clock.nowMs };
    await beginCursor(service.ctx.db, 'BTC', block, clock.nowMs);
    const made = await service.create();
    await pay(made.transactionId);
    await service.work();
    expect(await service.available()).toBe(50_000n);
    expect(await service.findings()).toEqual([]);
  });

  test('is found after a restart of the worker, however it was missed', async () => {
    const [first, second] = [await service.create(), await service.create()];
    await pay(first.transactionId);
    await service.work();
    await service.stopWorker();
    await pay(second.transactionId);
    await service.restartWorker();
    await service.work();
    expect(await service.path(second.transactionId)).toEqual(PAID);
  });

  test('that the node never announced is found when its window ends, and is on time', async () => {
    await service.stopWorker();
    const made = await service.create();
    await pay(made.transactionId);
    await pass(40 * MINUTE);
    await service.restartWorker();
    await service.work();
    expect(await service.path(made.transactionId)).toEqual(PAID);
  });

  test('above what was asked for: the price is credited, the rest can be refunded or accepted', async () => {
    const made = await service.create();
    await pay(made.transactionId, 60_000_000n);
    await service.work();
    expect(await service.available()).toBe(50_000n);
    expect(await service.balance(`suspense:${made.transactionId}:BTC`)).toBe(60_000n);
    const decision = {
      merchantId: service.merchantId,
      transactionId: made.transactionId,
      action: 'accept',
      part: 'excess',
    } as const;
    await resolveTransaction(service.ctx, decision);
    expect(await service.available()).toBe(110_000n);
    expect(await service.findings()).toEqual([]);
  });

  test('fractions of a satoshi are ours, and booked once they are whole', async () => {
    for (let n = 0; n < 3; n++) await pay((await service.create()).transactionId, 700n);
    await service.work();
    await service.compare();
    await service.compare();
    expect(await service.balance('income:rounding:BTC')).toBe(2n);
    expect(await service.available()).toBe(150_000n);
    expect(await service.findings()).toEqual([]);
  });

  test('in very many parts is announced, listed and compared as any other', async () => {
    const made = await Promise.all([service.create(), service.create()]);
    const parts = 450_000;
    for (const { transactionId } of made) {
      const hash = await service.hashOf(transactionId);
      engine.node().pay(hash, engine.node().find(hash)!.valueMsat, parts);
    }
    // nothing is looked up: only the announcement tells
    await eventually('all are credited', async () => {
      await service.judge();
      const paths = await Promise.all(made.map(({ transactionId }) => service.path(transactionId)));
      return paths.every((path) => path.join() === PAID.join());
    });
    while (await service.compare());
    const { rows } = await service.admin.query('select count(*)::int as receipts from chain_receipts');
    expect(rows).toEqual([{ receipts: 2 }]);
  });

  test('100 at the same time are credited once each', async () => {
    const made: { readonly transactionId: string }[] = [];
    while (made.length < 100) made.push(...(await Promise.all(Array.from({ length: 20 }, () => service.create(1_00n)))));
    await Promise.all(made.map(({ transactionId }) => pay(transactionId)));
    await service.work();
    await eventually('the last announcement', async () => {
      await service.work();
      return (await service.available()) === 100_000n;
    });
    expect(await service.findings()).toEqual([]);
  });
});

describe('the end of the window', () => {
  test('cancels the invoice at the node first; then nobody can pay it, and the transaction times out', async () => {
    const made = await service.create();
    await pass(15 * MINUTE);
    await service.work();
    expect(await service.path(made.transactionId)).toEqual(['started', 'timedout']);
    expect((await port.invoice(await service.hashOf(made.transactionId)))?.state).toBe('cancelled');
    expect(await pay(made.transactionId)).toMatchObject({ paid: false });
    await pass(DAY);
    await service.work();
    expect(await service.path(made.transactionId)).toEqual(['started', 'timedout', 'timedout_checked']);
    expect(await service.findings()).toEqual([]);
  });

  test('paid in its last moment: the word of the node decides', async () => {
    const made = await service.create();
    await pass(15 * MINUTE - 1);
    engine.node().setTrouble({ down: true, fault: null, left: null });
    await pay(made.transactionId);
    await pass(MINUTE);
    await service.work();
    expect(await service.path(made.transactionId)).toEqual(['started']);
    engine.node().setTrouble({ down: false, fault: null, left: null });
    await service.work();
    expect(await service.path(made.transactionId)).toEqual(PAID);
  });

  test('nothing times out while the node cannot be asked', async () => {
    const made = await service.create();
    engine.node().setTrouble({ down: true, fault: null, left: null });
    await pass(60 * MINUTE);
    expect(await service.work()).toMatchObject({ state: 'down' });
    expect(await service.path(made.transactionId)).toEqual(['started']);
    expect((await refusal(service.create())).code).toBe('lightning_unavailable');
    engine.node().setTrouble({ down: false, fault: null, left: null });
    await service.work();
    expect(await service.path(made.transactionId)).toEqual(['started', 'timedout']);
  });
});

describe('a cancel', () => {
  const cancel = (transactionId: string) => cancelTransaction(service.ctx, { merchantId: service.merchantId, transactionId });

  test('cancels the invoice at the node', async () => {
    const made = await service.create();
    await cancel(made.transactionId);
    expect(await pay(made.transactionId)).toMatchObject({ paid: false });
    expect(await cancel(made.transactionId)).toMatchObject({ status: 'cancelled' });
    expect(await service.path(made.transactionId)).toEqual(['started', 'cancelled']);
  });

  test('of an invoice that was just paid is refused, and the payment is credited', async () => {
    const made = await service.create();
    await service.stopWorker();
    await pay(made.transactionId);
    expect((await refusal(cancel(made.transactionId))).code).toBe('transaction_not_cancellable');
    await service.judge();
    expect(await service.path(made.transactionId)).toEqual(PAID);
  });

  test('while the node does not answer changes nothing', async () => {
    const made = await service.create();
    engine.node().setTrouble({ down: false, fault: 'lose_answers', left: 1 });
    expect((await refusal(cancel(made.transactionId))).code).toBe('lightning_unavailable');
    expect(await service.path(made.transactionId)).toEqual(['started']);
    await cancel(made.transactionId);
    expect(await service.path(made.transactionId)).toEqual(['started', 'cancelled']);
  });
});

describe('a request', () => {
  test('above what the channels can receive is refused with the limit', async () => {
    await service.rate('50.00');
    const refused = await refusal(service.create(500_000n));
    expect(refused).toMatchObject({ code: 'amount_above_maximum', param: 'amount' });
    expect(refused.message).toContain('50.00000000 BTC');
  });

  test('above what the channels can receive at a price that has changed since it was read is refused too', async () => {
    await service.create();
    await service.rate('50.00');
    expect((await refusal(service.create(500_000n))).code).toBe('amount_above_maximum');
    expect((await service.admin.query('select 1 from transactions')).rowCount).toBe(1);
  });

  test('of less than a cent or more than 5,000 dollars is refused', async () => {
    expect((await refusal(service.create(0n))).code).toBe('amount_below_minimum');
    expect((await refusal(service.create(500_001n))).code).toBe('amount_above_maximum');
    expect((await service.create(1n)).amountDue).toBe(10n);
  });

  test('finds no node where none was looked at yet', async () => {
    await service.admin.query(`delete from node_conditions`);
    await service.ctx.batches.quoteFacts();
    expect((await refusal(service.create())).code).toBe('lightning_unavailable');
  });
});
