// Payments that an earlier version booked although no key of ours controls their script: the audit names them, and the migration reverses
// them.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveTransaction } from '../../src/flow/transaction-life.ts';
import { readUnprotected } from '../../src/store/chain/unprotected-coins.ts';
import { openServiceOnDatabase, type ServiceOnDatabase } from '../support/service-on-database.ts';

const DAY_MS = 86_400_000;
let service: ServiceOnDatabase;
beforeEach(async () => {
  service = await openServiceOnDatabase({ also: 'DOGE' });
});
afterEach(() => service.drop());

/** What db/0110 does with the rows that it finds. */
async function migrateAgain(): Promise<void> {
  const text = readFileSync('db/0110_unprotected_coins.sql', 'utf8');
  await service.admin.query(text.slice(text.indexOf('do $$')));
}
const accept = (transactionId: string, part: 'excess' | null) =>
  resolveTransaction(service.ctx, { merchantId: service.merchantId, transactionId, action: 'accept', part } as never);

test('what was accepted becomes a debt, what lay in suspense is gone, what was never booked is no payment', async () => {
  const [credited, waiting, unbooked] = [await service.create(), await service.create(), await service.create()];
  // as the watchers of then recorded them
  for (const made of [credited, waiting]) await service.pay(made.transactionId, 500_000_000n, { currency: 'DOGE' });
  await service.mine(70, 'DOGE');
  await service.judge();
  await accept(credited.transactionId, null);
  await service.pay(unbooked.transactionId, 700_000_000n, { currency: 'DOGE' });
  await service.judge();
  expect(await service.available('DOGE')).toBe(500_000_000n);
  const findings = await service.findings();
  expect(findings.every((one) => one.startsWith('CHAIN-3: DOGE '))).toBe(true);
  for (const [made, place] of [
    [credited, 'a payment'],
    [credited, 'the deposit dep:doge:'],
    [waiting, 'a payment'],
    [waiting, 'the deposit dep:doge:'],
    [unbooked, 'a payment'],
  ] as const)
    expect(findings.filter((one) => one.includes(` is ${place}`) && one.includes(made.transactionId))).toHaveLength(1);

  await migrateAgain();
  expect((await service.findings()).filter((one) => one.startsWith('CHAIN-3'))).toHaveLength(4);
  await service.judge();
  expect(await service.findings()).toEqual([]);
  expect(await service.available('DOGE')).toBe(0n);
  expect(await service.balance(`merchant:${service.merchantId}:receivable:DOGE`)).toBe(0n);
  expect(await service.balance(`suspense:${waiting.transactionId}:DOGE`)).toBe(0n);
  expect(await service.path(credited.transactionId)).toEqual(['started', 'review', 'confirmed', 'succeeded', 'review']);
  const { rows } = await service.admin.query('select transaction_id, state, deposit_key from payments order by id');
  expect(rows).toEqual([
    { transaction_id: credited.transactionId, state: 'conflicted', deposit_key: null },
    { transaction_id: waiting.transactionId, state: 'conflicted', deposit_key: null },
  ]);
  expect((await readUnprotected(service.db, 10)).map((coin) => coin.transactionId).sort()).toEqual(
    [credited, waiting, unbooked].map((made) => made.transactionId).sort(),
  );
  await expect(accept(waiting.transactionId, null)).rejects.toMatchObject({ code: 'not_resolvable' });
  await service.wait(DAY_MS);
  await service.judge();
  expect(await service.findings()).toEqual([]);
});
