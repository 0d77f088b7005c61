// A payment of Ethereum's chain that has another place is booked under keys that nobody has had, where it, or another one at that place, was booked.
import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { takeFreshKeys } from '../../src/store/chain/payment-writes.ts';
import { postEntries } from '../../src/store/ledger/ledger.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

let service: ServiceOnDatabase;
let txid: string;
let ids: readonly bigint[];
beforeAll(async () => {
  service = await openServiceOnDatabase();
});
afterAll(() => service.drop());
/** Three payments of one transaction on Ethereum's chain. */
beforeEach(async () => {
  const { transactionId } = await service.create();
  const { facts } = await service.pay(transactionId, [5n, 6n, 7n]);
  txid = `0x${randomBytes(32).toString('hex')}`;
  const { rows } = await service.admin.query(
    `update payments set currency = 'ETH', txid = $2 where txid = $1 returning id, vout`,
    [facts.txid, txid],
  );
  ids = rows.sort((a, b) => a.vout - b.vout).map(({ id }) => BigInt(id));
});

const changed = (id: bigint, set: string, ...values: readonly unknown[]) =>
  service.admin.query(`update payments set ${set} where id = $1`, [id, ...values]);
const generations = async () =>
  (await service.admin.query('select generation from payments where id = any ($1) order by vout', [ids.map(String)])).rows.map(
    ({ generation }) => generation,
  );
/** Something is booked under a key. */
async function booked(key: string): Promise<void> {
  const postings = [
    { account: 'asset:chain:ETH', amount: 5n },
    { account: 'equity:operator:ETH', amount: -5n },
  ];
  const entry = { key: `test:${key}`, kind: 'capital', postings, parts: [{ key, amount: 5n, reversesKey: null }] };
  await postEntries(service.db, [{ entry, transactionId: null, atMs: Date.UTC(2026, 5, 1) }]);
}

test('one that nobody has booked keeps its own', async () => {
  await takeFreshKeys(service.db, 'ETH', ids);
  expect(await generations()).toEqual([0, 0, 0]);
});

test('one that is booked, or was lost before, and one whose place another was booked at', async () => {
  await booked(`dep:eth:${txid}:2`);
  await booked(`dep:eth:${txid}:9`);
  await changed(ids[0] as bigint, 'part_key = $2', `dep:eth:${txid}:9`);
  await changed(ids[1] as bigint, 'generation = 2007');
  await takeFreshKeys(service.db, 'ETH', ids.slice(0, 1));
  expect(await generations()).toEqual([3_000, 2_007, 0]);
  await takeFreshKeys(service.db, 'ETH', ids.slice(1, 2));
  expect(await generations()).toEqual([3_000, 4_000, 0]);
  await takeFreshKeys(service.db, 'ETH', ids.slice(2));
  expect(await generations()).toEqual([3_000, 4_000, 5_000]);
});

test('in Bitcoin’s family a payment has one place', async () => {
  await changed(ids[0] as bigint, 'generation = 7');
  await takeFreshKeys(service.db, 'BTC', ids);
  expect(await generations()).toEqual([7, 0, 0]);
});
