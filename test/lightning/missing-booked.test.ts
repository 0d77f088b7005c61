// What the node has less than the books (LN-7) is booked once: not before what it has paid meanwhile is listed, not while a comparison writes down what it
// had read before, and also while a payment hangs that its operator has said is his. On the simulated node.
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../../src/flow/context.ts';
import { bookMissing, bookOwnPayment, claimUnderWay } from '../../src/flow/lightning/unasked-payments.ts';
import type { Sql } from '../../src/store/postgres/connect.ts';
import { createInvoiceComparison } from '../../src/worker/lightning/jobs.ts';
import { eventually } from '../support/service.ts';
import { at, close, code, engine, invoice, MINUTE, open, outgoing, pass, toldAfterAMinute as red } from './funded-payouts.ts';

beforeEach(() => open());
afterEach(close);

const own = () => engine.node().own;
const operators = () => at.balance('asset:ln:operator:BTC');
const identity = async (): Promise<string> => (await at.admin.query('select identity from lightning_nodes')).rows[0].identity;

/** The operator closes a channel to an address elsewhere; 1,499,998 satoshis are missing then. */
async function takesChannel(): Promise<void> {
  own().move(2_000_000);
  const channel = own().open(1_500_000);
  expect(await red()).toEqual([]);
  own().close(channel, 1_500_000);
}

test('while the payments of the node are not listed since it was looked at, what is missing may be one of them, and is not booked', async () => {
  expect(await red()).toEqual([]);
  const before = await operators();
  const { request, hash } = invoice();
  outgoing().send(request, 0n, 10_000n);
  pass(MINUTE);
  // the signer, which lists them, cannot be asked
  await at.comparedHoldings({ payments: () => Promise.reject(Object.assign(new Error('away'), { fault: 'node' })) });
  const node = await identity();
  expect(await code(bookMissing(at.ctx, node, 'own'))).toBe('not_resolvable');
  expect((await red()).map((one) => one.slice(0, 4))).toEqual(['LN-5', 'LN-7']);
  expect(await bookOwnPayment(at.ctx, hash)).toBe(1_002n);
  expect(await bookMissing(at.ctx, node, 'own')).toBeNull();
  expect(await red()).toEqual([]);
  expect(before - (await operators())).toBe(1_002n);
});

test('a node that is looked at lists its payments too, so that what is missing can be booked at once', async () => {
  await takesChannel();
  pass(MINUTE);
  await at.comparedHoldings();
  expect(await bookMissing(at.ctx, await identity(), 'own')).toBe(1_499_998n);
  expect(await red()).toEqual([]);
});

test('where this service pays nothing nobody lists payments, and nothing waits for that', async () => {
  await takesChannel();
  await at.admin.query('update lightning_nodes set payments_compared = null, listed_for = null');
  pass(MINUTE);
  while (await at.compare());
  expect(await bookMissing(at.ctx, await identity(), 'lost')).toBe(1_499_998n);
});

test('what hangs at the node for good, and its operator has said is his, does not keep him from booking what else is missing', async () => {
  await takesChannel();
  const node = await identity();
  // it was killed between its disk and the channel: no channel holds it
  const hash = 'ab'.repeat(32);
  await at.admin.query(
    `insert into lightning_sent (node, payment_index, payment_hash, state, amount_msat, fee_msat, seen_at) values ($1, 90, $2, 'in_flight', 1000000, 0, now())`,
    [node, hash],
  );
  expect((await red()).map((one) => one.slice(0, 4))).toEqual(['LN-5']);
  expect(await claimUnderWay(at.ctx, hash)).toBe(1_000n);
  expect(await red()).toEqual([expect.stringMatching(/^LN-7: .* 1499998 are not in them/)]);
  expect(await bookMissing(at.ctx, node, 'own')).toBe(1_499_998n);
  expect(await red()).toEqual([]);
});

test('a comparison that has read the books before an operator booked what is missing waits for him, and keeps nothing of it', async () => {
  await takesChannel();
  expect(await red()).toEqual([expect.stringMatching(/^LN-7/)]);
  const node = await identity();
  const [posted, mayCommit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow: Context = {
    ...at.ctx,
    db: {
      ...at.ctx.db,
      transaction: <T>(work: (sql: Sql) => Promise<T>): Promise<T> =>
        at.ctx.db.transaction(async (sql) => {
          const done = await work(sql);
          posted.resolve();
          await mayCommit.promise;
          return done;
        }),
    },
  };
  const port = at.ctx.ports.lightning!;
  let isRead = false;
  const booked: Promise<bigint | null>[] = [];
  const meanwhile = {
    ...port,
    holdings() {
      isRead = true;
      return port.holdings();
    },
    // it is asked once more when node and books were read, and before what they have is kept
    async condition() {
      const said = await port.condition();
      if (!isRead) return said;
      if (booked.length === 0) booked.push(bookMissing(slow, node, 'own'));
      await posted.promise;
      return said;
    },
  };
  pass(MINUTE);
  const compare = createInvoiceComparison(at.ctx, { port: meanwhile, watcher: null as never }, () => undefined);
  const compared = (async () => {
    while (await compare());
  })();
  await eventually('the comparison waits', async () => {
    const { rows } = await at.admin.query(
      `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
    );
    return rows.length > 0;
  });
  mayCommit.resolve();
  expect(await booked[0]).toBe(1_499_998n);
  await compared;
  await at.comparedPayments();
  expect(await bookMissing(at.ctx, node, 'own')).toBeNull();
  expect(await red()).toEqual([]);
});
