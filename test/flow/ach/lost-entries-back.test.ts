// What a forgotten bank file has paid to nobody known, and what the bank says of it out of turn: before its file is known, beside a person's decision,
// or after it has refused the file.
import { expect, test } from 'vitest';
import { recoverExecutedFile } from '../../../src/flow/ach/executed-after-all.ts';
import { bookRefusal } from '../../../src/flow/ach/progress.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, refusedWith, row, world } from '../payouts/merchants.ts';
import { putBack } from './forgotten-files.ts';
import {
  atBank,
  bank,
  CENTS,
  changed,
  decide,
  forgotten,
  found,
  fromHere,
  lostEntriesForEach,
  nextFile,
  recovered,
  requested,
  waiting,
} from './lost-entries.ts';

merchantsForAll();
lostEntriesForEach();

/** Decided by a person before anybody knows a file that pays it. */
async function decidedFirst(outcome: 'paid' | 'failed') {
  const payout = await requested();
  await world.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [payout.id]);
  await decide(payout.id, outcome);
  return payout;
}
const refused = async (name: string): Promise<void> => {
  bank.refuse(name);
  await bank.look();
};
const executed = (name: string) => recoverExecutedFile(ctx, { name, by: 'ann' });

test.each([
  ['paid', 0n],
  ['failed', CENTS],
] as const)('an entry of a payout that was decided as %s before its file was known comes back once', async (outcome, lost) => {
  const payout = await decidedFirst(outcome);
  const file = await found([payout]);
  await recovered(file);
  expect(await changed()).toEqual({ bank: -CENTS, lost });
  bank.answer(file.trace, 'R01');
  await bank.look();
  expect(await openBreakers(ctx.db)).toEqual([]);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await ledgerFindings()).toEqual([]);
});

test('what came back of a payout before its file was known is not lost when the file is booked', async () => {
  const payout = await decidedFirst('paid');
  const file = atBank([payout]);
  bank.answer(file.trace, 'R01');
  await bank.look();
  await putBack();
  await bank.look();
  await recovered(file);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await ledgerFindings()).toEqual([]);
});

test('a file that the bank refuses while one of its entries is found to have paid a payout is taken back once', async () => {
  // an expense of others, so that nothing refuses to take too much from it
  await recovered(await forgotten(50_000n));
  await fromHere();
  const file = await forgotten(CENTS);
  const payout = await requested();
  await recovered(file);
  bank.refuse(file.name);
  const blocker = await world.admin.connect();
  try {
    await blocker.query('begin');
    const text = `select from ledger.balance b join ledger.account a on a.id = b.account_id where a.merchant_id = $1 for update of b`;
    await blocker.query(text, [payout.merchantId]);
    const decided = decide(payout.id, 'paid');
    await waiting(1);
    const look = bank.look();
    await waiting(2);
    await blocker.query('rollback');
    await Promise.all([decided, look]);
  } finally {
    blocker.release();
  }
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await row(payout.id)).toMatchObject({ status: 'failed' });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await ledgerFindings()).toEqual([]);
});

test.each(['paid', 'failed'] as const)(
  'a refused file that was executed after all asks about the next payout, whose first was decided as %s',
  async (outcome) => {
    const file = await forgotten(CENTS);
    const payout = await requested();
    await recovered(file);
    if (outcome === 'paid') await decide(payout.id, outcome);
    await refused(file.name);
    if (outcome === 'failed') {
      expect(await refusedWith(decide(payout.id, 'paid'))).toBe('not_resolvable');
      await decide(payout.id, outcome);
    }
    await executed(file.name);
    expect(await changed()).toEqual({ bank: -CENTS, lost: CENTS });
    const next = await requested();
    await nextFile();
    expect(await row(next.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
    await decide(next.id, 'paid');
    expect(await changed()).toEqual({ bank: -CENTS, lost: 0n });
    expect(await ledgerFindings()).toEqual([]);
  },
);

test('a payout that waits because of a file that was refused and executed stays the one that is asked about', async () => {
  const file = await forgotten(CENTS);
  const payout = await requested();
  await recovered(file);
  await refused(file.name);
  await executed(file.name);
  const next = await requested('150', payout.merchantId);
  await nextFile();
  expect(await row(next.id)).toMatchObject({ step: 'batched' });
  await decide(payout.id, 'paid');
  expect(await changed()).toEqual({ bank: -CENTS - next.cents, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('a file that is refused when its days of returns are over gives back what it was found to have paid', async () => {
  const file = await forgotten(CENTS, 7_000n);
  const payout = await requested();
  await recovered(file);
  await decide(payout.id, 'paid');
  await world.admin.query(`update ach_files set state = 'over' where name = $1`, [file.name]);
  await refused(file.name);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await row(payout.id)).toMatchObject({ status: 'failed' });
  expect(await ledgerFindings()).toEqual([]);
});

test('a refused file is not executed after all before what its refusal gives back is booked', async () => {
  const file = await forgotten(CENTS);
  const payout = await requested();
  await recovered(file);
  await decide(payout.id, 'paid');
  await world.admin.query(`update rates set at = at - interval '1 day'`);
  await refused(file.name);
  await world.admin.query(`update rates set at = at + interval '1 day'`);
  expect(await ledgerFindings()).toEqual([]);
  expect(await refusedWith(executed(file.name))).toBe('not_resolvable');
  await bank.look();
  expect(await row(payout.id)).toMatchObject({ status: 'failed' });
  await executed(file.name);
  expect(await changed()).toEqual({ bank: -CENTS, lost: CENTS });
  expect(await ledgerFindings()).toEqual([]);
});

test('a payout that was decided as paid comes back where the bank refuses its file before it is booked; executed after all it is lost once', async () => {
  const payout = await decidedFirst('paid');
  const file = await found([payout]);
  // of another worker, which has read the bank's reports before the file was found
  expect(await bookRefusal(ctx, file.name, 'R')).toBe('booked');
  await recovered(file);
  expect(await row(payout.id)).toMatchObject({ status: 'failed' });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
  await executed(file.name);
  expect(await changed()).toEqual({ bank: -CENTS, lost: CENTS });
  expect(await ledgerFindings()).toEqual([]);
});
