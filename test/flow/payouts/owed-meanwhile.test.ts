// Whoever holds a merchant's balance may make him owe something, and a payout to another merchant that waits for the balance must not be booked then.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { requestPayout } from '../../../src/flow/payouts/bitcoin-request.ts';
import { bookInternalPayouts } from '../../../src/flow/payouts/internal-payouts.ts';
import { lockBalances } from '../../../src/store/ledger/ledger.ts';
import { fund, owe, tellFee } from '../../support/funded.ts';
import { eventually } from '../../support/service.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../../support/service-on-database.ts';

let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase();
  await tellFee(service.ctx);
});
afterEach(() => service.drop());

test('a payout to another merchant that waits for the balance is booked once nothing is owed', async () => {
  const { ctx, merchantId, admin } = service;
  const troubles: string[] = [];
  const book = () => bookInternalPayouts(ctx, { intents: async () => () => true, onTrouble: (what) => troubles.push(what) });
  const step = async (id: string) => (await admin.query('select step from payouts where id = $1', [id])).rows[0].step;
  await fund(ctx, merchantId, 1_000_000n);
  const { address: destination } = await service.create(100_00n, 'BTC', await service.openShop('other'));
  const { id } = await requestPayout(ctx, { merchantId, amount: '0.001', destination });
  let booking: Promise<unknown> | undefined;
  await ctx.db.transaction(async (sql) => {
    await lockBalances(sql, merchantId, ['BTC']);
    booking = book();
    const waiting = `select from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`;
    await eventually('it waits for the balance', async () => (await admin.query(waiting)).rowCount === 1);
    await owe({ ...ctx, db: { ...ctx.db, query: (statement) => sql.query(statement) } }, merchantId, 5n, 'BTC');
  });
  await booking;
  expect(await step(id)).toBe('queued');
  await owe(ctx, merchantId, -5n, 'BTC');
  await book();
  expect([await step(id), troubles]).toEqual(['ended', []]);
});
