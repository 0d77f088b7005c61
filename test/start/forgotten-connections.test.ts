// What stands between the service and its database (a firewall, a translator of addresses) forgets every connection that is open, and tells neither
// end: what is paid then is credited, and what is asked for is paid out, without anybody's help.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { payoutClient, until } from '../support/payout-client.ts';
import { freshDatabase, type TestDatabase } from '../support/postgres.ts';
import { openRelay } from '../support/relay.ts';
import { dataFolderFor, type Service, startService } from '../support/service.ts';

const TIMEOUT = 300_000;
const { folder, remove } = dataFolderFor();
let database: TestDatabase;
let relay: Awaited<ReturnType<typeof openRelay>>;
let service: Service;
let base = '';
const { ask, signIn, credited, address, request, sent, mine, becomes, arrival } = payoutClient({ base: () => base, folder });

beforeAll(async () => {
  database = await freshDatabase();
  relay = await openRelay(database.url);
  service = startService({
    dataFolder: folder,
    environment: { BURSAR_SANDBOX_BLOCK_SECONDS: '0', BURSAR_RATE_LIMIT_SCALE: '100', DATABASE_URL: relay.url },
  });
  base = await service.ready;
  await signIn();
}, TIMEOUT);
afterAll(async () => {
  await service.stop();
  relay.close();
  await database.drop();
  remove();
}, TIMEOUT);

const mined = { BTC: 'BTC', ETH: 'ETH', 'BTC-LN': null } as const;
type Code = keyof typeof mined;

/** A payment of 500 USD that is made and confirmed meanwhile is credited. */
async function isPaid(code: Code): Promise<void> {
  const transaction_id = await until(async () => {
    const made = await ask('/create_transaction', { amount: '500.00', crypto_selected: code });
    return made.transaction_id as string;
  }, `a transaction of ${code}`);
  await until(() => ask('/sandbox/pay', { transaction_id }), `a payment of ${code}`);
  const currency = mined[code];
  if (currency !== null) await until(() => ask('/sandbox/mine', { currency, blocks: 65 }), `blocks of ${code}`);
  await credited(transaction_id);
}

test('a service whose connections are forgotten takes payments and pays out again by itself within two minutes', {
  timeout: TIMEOUT,
}, async () => {
  await isPaid('BTC');
  relay.forget();
  const began = performance.now();
  await Promise.all([isPaid('BTC'), isPaid('ETH'), isPaid('BTC-LN')]);
  const to = await address();
  const id = await request(to);
  await sent(id);
  await mine();
  await becomes(id, 'completed');
  expect((await arrival(to)).amount).toBe('0.00100000');
  expect(performance.now() - began).toBeLessThan(120_000);
});
