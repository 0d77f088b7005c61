// Nothing is booked as the operator's twice, or beyond what is his at the node without being told: what customers are owed stays covered.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bookOwnPayment } from '../../src/flow/lightning/unasked-payments.ts';
import { eventually } from '../support/service.ts';
import { at, close, code, engine, invoice, MINUTE, open, outgoing, pass, toldAfterAMinute as told } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const own = () => engine.node().own;
const operators = () => at.balance('asset:ln:operator:BTC');
const costs = () => at.balance('expense:ln:channels:BTC');
/** What the operator pays from the node himself. @returns its hash */
function paid(sats: bigint): string {
  const { request, hash } = invoice('pay', sats * 1_000n);
  outgoing().send(request, 0n, sats * 10n);
  return hash;
}

/** He pays, and a channel closes. @returns what was his before, and the payment's hash */
async function paidAndClosed(): Promise<{ readonly before: bigint; readonly hash: string }> {
  own().move(2_000_000);
  const channel = own().open(1_500_000);
  expect(await told()).toEqual([]);
  const before = await operators();
  const hash = paid(100_000n);
  own().close(channel, 252);
  return { before, hash };
}

test('what nobody has booked is not taken for what closing a channel has cost, and is booked once', async () => {
  const { before, hash } = await paidAndClosed();
  expect((await told()).map((one) => one.slice(0, 4))).toEqual(['LN-5']);
  expect(await costs()).toBe(0n);
  const gone = await bookOwnPayment(at.ctx, hash);
  expect(gone).toBe(100_101n);
  expect(await told()).toEqual([]);
  // but for the two satoshis that its two channels were shown too high
  expect(before - (await operators())).toBe(100_101n + 251n);
  expect(await costs()).toBe(101n + 251n);
});

test('what he has paid is no closing cost either where the node was looked at before its payments were', async () => {
  const { before, hash } = await paidAndClosed();
  pass(MINUTE);
  await at.rate('100000.00');
  await at.work();
  expect((await at.comparedHoldings()).map((one) => one.slice(0, 4))).toEqual(['LN-5']);
  expect(await costs()).toBe(0n);
  await bookOwnPayment(at.ctx, hash);
  expect(await told()).toEqual([]);
  expect(before - (await operators())).toBe(100_101n + 251n);
});

test('of two payments that are booked as his at the same moment, and are more than is his together, one is', async () => {
  expect(await told()).toEqual([]);
  const hashes = ['ab'.repeat(32), 'cd'.repeat(32)];
  const most = (await operators()) * 600n;
  for (const [n, hash] of hashes.entries())
    await at.admin.query(`insert into lightning_sent (node, payment_index, payment_hash, state, amount_msat, fee_msat, seen_at)
                            select identity, ${n + 90}, '${hash}', 'succeeded', ${most}, 0, now() from lightning_nodes`);
  const blocking = await at.admin.connect();
  await blocking.query('begin');
  await blocking.query('select from lightning_nodes for update');
  const booked = hashes.map((hash) => code(bookOwnPayment(at.ctx, hash)));
  await eventually('both wait', async () => {
    const { rows } = await at.admin.query(
      `select count(*)::int as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows[0].n === 2;
  });
  await blocking.query('commit');
  blocking.release();
  expect(new Set(await Promise.all(booked))).toEqual(new Set(['accepted', 'not_resolvable']));
  expect(await operators()).toBeGreaterThanOrEqual(0n);
});

test('what he takes out of the wallet beyond what is his stops payouts until he has put it back', async () => {
  // INV-6 is asked of currencies whose chain is read; of this one no block is
  await at.admin.query(`insert into chain_cursors (currency, height, hash, caught_up_at, deep_height, updated_at)
                          select 'BTC', 1, '${'00'.repeat(32)}', caught_up_at, 1, updated_at from chain_cursors limit 1`);
  const toldOfNode = async () => (await told()).filter((one) => !one.startsWith('CHAIN-1'));
  own().move(400_000);
  expect(await toldOfNode()).toEqual([]);
  const his = await operators();
  const hash = paid(((his - 100n) * 1_000n) / 1_001n);
  expect((await toldOfNode()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7']);
  await bookOwnPayment(at.ctx, hash);
  expect(await toldOfNode()).toEqual([]);
  own().move(-200_000, 100);
  expect(await toldOfNode()).toEqual([expect.stringMatching(/^INV-6: BTC: owed /)]);
  expect(await operators()).toBeLessThan(-199_000n);
  own().move(200_000);
  expect(await toldOfNode()).toEqual([]);
});
