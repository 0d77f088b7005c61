// An invoice is reserved before our node is asked for it: what happens to one whose call was cut off there, or comes again meanwhile.
import { randomBytes } from 'node:crypto';
import { beforeEach, expect, test } from 'vitest';
import { Refusal } from '../../src/core/refusal.ts';
import { answerOnce } from '../../src/flow/idempotency.ts';
import { prepareInvoice } from '../../src/flow/lightning/invoices.ts';
import { createTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { PREPARATIONS } from '../../src/http/handlers/lightning-preparations.ts';
import { createLightningWatcher } from '../../src/worker/lightning/watcher.ts';
import { eachWithSimulatedNode, engine, MINUTE, pass, port, service } from './simulated-service.ts';

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

const call = { key: 'order-1042', bodyHash: Buffer.from('a body') };
const prepare = (body = call) =>
  prepareInvoice(service.ctx, { merchantId: service.merchantId, usdMinor: 50_00n, label: null, call: body });
type Made = Awaited<ReturnType<typeof prepare>>;
const writeTransaction = (invoice: Made) => {
  const asked = { merchantId: service.merchantId, usdMinor: 50_00n, method: 'BTC-LN', label: null, email: null } as const;
  return createTransaction(service.ctx, asked, invoice);
};

test('is the same one for the same call again, also when the answer of the node was lost', async () => {
  engine.node().setTrouble({ down: false, fault: 'lose_answers', left: 1 });
  expect((await refusal(prepare())).code).toBe('lightning_unavailable');
  await service.rate('90000.00');
  const again = await prepare();
  expect(await prepare()).toEqual(again);
  expect(again.reservation.amountDue).toBe(50_000n);
  expect(engine.node().all()).toHaveLength(1);
  const made = await writeTransaction(again);
  expect(made).toMatchObject({ transactionId: again.reservation.transactionId, address: again.paymentRequest });
  await expect(writeTransaction(again)).rejects.toThrow('took too long');
});

test('is not taken away by another body while another API may still make it, and is another one after that', async () => {
  const first = await prepare();
  const other = { ...call, bodyHash: randomBytes(32) };
  expect((await refusal(prepare(other))).code).toBe('request_in_progress');
  await pass(MINUTE / 2);
  expect((await refusal(prepare(other))).code).toBe('request_in_progress');
  // the clock of the other one is not ours, and may have been set
  await pass(-MINUTE);
  expect((await refusal(prepare(other))).code).toBe('request_in_progress');
  await pass(MINUTE / 2 + 1);
  await writeTransaction(first);
  const made = await prepare(other);
  await pass(MINUTE / 2 + 1);
  const second = await prepare({ ...call, bodyHash: randomBytes(32) });
  expect(second.reservation.paymentHash).not.toBe(made.reservation.paymentHash);
  expect((await port.invoice(made.reservation.paymentHash))?.state).toBe('cancelled');
  await pass(-60 * MINUTE);
  const third = await prepare(other);
  expect((await port.invoice(second.reservation.paymentHash))?.state).toBe('cancelled');
  expect(third.reservation.paymentHash).not.toBe(second.reservation.paymentHash);
});

test('is cancelled when nobody comes back for it, and is in no list', async () => {
  const { reservation, paymentRequest } = await prepare();
  await pass(3 * MINUTE);
  await service.work();
  expect((await port.invoice(reservation.paymentHash))?.state).toBe('cancelled');
  const late = writeTransaction({ reservation, paymentRequest });
  expect((await refusal(late)).code).toBe('lightning_unavailable');
  expect((await service.admin.query('select 1 from transactions')).rowCount).toBe(0);
  expect(await service.findings()).toEqual([]);
});

test('is not shown when somebody comes back for it while it is cancelled: he gets another one, which can be paid', async () => {
  const given = await prepare();
  await pass(3 * MINUTE);
  await service.stopWorker();
  let made: Awaited<ReturnType<typeof writeTransaction>> | null = null;
  const cancelling = createLightningWatcher(service.ctx, {
    ...port,
    async cancelInvoice(hash) {
      made = await writeTransaction(await prepare());
      return port.cancelInvoice(hash);
    },
    close: () => undefined,
  });
  await cancelling.pass();
  await cancelling.close();
  expect((await port.invoice(given.reservation.paymentHash))?.state).toBe('cancelled');
  const shown = await service.hashOf(made!.transactionId);
  expect((await port.invoice(shown))?.state).toBe('open');
});

test('is cancelled at the node for no call whose key another process has for another body', async () => {
  const [first, second] = [await service.create(), await service.create()];
  const state = async ({ transactionId }: typeof first) => (await port.invoice(await service.hashOf(transactionId)))?.state;
  const keyed = ({ transactionId }: typeof first) => {
    const { merchantId } = service;
    return { merchantId, operation: '/cancel_transaction', key: 'order-1042', bodyHash: Buffer.from(transactionId) };
  };
  /** As each of several API processes does before its database transaction. */
  const cancel = (it: typeof first) =>
    PREPARATIONS.cancelTransaction!(service.ctx, keyed(it), { transaction_id: it.transactionId });
  const answer = (it: typeof first) =>
    answerOnce(service.ctx, { ...keyed(it), kept: 'a day' }, async () => it.transactionId, String);
  await cancel(first);
  expect(await state(first)).toBe('cancelled');
  expect((await refusal(cancel(second))).code).toBe('request_in_progress');
  await pass(-MINUTE / 4);
  expect((await refusal(cancel(second))).code).toBe('request_in_progress');
  expect(await state(second)).toBe('open');
  // nor is one that asks nothing of the node, such as that of a Bitcoin transaction, answered in its place
  expect((await refusal(answer(second))).code).toBe('request_in_progress');
  // the same body again, and its answer
  await cancel(first);
  expect(await answer(first)).toMatchObject({ text: first.transactionId, replayed: false });
  expect((await refusal(cancel(second))).code).toBe('request_in_progress');
  expect((await refusal(answer(second))).code).toBe('idempotency_conflict');
  expect(await state(second)).toBe('open');
});

test('is cancelled for another body with a key once a call that was cut off cannot be answered any more', async () => {
  const [first, second] = [await service.create(), await service.create()];
  const state = async ({ transactionId }: typeof first) => (await port.invoice(await service.hashOf(transactionId)))?.state;
  const cancel = ({ transactionId }: typeof first) => {
    const of = { merchantId: service.merchantId, operation: '/cancel_transaction', key: 'order-1042' };
    return PREPARATIONS.cancelTransaction!(
      service.ctx,
      { ...of, bodyHash: Buffer.from(transactionId) },
      { transaction_id: transactionId },
    );
  };
  engine.node().setTrouble({ down: false, fault: 'lose_answers', left: 1 });
  expect((await refusal(cancel(first))).code).toBe('lightning_unavailable');
  await pass(MINUTE / 2);
  await cancel(second);
  expect(await state(second)).toBe('cancelled');
  // what was claimed by a clock that has been set back since
  await pass(-60 * MINUTE);
  const third = await service.create();
  await cancel(third);
  expect(await state(third)).toBe('cancelled');
});
