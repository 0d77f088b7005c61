// The Lightning node's own lists: restored from an older state, and longer than a page.
import { beforeEach, expect, test } from 'vitest';
import type { InvoiceFacts, LightningPort } from '../../src/core/lightning/port.ts';
import { acceptForgottenReceipt } from '../../src/flow/lightning/unasked-payments.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { eachWithSimulatedNode, engine, MINUTE, pass, pay, port, service } from './simulated-service.ts';

eachWithSimulatedNode();
beforeEach(() => service.work());

const PAID = ['started', 'pending', 'confirmed', 'succeeded'];

test('a node that was restored from an older state is noticed, and what is paid then is still credited', async () => {
  const first = await service.create();
  await pay(first.transactionId);
  await service.work();
  await service.admin.query('update lightning_nodes set settle_index = 40');
  await service.restartWorker();
  await service.work();
  const second = await service.create();
  await pay(second.transactionId);
  await service.work();
  expect(await service.path(second.transactionId)).toEqual(PAID);
});

test('the list of a node that was restored from an older state is compared with the books from its beginning', async () => {
  for (let n = 0; n < 2; n++) await pay((await service.create()).transactionId);
  await service.work();
  expect(await service.compare()).toBe(false);
  await service.admin.query('update lightning_nodes set settle_index = 40, compared_index = 40');
  await service.restartWorker();
  await service.work();
  const after = await service.create();
  await pay(after.transactionId);
  await service.work();
  expect(await service.path(after.transactionId)).toEqual(PAID);
  await service.compare();
  expect(service.alarms.join()).toContain('restored from an older state');
  await pass(11 * MINUTE);
  await service.compare();
  expect(await service.findings()).toEqual([]);
});

test('the list of a node is read to its end, however many invoices come after an open one', async () => {
  const others = 10_500;
  const open = await service.create();
  const paid = await service.create();
  await pay(paid.transactionId);
  await service.work();
  /** A node that has made so many for others after its first invoice. */
  const busy: LightningPort = {
    ...port,
    async invoices(after, how) {
      if (after === 0n) return (await port.invoices(0n, how)).slice(0, 1);
      if (after > others) {
        const rest = await port.invoices(after - BigInt(others), how);
        return rest.map((one) => ({ ...one, addIndex: one.addIndex + BigInt(others) }));
      }
      const count = Math.min(500, others + 1 - Number(after));
      return Array.from({ length: count }, (_, n): InvoiceFacts => {
        const addIndex = after + BigInt(n) + 1n;
        const paymentHash = addIndex.toString(16).padStart(64, '0');
        return {
          paymentHash,
          addIndex,
          state: 'open',
          paidMsat: 0n,
          addedAtMs: 0,
          settledAtMs: null,
          settleIndex: 0n,
          paymentRequest: '',
        };
      });
    },
  };
  const compare = createInvoiceComparison(service.ctx, { port: busy, watcher: null as never }, () => undefined);
  expect(await compare()).toBe(true);
  expect(await service.findings()).toEqual([]);
  while (await compare());
  await pass(11 * MINUTE);
  while (await compare());
  expect(await service.findings()).toEqual([]);
  expect(await service.path(open.transactionId)).toEqual(['started']);
});

test('what a node had announced and, put back before its list was compared, does not list is let be by an operator', async () => {
  const before = await service.create();
  await pay(before.transactionId);
  await service.work();
  await service.compare();
  const lost = await service.create();
  const hash = await service.hashOf(lost.transactionId);
  const putBack = engine.backup();
  await pay(lost.transactionId);
  await service.work();
  expect(await service.path(lost.transactionId)).toEqual(PAID);
  await putBack();
  await pass(MINUTE);
  await service.work();
  await service.compare();
  // the list is not old enough to say so
  expect(await acceptForgottenReceipt(service.ctx, hash)).toBeNull();
  await pass(11 * MINUTE);
  await service.work();
  await service.compare();
  expect(await service.findings()).toEqual([expect.stringMatching(`^LN-2: ${hash} .*bursar payout recover`)]);
  const available = await service.available();
  expect(await acceptForgottenReceipt(service.ctx, hash)).toBe(lost.transactionId);
  expect(await acceptForgottenReceipt(service.ctx, hash)).toBeNull();
  expect(await acceptForgottenReceipt(service.ctx, await service.hashOf(before.transactionId))).toBeNull();
  expect(await service.findings()).toEqual([]);
  expect(await service.available()).toBe(available);
  // and what comes after it is compared as ever
  const after = await service.create();
  await pay(after.transactionId);
  await service.work();
  expect(await service.path(after.transactionId)).toEqual(PAID);
  await pass(11 * MINUTE);
  await service.compare();
  expect(await service.findings()).toEqual([]);
});
