// An entry of a forgotten bank file that has paid several payouts together, as a person has found: more than one of them is asked about and adopted, and
// what the bank says of the entry is said of all of them.
import { expect, test } from 'vitest';
import { recoverExecutedFile } from '../../../src/flow/ach/executed-after-all.ts';
import { readPayout } from '../../../src/store/payouts/reads.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, row, world } from '../payouts/merchants.ts';
import { balanceOf } from './forgotten-files.ts';
import {
  bank,
  before,
  CENTS,
  changed,
  decide,
  forgotten,
  lostEntriesForEach,
  nextFile,
  recovered,
  requested,
} from './lost-entries.ts';

merchantsForAll();
lostEntriesForEach();

/** An entry of 300 dollars that has paid two payouts of 99, as a person has found, one after the other. */
async function paidTwo() {
  const file = await forgotten(30_000n);
  await recovered(file);
  const first = await requested();
  await nextFile();
  await decide(first.id, 'paid');
  expect(await changed()).toEqual({ bank: -30_000n, lost: 30_000n - CENTS });
  const second = await requested('100', first.merchantId);
  await nextFile();
  expect(await row(second.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  await decide(second.id, 'paid');
  expect(await changed()).toEqual({ bank: -30_000n, lost: 30_000n - 2n * CENTS });
  expect(await readPayout(ctx.db, second.id)).toMatchObject({ trace: file.trace });
  expect(await ledgerFindings()).toEqual([]);
  return { file, first, second };
}

test('a part that was found paid does not answer for the rest: more are asked about, and paid by it, until it was as much', async () => {
  const { first } = await paidTwo();
  const third = await requested('150', first.merchantId);
  await nextFile();
  expect(await row(third.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  const fourth = await requested('100', first.merchantId);
  await nextFile();
  expect(await row(fourth.id)).toMatchObject({ step: 'batched' });
  await decide(third.id, 'paid');
  const own = third.cents + 2n * CENTS - 30_000n;
  expect(await changed()).toEqual({ bank: -30_000n - fourth.cents, lost: 0n });
  expect((await balanceOf('equity:operator:USD')) - before.own).toBe(own);
  expect(await ledgerFindings()).toEqual([]);
});

test.each(['returns it', 'refuses its file'])('what an entry has paid comes back, all of it, when the bank %s', async (how) => {
  const { file, first, second } = await paidTwo();
  if (how === 'returns it') bank.answer(file.trace, 'R01');
  else bank.refuse(file.name);
  await bank.look();
  for (const { id } of [first, second]) expect(await row(id)).toMatchObject({ status: 'failed' });
  expect(await of(first.merchantId, 'available')).toBe(BTC);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
  if (how === 'returns it') return;
  await recoverExecutedFile(ctx, { name: file.name, by: 'ann' });
  expect(await changed()).toEqual({ bank: -30_000n, lost: 30_000n });
  const next = await requested('100', first.merchantId);
  await nextFile();
  expect(await row(next.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
});

test('without a rate nothing of what an entry has paid comes back, and all of it with one', async () => {
  const { file, first, second } = await paidTwo();
  await world.admin.query(`update rates set at = at - interval '1 day'`);
  bank.answer(file.trace, 'R01');
  await bank.look();
  for (const { id } of [first, second]) expect(await row(id)).toMatchObject({ status: 'completed' });
  await world.admin.query(`update rates set at = at + interval '1 day'`);
  await bank.look();
  for (const { id } of [first, second]) expect(await row(id)).toMatchObject({ status: 'failed' });
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});
