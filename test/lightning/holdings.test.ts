// What is in the node's channels against what the books have there. On the simulated node, which begins with 50 BTC of its own.
import { expect, test } from 'vitest';
import { runAudit } from '../../src/flow/audit.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { eachWithSimulatedNode, pass, pay, port, service } from './simulated-service.ts';

eachWithSimulatedNode();
const OWN = 50n * 100_000_000n;

/** Reads everything, of channels that the operator has taken so much out of. */
async function compared(taken: bigint): Promise<readonly string[]> {
  const inChannels = async () => (await port.inChannels()) - taken;
  const compare = createInvoiceComparison(
    service.ctx,
    { port: { ...port, inChannels }, watcher: null as never },
    () => undefined,
  );
  while (await compare());
  const report = await runAudit(service.ctx);
  expect(report.ok).toBe(true);
  return report.pages.filter(({ id }) => id === 'LN-7').flatMap(({ findings }) => findings);
}

test('channels that hold less than payments brought to them are told, and stop nothing', async () => {
  await service.work();
  const made = await service.create();
  await pay(made.transactionId);
  await service.work();
  expect(await compared(0n)).toEqual([]);
  expect(await compared(OWN)).toEqual([]);
  await pass(60_000);
  expect(await compared(OWN + 1n)).toEqual([
    expect.stringContaining('had 49999 satoshis in its channels, and the books have 50000 there: 1 are not in them'),
  ]);
  await pass(60_000);
  expect(await compared(OWN)).toEqual([]);
});

test('while a payout is on its way nothing is compared', async () => {
  await service.work();
  const made = await service.create();
  await pay(made.transactionId);
  await service.work();
  const away = [
    { account: 'asset:ln:BTC:outbound', amount: 10n },
    { account: 'asset:ln:BTC', amount: -10n },
  ];
  const entry = { key: 'po:on_its_way:sign:1', kind: 'payout_signed', postings: away, parts: [] };
  await postEntries(service.ctx.db, [{ entry, transactionId: null, atMs: Date.UTC(2026, 5, 1) }]);
  const compare = createInvoiceComparison(
    service.ctx,
    { port: { ...port, inChannels: async () => 0n }, watcher: null as never },
    () => undefined,
  );
  while (await compare());
  const { rows } = await service.admin.query('select held_at from lightning_nodes');
  expect(rows).toEqual([{ held_at: null }]);
});
