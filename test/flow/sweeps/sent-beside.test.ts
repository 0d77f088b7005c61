// What of a transaction's outputs its sender had itself, and where that is now.
import { afterAll, beforeAll, expect, test } from 'vitest';
import { fateOf } from '../../../src/flow/sweeps/sent-beside.ts';
import { freshDatabase } from '../../support/postgres.ts';

let database: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  database = await freshDatabase();
});
afterAll(() => database.drop());

const paid = (vout: number, amountMinor: bigint) => ({ vout, script: `65766d${'5a'.repeat(20)}`, amountMinor });

test('what a contract has sent on in the same transaction is neither lost nor arrived', async () => {
  const outputs = [paid(0, 5n), { ...paid(1, 7n), sentOn: true as const }, paid(2, 11n)];
  expect(await fateOf(database.db, outputs)).toEqual({ arrived: new Map(), lost: 16n });
  expect(await fateOf(database.db, outputs.slice(1, 2))).toEqual({ arrived: new Map(), lost: 0n });
});
