// Invoices that our node has forgotten it had cancelled (it was put back to an older state), and that are paid then: the money is the customer's, and
// the merchant's word, or his policy, decides.
import { beforeEach, expect, test } from 'vitest';
import { cancelTransaction, resolveTransaction } from '../../src/flow/transactions/create-cancel-resolve.ts';
import { eachWithSimulatedNode, engine, MINUTE, pass, pay, service } from './simulated-service.ts';

eachWithSimulatedNode();
beforeEach(() => service.work());

const suspenseOf = (transactionId: string) => service.balance(`suspense:${transactionId}:BTC`);
const resolve = (transactionId: string, action: 'accept' | 'decline') =>
  resolveTransaction(service.ctx, { merchantId: service.merchantId, transactionId, action, part: null });

/** The node is as it was before it cancelled the invoice of a transaction. */
async function revive(transactionId: string): Promise<void> {
  const invoice = engine.node().find(await service.hashOf(transactionId))!;
  expect(invoice.status).toBe('CANCELED');
  invoice.status = 'OPEN';
}
async function cancelledAndPaid(more = 0n): Promise<string> {
  const { transactionId } = await service.create();
  await cancelTransaction(service.ctx, { merchantId: service.merchantId, transactionId });
  await revive(transactionId);
  expect(await pay(transactionId, more)).toEqual({ paid: true });
  await service.work();
  return transactionId;
}

test('a cancelled one that is paid is in review, and in suspense until the merchant accepts it', async () => {
  const id = await cancelledAndPaid();
  expect(await service.path(id)).toEqual(['started', 'cancelled', 'review']);
  expect([await suspenseOf(id), await service.available()]).toEqual([50_000n, 0n]);
  await pass(MINUTE);
  await service.work();
  expect(await service.path(id)).toEqual(['started', 'cancelled', 'review']);
  await resolve(id, 'accept');
  expect(await service.path(id)).toEqual(['started', 'cancelled', 'review', 'confirmed', 'succeeded']);
  expect([await suspenseOf(id), await service.available()]).toEqual([0n, 50_000n]);
  await service.compare();
  expect(await service.findings()).toEqual([]);
});

test('what the merchant declines stays in suspense, all of it, and is credited when he changes his mind', async () => {
  const id = await cancelledAndPaid(50_000_000n);
  await resolve(id, 'decline');
  expect(await service.path(id)).toEqual(['started', 'cancelled', 'review', 'declined']);
  expect([await suspenseOf(id), await service.available()]).toEqual([100_000n, 0n]);
  await service.restartWorker();
  await service.work();
  expect([await suspenseOf(id), await service.available()]).toEqual([100_000n, 0n]);
  await resolve(id, 'accept');
  expect((await service.path(id)).slice(-2)).toEqual(['confirmed', 'succeeded']);
  expect([await suspenseOf(id), await service.available()]).toEqual([0n, 100_000n]);
  expect(await service.findings()).toEqual([]);
});

test('one that timed out and is paid late is credited by the policy while its price holds, once', async () => {
  const { transactionId: id } = await service.create();
  await pass(15 * MINUTE);
  await service.work();
  await pass(2 * MINUTE);
  const invoice = engine.node().find(await service.hashOf(id))!;
  invoice.status = 'OPEN';
  Object.assign(invoice, { expirySeconds: 3_600 });
  expect(await pay(id)).toEqual({ paid: true });
  await service.work();
  await service.restartWorker();
  await service.work();
  expect(await service.path(id)).toEqual(['started', 'timedout', 'review', 'confirmed', 'succeeded']);
  expect([await suspenseOf(id), await service.available()]).toEqual([0n, 50_000n]);
  expect(await service.findings()).toEqual([]);
});
