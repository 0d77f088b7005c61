// An operator who pays from the node himself, or takes something out of it that no list shows, says so, and it is booked as his: the audit is green again,
// nothing is booked as lost, and what customers are owed is covered as before. On the simulated node, which begins with 50 BTC of his.
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { clearAfterAudit, runAudit } from '../../src/flow/audit.ts';
import { bookMissing, bookOwnPayment, bookUnasked, bookUnknownReceipt } from '../../src/flow/lightning/unasked-payments.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { askCli, runCli } from '../cli/run.ts';
import {
  AMOUNT,
  at,
  close,
  code,
  engine,
  invoice,
  looks,
  MINUTE,
  open,
  outgoing,
  pass,
  toldAfterAMinute as red,
} from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const own = () => engine.node().own;
const operators = () => at.balance('asset:ln:operator:BTC');
const equity = () => at.balance('equity:operator:ln:BTC');
const costs = () => at.balance('expense:ln:channels:BTC');
const identity = async (): Promise<string> => (await at.admin.query('select identity from lightning_nodes')).rows[0].identity;
/** What of the books is not at the node, or the other way round; a satoshi of each channel is left out. */
async function difference(): Promise<number> {
  const { rows } = await at.admin.query('select (at_node - booked_there)::int as more from lightning_nodes');
  return rows[0].more;
}

test('what the operator has paid himself is booked as his, its fee as a cost, and takes nothing from what customers are owed', async () => {
  expect(await red()).toEqual([]);
  const before = { operators: await operators(), equity: await equity(), more: await difference() };
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  expect(await red()).toEqual([expect.stringMatching(/^LN-5: /), expect.stringMatching(/^LN-7: /)]);
  expect(await code(bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: false }))).toBe('not_resolvable');
  // what is missing is that payment: it is booked once, whatever is booked first
  expect(await code(bookMissing(at.ctx, await identity(), 'own'))).toBe('not_resolvable');
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
  expect(await bookMissing(at.ctx, await identity(), 'own')).toBeNull();
  expect(await bookOwnPayment(at.ctx, hash)).toBeNull();
  expect(await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true })).toBeNull();
  expect(await red()).toEqual([]);
  expect([before.operators - (await operators()), before.equity - (await equity()), await costs()]).toEqual([1_002n, 1_000n, 2n]);
  expect(await at.balance('expense:unknown_outflow:BTC')).toBe(0n);
  expect(await difference()).toBe(before.more);
});

test('what is booked as lost is owed to nobody, and what is his takes nothing from what covers customers', async () => {
  expect(await red()).toEqual([]);
  const covered = async () => (await at.findings()).filter((one) => one.startsWith('INV-6'));
  expect(await covered()).toEqual([]);
  const [mine, stolen] = [invoice(), invoice()];
  for (const { request } of [mine, stolen]) outgoing().send(request, 0n, 10_000n);
  await red();
  await bookOwnPayment(at.ctx, mine.hash);
  expect(await covered()).toEqual([]);
  await bookUnasked(at.ctx, { paymentHash: stolen.hash, acceptsLoss: true });
  expect(await covered()).toEqual([]);
  await at.admin.query('update lightning_sent set is_operators = false');
  expect(await covered()).toEqual([expect.stringContaining('BTC: owed 498998, here 497996')]);
});

/** The operator pays an invoice of the node itself over others. */
async function paidToItself(): Promise<ReturnType<typeof invoice>> {
  const to = invoice();
  const preimage = Buffer.from(outgoing().find(to.hash)?.preimage ?? '', 'hex');
  await at.ctx.ports.lightning?.addInvoice({ preimage, amountMsat: 1_000_000n, expirySeconds: 900, description: '' });
  outgoing().send(to.request, 0n, 10_000n);
  engine.node().pay(to.hash, 1_000_000n, 1);
  return to;
}

test('of what he has paid to the node itself only the fee is gone, and its receipt is not booked a second time', async () => {
  expect(await red()).toEqual([]);
  const before = { operators: await operators(), equity: await equity() };
  const to = await paidToItself();
  // nothing was compared for so long: the receipt is told as well
  pass(4 * MINUTE);
  expect((await red()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7', 'LN-9']);
  expect(await bookOwnPayment(at.ctx, to.hash)).toBe(2n);
  expect(await bookUnknownReceipt(at.ctx, to.hash)).toBeNull();
  expect(await red()).toEqual([]);
  expect([before.operators - (await operators()), before.equity - (await equity()), await costs()]).toEqual([2n, 0n, 2n]);
});

test('what he has paid to the node itself is told as no receipt later, when a look after a long pause finds its invoice', async () => {
  expect(await red()).toEqual([]);
  const before = await operators();
  pass(4 * MINUTE);
  const to = await paidToItself();
  // payments are compared, and invoices are not yet
  await at.comparedPayments();
  expect(await bookOwnPayment(at.ctx, to.hash)).toBe(2n);
  expect(await red()).toEqual([]);
  expect(await bookUnknownReceipt(at.ctx, to.hash)).toBeNull();
  expect(before - (await operators())).toBe(2n);
});

test('a loss that is booked is not booked once more as what is missing at the node', async () => {
  expect(await red()).toEqual([]);
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  await red();
  expect(await bookUnasked(at.ctx, { paymentHash: hash, acceptsLoss: true })).toBe(1_002n);
  expect(await bookMissing(at.ctx, await identity(), 'lost')).toBeNull();
  expect(await red()).toEqual([]);
});

test('a receipt that was booked before is not taken back by the payment that brought it', async () => {
  expect(await red()).toEqual([]);
  const before = await operators();
  const to = await paidToItself();
  pass(4 * MINUTE);
  await red();
  expect(await bookUnknownReceipt(at.ctx, to.hash)).toBe(1_000n);
  expect(await bookOwnPayment(at.ctx, to.hash)).toBe(1_002n);
  expect(await red()).toEqual([]);
  expect(before - (await operators())).toBe(2n);
});

test('what a payout had asked for that has failed, or what hangs, or is more than is his, is not booked as his', async () => {
  expect(await red()).toEqual([]);
  const held = invoice('hold');
  outgoing().send(held.request, 0n, 10_000n);
  await at.compared();
  expect(await code(bookOwnPayment(at.ctx, held.hash))).toBe('not_resolvable');
  outgoing().resolve(held.hash, false);
  expect(await at.compared()).toEqual([]);
  await clearAfterAudit(at.ctx, await runAudit(at.ctx), 'test');
  const of = invoice('fail');
  const { id } = await at.request(of.request, AMOUNT);
  await looks(3);
  expect((await at.payout(id)).status).toBe('failed');
  await at.admin.query(`insert into lightning_sent (node, payment_index, payment_hash, state, amount_msat, fee_msat, seen_at)
                          values ('${await identity()}', 99, '${of.hash}', 'succeeded', 1000000, 2000, now())`);
  expect(await code(bookOwnPayment(at.ctx, of.hash))).toBe('not_resolvable');
  await at.admin.query(`insert into lightning_sent (node, payment_index, payment_hash, state, amount_msat, fee_msat, seen_at)
                          values ('${await identity()}', 100, '${'ab'.repeat(32)}', 'succeeded', ${(await operators()) * 1_000n}, 1, now())`);
  expect(await code(bookOwnPayment(at.ctx, 'ab'.repeat(32)))).toBe('not_resolvable');
  expect(await costs()).toBe(0n);
});

test('while the node cannot say whether it was paid itself, nothing is booked', async () => {
  expect(await red()).toEqual([]);
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  await red();
  engine.node().setTrouble({ down: true, fault: null, left: null });
  await expect(bookOwnPayment(at.ctx, hash)).rejects.toThrow();
  engine.node().setTrouble({ down: false, fault: null, left: null });
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
});

test('what was paid before the node was in the books is booked first: the opening does not hold it too', async () => {
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  // the payments are read first, and the node is looked at then
  expect((await red()).map((one) => one.slice(0, 4))).toEqual(['LN-5']);
  expect(await operators()).toBe(0n);
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
  expect(await red()).toEqual([]);
  expect(await difference()).toBeLessThanOrEqual(1);
  expect(await operators()).toBe(50n * 100_000_000n - 1_002n - 1n);
});

test('a channel that was closed to an address elsewhere is ended by a word of its operator, once', async () => {
  own().move(2_000_000);
  const channel = own().open(1_500_000);
  expect(await red()).toEqual([]);
  const before = { operators: await operators(), equity: await equity() };
  own().close(channel, 1_500_000);
  const told = [expect.stringMatching(/^LN-7: .* 1499998 are not in them \(bursar payout recover\)/)];
  expect(await red()).toEqual(told);
  expect(await red()).toEqual(told);
  const node = await identity();
  expect(await code(bookMissing(at.ctx, node, null))).toBe('not_resolvable');
  expect(await bookMissing(at.ctx, `02${'00'.repeat(32)}`, 'own')).toBeNull();
  expect(await bookMissing(at.ctx, node, 'own')).toBe(1_499_998n);
  expect(await bookMissing(at.ctx, node, 'own')).toBeNull();
  expect(await red()).toEqual([]);
  expect([before.operators - (await operators()), before.equity - (await equity())]).toEqual([1_499_998n, 1_499_998n]);
});

test('what is lost at the node is booked as lost, and never more than its operator has there', async () => {
  own().move(500_000);
  const channel = own().open(400_000);
  expect(await red()).toEqual([]);
  own().close(channel, 400_000);
  await red();
  const node = await identity();
  await at.admin.query('update lightning_nodes set booked_there = booked_there + 10000000000');
  expect(await code(bookMissing(at.ctx, node, 'own'))).toBe('not_resolvable');
  expect(await code(bookMissing(at.ctx, node, 'lost'))).toBe('not_resolvable');
  expect(await red()).toEqual([expect.stringMatching(/^LN-7: .* 399998 are not in them/)]);
  const before = await equity();
  expect(await bookMissing(at.ctx, node, 'lost')).toBe(399_998n);
  expect([await at.balance('expense:ln:lost:BTC'), await equity()]).toEqual([399_998n, before]);
  expect(await red()).toEqual([]);
});

test('the command books both, by the hash of a payment and by the key of the node, and says what it did', async () => {
  own().move(2_000_000);
  const channel = own().open(1_500_000);
  expect(await red()).toEqual([]);
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  own().close(channel, 1_500_000);
  await red();
  const folder = mkdtempSync(join(tmpdir(), 'bursar-own-'));
  const { url, certificate, macaroon } = engine.target();
  writeFileSync(join(folder, 'lnd.cert'), certificate ?? '');
  const given = {
    BURSAR_NETWORK: 'regtest',
    BURSAR_FIXED_RATES: 'BTC=65000.00',
    DATABASE_URL: at.url,
    BURSAR_LND_URL: url,
    BURSAR_LND_CERT: join(folder, 'lnd.cert'),
    BURSAR_LND_MACAROON: macaroon,
  };
  const recover = (...more: string[]) => runCli(['payout', 'recover', ...more], given);
  expect(await recover(hash)).toMatchObject({ code: 1, err: expect.stringContaining('--own books it as yours') });
  expect(await recover(hash, '--own', '--accept-loss')).toMatchObject({ code: 1, err: expect.stringContaining('not both') });
  expect(await recover(hash, '--own')).toMatchObject({
    code: 0,
    out: expect.stringContaining(`0.00001002 BTC of ${hash} are booked as yours`),
  });
  expect(await recover(hash, '--own')).toMatchObject({ code: 1, err: expect.stringContaining('is missing under') });
  await red();
  const node = await identity();
  expect(await recover(node)).toMatchObject({ code: 1, err: expect.stringContaining('0.01499998 BTC less than the books') });
  const said = await askCli(['payout', 'recover', node, '--own'], given);
  expect(said).toEqual({ id: node, currency: 'BTC', amount: '0.01499998', booked_as: 'own' });
  expect(await red()).toEqual([]);
  const held = invoice('hold');
  outgoing().send(held.request, 0n, 10_000n);
  await red();
  const kept = await recover(held.hash, '--own');
  expect(kept).toMatchObject({ code: 0, out: expect.stringContaining('kept as yours, with 0.00001000 BTC') });
  expect(await askCli(['payout', 'recover', held.hash, '--own'], given)).toMatchObject({ id: held.hash, booked_as: null });
  rmSync(folder, { recursive: true, force: true });
});

test('a look that began before an operator booked what is missing does not let him book it twice', async () => {
  own().move(2_000_000);
  const channel = own().open(1_500_000);
  expect(await red()).toEqual([]);
  own().close(channel, 1_500_000);
  await red();
  const node = await identity();
  const port = at.ctx.ports.lightning!;
  let isRead = false;
  let booked: bigint | null = null;
  const slow = {
    ...port,
    holdings() {
      isRead = true;
      return port.holdings();
    },
    // it is asked once more when node and books were read, and before what they have is kept
    async condition() {
      const said = await port.condition();
      if (isRead) booked ??= await bookMissing(at.ctx, node, 'own');
      return said;
    },
  };
  pass(MINUTE);
  const compare = createInvoiceComparison(at.ctx, { port: slow, watcher: null as never }, () => undefined);
  while (await compare());
  expect(booked).toBe(1_499_998n);
  expect(await bookMissing(at.ctx, node, 'own')).toBeNull();
  expect(await red()).toEqual([]);
});
