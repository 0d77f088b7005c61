// What our node has in its channels and its wallet is what the books have there: what happens to it besides payments and payouts is booked as its operator's,
// and what is missing is told. On the simulated node, which begins with 50 BTC of its own.
import { expect, test } from 'vitest';
import type { LightningPort, NodeHoldings } from '../../src/core/lightning/port.ts';
import { runAudit } from '../../src/flow/audit.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { clock, eachWithSimulatedNode, engine, pass, pay, port, service } from './simulated-service.ts';

eachWithSimulatedNode();
const OWN = 50n * 100_000_000n;
const own = () => engine.node().own;
const operators = () => service.balance('asset:ln:operator:BTC');
const costs = () => service.balance('expense:ln:channels:BTC');
const equity = () => service.balance('equity:operator:ln:BTC');
const routed = () => service.balance('income:routing:BTC');

/** A minute later everything is compared; what is told then. @param over what the node says otherwise */
async function compared(over: Partial<LightningPort> = {}): Promise<readonly string[]> {
  await pass(60_000);
  const compare = createInvoiceComparison(service.ctx, { port: { ...port, ...over }, watcher: null as never }, (_job, error) =>
    service.alarms.push(String(error)),
  );
  while (await compare());
  const report = await runAudit(service.ctx);
  expect(report.answers.flatMap(({ findings }) => findings)).toEqual([]);
  return report.pages.filter(({ id }) => id === 'LN-7' || id === 'LN-8').flatMap(({ findings }) => findings);
}
/** Without so much of what it has in its channels. */
const without = (taken: bigint): Partial<LightningPort> => ({
  async holdings(): Promise<NodeHoldings> {
    const held = await port.holdings();
    return { ...held, inChannels: held.inChannels - taken };
  },
});
/** What the node has is in the books, but for a satoshi of each channel, which is shown rounded up, and for parts of a satoshi. */
async function areEqual(more = 1): Promise<void> {
  expect(await compared()).toEqual([]);
  const { rows } = await service.admin.query('select (at_node - booked_there)::int as more from lightning_nodes');
  expect(rows).toEqual([{ more }]);
}

test("what the node has when it is first looked at is its operator's, and what is missing later is told and stops nothing", async () => {
  await service.work();
  const made = await service.create();
  await pay(made.transactionId);
  await service.work();
  await areEqual();
  expect(await operators()).toBe(OWN - 1n);
  expect(await equity()).toBe(OWN - 1n);
  expect(await compared(without(1n))).toEqual([]);
  expect(await compared(without(2n))).toEqual([
    expect.stringContaining(
      `had ${OWN + 49_998n} satoshis in its channels and its wallet, and the books have ${OWN + 49_999n} there: 1 are not in them`,
    ),
  ]);
  await areEqual();
  expect(await operators()).toBe(OWN - 1n);
});

test('what it earns by forwarding is booked once, in whole satoshis', async () => {
  await service.work();
  own().forward(5_000n);
  await areEqual();
  for (const feeMsat of [1_500n, 1_700n]) own().forward(feeMsat);
  await areEqual(2);
  expect([await routed(), await operators()]).toEqual([3n, OWN + 4n + 3n]);
  own().forward(700n);
  await areEqual(2);
  expect(await routed()).toBe(3n);
  own().forward(100n);
  await areEqual();
  await areEqual();
  expect([await routed(), await operators()]).toEqual([4n, OWN + 4n + 4n]);
});

test('an entry of earnings that the node does not list is told', async () => {
  await service.work();
  await areEqual();
  const postings = [
    { account: 'asset:ln:operator:BTC', amount: 7n },
    { account: 'income:routing:BTC', amount: -7n },
  ];
  const entry = { key: 'ln:routed:nobody:7', kind: 'lightning_routing', postings, parts: [] };
  await postEntries(service.ctx.db, [{ entry, transactionId: null, atMs: clock.now() }]);
  expect(await compared()).toContainEqual('ledger 7, nodes 0');
});

test('a wallet that is filled and emptied, and channels that open and close, are booked as what they are', async () => {
  await service.work();
  await areEqual();
  own().move(100_000);
  await areEqual();
  expect(await equity()).toBe(OWN - 1n + 100_000n);
  const channel = own().open(60_000, { pushed: 5_000, fee: 300 });
  expect(await compared()).toEqual([]);
  expect([await costs(), await equity()]).toEqual([300n, OWN - 1n + 95_000n]);
  own().move(-30_150, 150);
  expect(await compared()).toEqual([]);
  expect([await costs(), await equity()]).toEqual([300n, OWN - 1n + 64_850n]);
  own().close(channel, 200);
  await areEqual();
  expect([await costs(), await equity()]).toEqual([500n, OWN - 1n + 64_850n]);
  await areEqual();
  expect(await operators()).toBe(OWN - 1n + 100_000n - 300n - 5_000n - 30_150n - 200n);
  // the output that the close has paid is spent like the others
  own().move(-20_100, 100);
  await areEqual();
  expect(await equity()).toBe(OWN - 1n + 44_750n);
});

test('a channel that costs more to close than it can is told, and not booked', async () => {
  await service.work();
  own().move(1_000_000);
  const channel = own().open(900_000);
  await areEqual(2);
  own().close(channel, 200_003);
  expect(await compared()).toEqual([expect.stringContaining('200001 are not in them')]);
  expect(await costs()).toBe(0n);
  // nor is it a cost of the next one that closes, and what was read of the blocks before is not booked again
  const next = own().open(300_000, { pushed: 5_000, fee: 200 });
  expect(await compared()).toEqual([expect.stringContaining('200001 are not in them')]);
  own().close(next, 150);
  // the satoshi by which its channel was shown too high is a cost too
  expect(await compared()).toEqual([expect.stringContaining('200000 are not in them')]);
  expect(await costs()).toBe(351n);
  expect(service.alarms).toEqual([]);
});

test('while a channel opens or closes nothing is compared, and what it has cost is booked afterwards', async () => {
  await service.work();
  own().move(100_000);
  await areEqual();
  own().setBetween(true);
  const channel = own().open(60_000, { fee: 300 });
  expect(await compared(without(1_000n))).toEqual([]);
  own().setBetween(false);
  expect(await compared()).toEqual([]);
  expect([await costs(), await equity()]).toEqual([300n, OWN - 1n + 100_000n]);
  own().setBetween(true);
  own().close(channel, 250);
  expect(await compared()).toEqual([]);
  expect(await costs()).toBe(300n);
  own().setBetween(false);
  await areEqual();
  expect(await costs()).toBe(550n);
});

test('what was forwarded while nobody looked for more than a day is booked, also where nothing was forwarded before', async () => {
  await service.work();
  await areEqual();
  own().forward(7_000n);
  await pass(30 * 3_600_000);
  await areEqual();
  expect(await routed()).toBe(7n);
});

test('a clock of ours that was days fast at the first look hides nothing that is forwarded once it is set right', async () => {
  await service.work();
  own().forward(1_000n);
  clock.nowMs += 3 * 86_400_000;
  await areEqual();
  clock.nowMs -= 3 * 86_400_000;
  own().forward(7_000n);
  await areEqual();
  await areEqual();
  expect([await routed(), await operators()]).toEqual([7n, OWN - 1n + 1n + 7n]);
});

test('a block that takes something out of the wallet while the node is looked at is not told as missing', async () => {
  await service.work();
  own().move(100_000);
  await areEqual();
  let left = 2;
  const late: Partial<LightningPort> = {
    async holdings() {
      left -= 1;
      if (left === 0) own().move(-60_000, 100);
      return port.holdings();
    },
  };
  own().move(10);
  // the first of the two is asked before the wallet's transactions are
  expect(await compared(late)).toEqual([]);
  expect(left).toBe(0);
  await areEqual();
  expect(await equity()).toBe(OWN - 1n + 100_000n - 60_000n + 10n);
});

test('a transaction that makes another go faster is a cost, whatever the node calls it', async () => {
  await service.work();
  own().move(100_000);
  await areEqual();
  own().bump(700);
  await areEqual();
  expect([await costs(), await equity()]).toEqual([700n, OWN - 1n + 100_000n]);
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
  const compare = createInvoiceComparison(service.ctx, { port, watcher: null as never }, () => undefined);
  while (await compare());
  const { rows } = await service.admin.query('select held_at, part_since from lightning_nodes');
  expect(rows).toEqual([{ held_at: null, part_since: null }]);
});

test("what was just paid, and is not in the books yet, is not taken for its operator's", async () => {
  await service.work();
  const made = await service.create();
  let isPaid = false;
  const paysFirst: Partial<LightningPort> = {
    async holdings() {
      if (!isPaid) await pay(made.transactionId);
      isPaid = true;
      return port.holdings();
    },
  };
  expect(await compared(paysFirst)).toEqual([]);
  expect(await operators()).toBe(0n);
  await service.work();
  await areEqual();
  expect(await operators()).toBe(OWN - 1n);
});

test('what is forwarded, or mined, while a closed channel is counted puts that off', async () => {
  await service.work();
  own().move(100_000);
  const channel = own().open(60_000);
  await areEqual(2);
  own().close(channel, 250);
  let left = 2;
  const disturbed: Partial<LightningPort> = {
    async holdings() {
      const held = await port.holdings();
      left -= 1;
      if (left === 1) own().forward(1_000n);
      else own().move(10);
      return held;
    },
  };
  await compared(disturbed);
  expect(await costs()).toBe(0n);
  await compared(disturbed);
  expect(await costs()).toBe(0n);
  await areEqual();
  // a satoshi less, as the second channel was in the books rounded down
  expect(await costs()).toBe(249n);
});

test('a macaroon that does not permit to read it is told, and invoices are compared as before', async () => {
  await service.work();
  const made = await service.create();
  await pay(made.transactionId);
  const forwarded = () => Promise.reject(new NodeTrouble('unauthorized', 'permission denied (/v1/switch)'));
  expect(await compared({ forwarded })).toEqual([]);
  expect(service.alarms).toEqual([expect.stringContaining('what the node has is not compared: permission denied')]);
  const { rows } = await service.admin.query('select count(*)::int as n from chain_receipts');
  expect(rows).toEqual([{ n: 1 }]);
});

test('in the sandbox it waits for the capital that is in its channels', async () => {
  await service.work();
  const sandbox = createInvoiceComparison(
    { ...service.ctx, network: 'sandbox' },
    { port, watcher: null as never },
    () => undefined,
  );
  while (await sandbox());
  expect(await operators()).toBe(0n);
  const postings = [
    { account: 'asset:ln:BTC', amount: OWN },
    { account: 'equity:operator:BTC', amount: -OWN },
  ];
  const entry = { key: 'capital:ln', kind: 'capital', postings, parts: [] };
  await postEntries(service.ctx.db, [{ entry, transactionId: null, atMs: clock.now() }]);
  while (await sandbox());
  const { rows } = await service.admin.query(
    'select part_since is not null as open, at_node - booked_there as more from lightning_nodes',
  );
  expect(rows).toEqual([{ open: true, more: '0' }]);
  expect(await operators()).toBe(0n);
});
