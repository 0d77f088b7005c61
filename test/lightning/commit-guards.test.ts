// What has changed between the signer's word and the moment in which a payout over Lightning is committed counts: payouts were stopped, its merchant owes
// something, it is held again, or others of its merchant have left. On the simulated node, with a clock that the test moves.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { reconsiderPayout } from '../../src/flow/payouts/held-reasons.ts';
import { clearBreakers, tripBreaker } from '../../src/store/ledger/breakers.ts';
import { lockBalances, postEntries } from '../../src/store/ledger/ledger.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { eventually } from '../support/service.ts';
import { AMOUNT, at, clock, close, engine, invoice, looks, open, outgoing, pass, status, toAnother } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

/** A look during which something happens once the signer has authorized a payout. */
const lookWith = (happens: () => Promise<unknown>): Promise<void> =>
  at.look({
    async authorize(asked) {
      await at.paying.authorize(asked);
      await happens();
    },
  });
async function owes(amount: bigint, on: Sql = at.ctx.db): Promise<void> {
  const postings = [
    { account: `asset:receivable:merchant:${at.merchantId}:BTC`, amount },
    { account: 'equity:operator:BTC', amount: -amount },
  ];
  const entry = { key: `loss ${amount}`, kind: 'loss', postings, parts: [] };
  await postEntries(on, [{ entry, transactionId: null, atMs: clock.nowMs }]);
}
/** Its merchant comes to owe something while what is done waits for his balance. */
async function owesMeanwhile<T>(done: () => Promise<T>): Promise<T> {
  let waits: Promise<T> | undefined;
  await at.ctx.db.transaction(async (sql) => {
    await lockBalances(sql, at.merchantId, ['BTC']);
    waits = done();
    const text = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await eventually('it waits for the balance', async () => (await at.admin.query(text)).rowCount === 1);
    await owes(5n, sql);
  });
  return waits as Promise<T>;
}
const held = async (): Promise<string> => (await at.request(invoice('hold').request, AMOUNT)).id;
/** How many of these the node was asked for. */
async function sent(ids: readonly string[]): Promise<number> {
  const states = await Promise.all(ids.map(async (id) => (await at.payment(id)).state));
  return states.filter((state) => state === 'sent').length;
}

test('payouts that were stopped meanwhile are not committed', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  const stop = { name: 'payouts', by: ['a test'], findings: ['a test'], atMs: clock.nowMs } as const;
  await lookWith(() => tripBreaker(at.ctx.db, stop));
  expect(await at.payment(id)).toMatchObject({ state: 'waiting', sends: 0 });
  expect(outgoing().listed()).toEqual([]);
  await clearBreakers(at.ctx.db, 'a test', clock.nowMs);
  await looks(2);
  expect(await status(id)).toBe('completed');
});

test('one whose merchant owes something by then is not committed', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  await lookWith(() => owes(5n));
  expect(await at.payment(id)).toMatchObject({ state: 'waiting', sends: 0 });
  expect(outgoing().listed()).toEqual([]);
});

test('nor is one whose merchant comes to owe something while it waits for his balance', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  await owesMeanwhile(() => at.look());
  expect(await at.payment(id)).toMatchObject({ state: 'waiting', sends: 0 });
  expect(outgoing().listed()).toEqual([]);
});

test('one that is requested then waits from the beginning', async () => {
  expect(await owesMeanwhile(() => at.request(invoice().request, AMOUNT))).toMatchObject({
    status: 'pending',
    heldReason: 'receivable',
  });
});

test('the invoice of another merchant is not cancelled for one whose merchant owes something', async () => {
  const { made, id } = await toAnother();
  const atNode = async () => engine.node().find(await at.hashOf(made.transactionId))?.status;
  await owes(5n);
  await at.look();
  expect([await atNode(), await status(id)]).toEqual(['OPEN', 'processing']);
  await owes(-5n);
  await looks(1);
  expect([await atNode(), await status(id)]).toEqual(['CANCELED', 'completed']);
});

test('what its merchant comes to owe once the invoice of another merchant is cancelled comes too late', async () => {
  const { other, made, id } = await toAnother();
  const port = at.ctx.ports.lightning!;
  const { cancelInvoice } = port;
  Object.assign(port, {
    async cancelInvoice(hash: string) {
      const said = await cancelInvoice(hash);
      await owes(5n);
      return said;
    },
  });
  await at.look();
  await at.work();
  expect(await at.payout(id)).toMatchObject({ status: 'completed', fee: 0n });
  expect((await at.path(made.transactionId)).at(-1)).toBe('succeeded');
  expect(await at.balance(`merchant:${other}:available:BTC`)).toBe(10_000n);
});

test('one that is held again by then stays held', async () => {
  const { id } = await at.request(invoice().request, AMOUNT);
  await lookWith(async () => {
    await owes(5n);
    await reconsiderPayout(at.ctx, id);
    await owes(-5n);
  });
  expect(await at.payment(id)).toMatchObject({ state: 'waiting', sends: 0 });
  expect(await at.payout(id)).toMatchObject({ status: 'processing', heldReason: 'receivable' });
  expect(at.troubles).toEqual([]);
  expect(outgoing().listed()).toEqual([]);
});

test.each([
  ['that take more of our channels than they leave', { spendable: '3029' }, { spendable: '3030' }],
  ['that leave too few slots', { freeSlots: 2 }, { freeSlots: 3 }],
])('of two of a merchant %s only one is committed', async (_what, few, enough) => {
  const node = (is: object) => ({ node: async () => ({ ...(await at.paying.node()), ...is }) });
  const ids = [await held(), await held()];
  await at.look(node(few));
  expect(await sent(ids)).toBe(1);
  pass(16_000);
  await at.look(node(few));
  expect(await sent(ids)).toBe(1);
  pass(16_000);
  await at.look(node(enough));
  expect(await sent(ids)).toBe(2);
});

test('of two more beside nine of their merchant one is committed, the other waits', async () => {
  const nine = await Promise.all(Array.from({ length: 9 }, held));
  for (let n = 0; n < 3; n++) await looks(1);
  expect(await sent(nine)).toBe(9);
  const two = [await held(), await held()];
  await looks(1);
  expect(await sent(two)).toBe(1);
  const reasons = await Promise.all(two.map(async (id) => (await at.payout(id)).heldReason));
  expect(new Set(reasons)).toEqual(new Set(['cool_down', null]));
});
