// A database that was put back from a copy does not know what was asked for since: where such an invoice was paid, or is paid later, that is told. On the
// simulated node, with a clock that the test moves.
import { expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { bookUnknownReceipt } from '../../src/flow/lightning/unasked-payments.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { clock, eachWithSimulatedNode, engine, MINUTE, pass, port, service } from './simulated-service.ts';

eachWithSimulatedNode();

async function told(): Promise<readonly string[]> {
  while (await service.compare());
  const report = await runAudit(service.ctx);
  expect(report.answers.flatMap(({ findings }) => findings)).toEqual([]);
  return report.pages.filter(({ id }) => id === 'LN-9').flatMap(({ findings }) => findings);
}
/** An invoice that the node was asked for, and that this database does not know. */
async function forgotten(byte: number): Promise<string> {
  const asked = { amountMsat: 5_000_000n, expirySeconds: 900, description: 'order 7' };
  await port.addInvoice({ ...asked, preimage: Buffer.alloc(32, byte) });
  return engine.node().all().at(-1)?.hash as string;
}

test('what was asked for after the copy, and paid, is told until an operator has it booked', async () => {
  await service.work();
  expect(await told()).toEqual([]);
  await pass(MINUTE);
  const [paid, late, never] = [await forgotten(1), await forgotten(2), await forgotten(3)];
  engine.node().pay(paid, 5_000_000n, 1);
  // the copy is put back
  await pass(5 * MINUTE);
  expect(await told()).toEqual([expect.stringContaining(`was paid 5000000 msat for ${paid}`)]);
  engine.node().pay(late, 5_000_000n, 1);
  await pass(MINUTE);
  expect(await told()).toHaveLength(2);
  await pass(20 * MINUTE);
  expect(await told()).toHaveLength(2);
  const { rows } = await service.admin.query('select payment_hash from lightning_unknown_invoices where payment_hash = $1', [
    never,
  ]);
  expect(rows).toEqual([]);
  expect(await bookUnknownReceipt(service.ctx, paid)).toBe(5_000n);
  expect(await bookUnknownReceipt(service.ctx, paid)).toBeNull();
  expect(await bookUnknownReceipt(service.ctx, never)).toBeNull();
  expect(await told()).toEqual([expect.stringContaining(late)]);
  expect(await service.balance('equity:operator:ln:BTC')).toBeGreaterThan(5_000n);
});

test("what others ask the node for while it is compared each minute is nobody's business here", async () => {
  await service.work();
  for (let n = 1; n < 5; n++) {
    // made after the last comparison and before the next: what was made in a gap as long would be told
    expect(await told()).toEqual([]);
    await pass(MINUTE - 1_000);
    const hash = await forgotten(n);
    engine.node().pay(hash, 5_000_000n, 1);
    await pass(1_000);
  }
  expect(await told()).toEqual([]);
  const { rows } = await service.admin.query('select payment_hash from lightning_unknown_invoices');
  expect(rows).toEqual([]);
  // and it is told after a gap of three minutes and not before
  await pass(3 * MINUTE - 1);
  engine.node().pay(await forgotten(5), 5_000_000n, 1);
  expect(await told()).toEqual([]);
  await pass(3 * MINUTE);
  engine.node().pay(await forgotten(6), 5_000_000n, 1);
  expect(await told()).toHaveLength(1);
});

test('what a standby that takes over has not got is told, however soon it was', async () => {
  await service.work();
  expect(await told()).toEqual([]);
  await pass(10_000);
  const paid = await forgotten(1);
  engine.node().pay(paid, 5_000_000n, 1);
  // what a failover changes: the timeline
  await service.admin.query(`update lightning_nodes set compared_in = 'another' || compared_in`);
  expect(await told()).toEqual([expect.stringContaining(`was paid 5000000 msat for ${paid}`)]);
  // from then on it is the same database
  engine.node().pay(await forgotten(2), 5_000_000n, 1);
  await pass(MINUTE);
  expect(await told()).toHaveLength(1);
});

test('a database that is replaced while the list is read is compared once more', async () => {
  await service.work();
  expect(await told()).toEqual([]);
  await pass(10_000);
  const paid = await forgotten(1);
  engine.node().pay(paid, 5_000_000n, 1);
  let isFirst = true;
  const replacing = {
    ...port,
    async invoices(...asked: Parameters<typeof port.invoices>) {
      const page = await port.invoices(...asked);
      if (isFirst && page.length > 0) {
        isFirst = false;
        await service.admin.query(`update lightning_nodes set compared_in = 'another' || compared_in`);
        service.ctx.db.identity.sessionLost();
      }
      return page;
    },
  };
  const compare = createInvoiceComparison(service.ctx, { port: replacing, watcher: null as never }, () => undefined);
  while (await compare());
  expect(await told()).toEqual([expect.stringContaining(paid)]);
});

test('of very many that wait each is told once it is paid', async () => {
  await service.work();
  expect(await told()).toEqual([]);
  await pass(10 * MINUTE);
  const hashes: string[] = [];
  for (let n = 0; n < 230; n++) {
    const asked = { amountMsat: 5_000_000n, expirySeconds: 86_400, description: 'order 7' };
    await port.addInvoice({ ...asked, preimage: Buffer.alloc(32, `unknown ${n}`) });
    hashes.push(engine.node().all().at(-1)?.hash as string);
  }
  expect(await told()).toEqual([]);
  await pass(MINUTE);
  const last = hashes.sort().at(-1) as string;
  engine.node().pay(last, 5_000_000n, 1);
  expect(await told()).toEqual([expect.stringContaining(last)]);
});

test('what was paid before the node was in the books is booked once: the opening waits for it', async () => {
  await service.work();
  // a channel opens, so nothing is in the books yet
  engine.node().own.setBetween(true);
  expect(await told()).toEqual([]);
  await pass(5 * MINUTE);
  const paid = await forgotten(1);
  engine.node().pay(paid, 5_000_000n, 1);
  engine.node().own.setBetween(false);
  expect(await told()).toEqual([expect.stringContaining(paid)]);
  expect(await service.balance('asset:ln:operator:BTC')).toBe(0n);
  expect(await bookUnknownReceipt(service.ctx, paid)).toBe(5_000n);
  await pass(MINUTE);
  expect(await told()).toEqual([]);
  const { rows } = await service.admin.query('select at_node - booked_there as more from lightning_nodes');
  expect(rows).toEqual([{ more: '1' }]);
});

test('a transaction that is known is never told, however long nothing was compared', async () => {
  await service.work();
  expect(await told()).toEqual([]);
  const made = await service.create();
  engine.node().pay(await service.hashOf(made.transactionId), 50_000_000n, 1);
  await pass(14 * MINUTE);
  expect(await told()).toEqual([]);
  expect(clock.nowMs).toBeGreaterThan(0);
});
