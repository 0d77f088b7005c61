// A database that was put back from a copy does not know what was asked for since: where such an invoice was paid, or is paid later, that is told. On the
// simulated node, with a clock that the test moves.
import { expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { bookUnknownReceipt } from '../../src/flow/lightning/unasked-payments.ts';
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
    const hash = await forgotten(n);
    engine.node().pay(hash, 5_000_000n, 1);
    expect(await told()).toEqual([]);
    await pass(MINUTE);
  }
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
