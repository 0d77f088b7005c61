// Coins that an earlier version booked although no key of ours controls their script: the audit names them, and the migration takes them back.
import { readFileSync } from 'node:fs';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { resolveTransaction } from '../../src/flow/transaction-life.ts';
import { readUnprotected } from '../../src/store/unprotected-coins.ts';
import { type House, openHouse } from '../support/house.ts';

const DAY_MS = 86_400_000;
let house: House;
beforeEach(async () => {
  house = await openHouse({ also: 'DOGE' });
});
afterEach(() => house.drop());

/** What db/0110 does with the rows that it finds. */
async function migrateAgain(): Promise<void> {
  const text = readFileSync('db/0110_unprotected_coins.sql', 'utf8');
  await house.admin.query(text.slice(text.indexOf('do $$')));
}
const accept = (transactionId: string, part: 'excess' | null) =>
  resolveTransaction(house.ctx, { merchantId: house.merchantId, transactionId, action: 'accept', part } as never);

test('what was accepted becomes a debt, what lay in suspense is gone, what was never booked is no payment', async () => {
  const [credited, waiting, unbooked] = [await house.create(), await house.create(), await house.create()];
  // as the watchers of then recorded them
  for (const made of [credited, waiting]) await house.pay(made.transactionId, 500_000_000n, { currency: 'DOGE' });
  await house.mine(70, 'DOGE');
  await house.judge();
  await accept(credited.transactionId, null);
  await house.pay(unbooked.transactionId, 700_000_000n, { currency: 'DOGE' });
  await house.judge();
  expect(await house.available('DOGE')).toBe(500_000_000n);
  const findings = await house.findings();
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
  expect((await house.findings()).filter((one) => one.startsWith('CHAIN-3'))).toHaveLength(4);
  await house.judge();
  expect(await house.findings()).toEqual([]);
  expect(await house.available('DOGE')).toBe(0n);
  expect(await house.balance(`merchant:${house.merchantId}:receivable:DOGE`)).toBe(0n);
  expect(await house.balance(`suspense:${waiting.transactionId}:DOGE`)).toBe(0n);
  expect(await house.path(credited.transactionId)).toEqual(['started', 'review', 'confirmed', 'succeeded', 'review']);
  const { rows } = await house.admin.query('select transaction_id, state, deposit_key from payments order by id');
  expect(rows).toEqual([
    { transaction_id: credited.transactionId, state: 'conflicted', deposit_key: null },
    { transaction_id: waiting.transactionId, state: 'conflicted', deposit_key: null },
  ]);
  expect((await readUnprotected(house.db, 10)).map((coin) => coin.transactionId).sort()).toEqual(
    [credited, waiting, unbooked].map((made) => made.transactionId).sort(),
  );
  await expect(accept(waiting.transactionId, null)).rejects.toMatchObject({ code: 'not_resolvable' });
  await house.wait(DAY_MS);
  await house.judge();
  expect(await house.findings()).toEqual([]);
});
