// What a forgotten bank file has paid to nobody known: which payout asks for it again, and what the bank says of it afterwards.
import { expect, test } from 'vitest';
import { readNachaFile } from '../../../src/core/ach/nacha-reader.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { readPayout } from '../../../src/store/payouts/reads.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, refusedWith, row, world } from '../payouts/merchants.ts';
import { balanceOf, forgottenFile, putBack } from './forgotten-files.ts';
import {
  account,
  atBank,
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
  waiting,
} from './lost-entries.ts';

merchantsForAll();
lostEntriesForEach();

test('an entry that a payout has been found to be paid by gives its merchant his money back when the bank returns it', async () => {
  const file = await forgotten(CENTS);
  const payout = await requested();
  await recovered(file);
  await decide(payout.id, 'paid');
  expect(await readPayout(ctx.db, payout.id)).toMatchObject({ trace: file.trace });
  bank.answer(file.trace, 'R01');
  await bank.look();
  expect(await row(payout.id)).toMatchObject({ status: 'failed', error: 'R01' });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await openBreakers(ctx.db)).toEqual([]);
  bank.answer(file.trace, 'R01');
  await bank.look();
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('an entry that nobody has been found for is not lost when the bank returns it, also before its file is booked', async () => {
  const file = await forgotten(CENTS);
  bank.answer(file.trace, 'R01');
  await bank.look();
  const payout = await requested();
  await recovered(file);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await openBreakers(ctx.db)).toEqual([]);
  await decide(payout.id, 'failed');
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('a payout of another amount to the same account waits too, and what was paid of it is not lost', async () => {
  const file = await forgotten(12_000n);
  const payout = await requested();
  expect(await recovered(file)).toEqual([payout.id]);
  await nextFile();
  expect(await row(payout.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  expect(bank.executed).toHaveLength(1);
  await decide(payout.id, 'paid');
  expect(await changed()).toEqual({ bank: -12_000n, lost: 12_000n - CENTS });
  expect(await ledgerFindings()).toEqual([]);
});

test('a payout of more than was paid to the account leaves nothing lost: the rest of it is the operator’s', async () => {
  const file = await forgotten(5_000n);
  const payout = await requested();
  expect(await recovered(file)).toEqual([payout.id]);
  await decide(payout.id, 'paid');
  expect(await changed()).toEqual({ bank: -5_000n, lost: 0n });
  expect((await balanceOf('equity:operator:USD')) - before.own).toBe(CENTS - 5_000n);
  bank.answer(file.trace, 'R01');
  await bank.look();
  expect(await row(payout.id)).toMatchObject({ status: 'failed' });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await balanceOf('equity:operator:USD')).toBe(before.own);
  expect(await ledgerFindings()).toEqual([]);
});

test('the first payout to the account that is requested after the file was booked waits for a person, and no later one', async () => {
  const file = await forgotten(CENTS);
  expect(await recovered(file)).toEqual([]);
  const first = await requested();
  await nextFile();
  expect(await row(first.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  const second = await requested('150', first.merchantId);
  await nextFile();
  expect(await row(second.id)).toMatchObject({ step: 'batched' });
  expect(bank.executed).toHaveLength(2);
  await decide(first.id, 'paid');
  expect(await changed()).toEqual({ bank: -CENTS - second.cents, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('payouts to the account wait until as much has been asked about as was paid, however small the first ones are', async () => {
  const file = await forgotten(15_000n);
  await recovered(file);
  const first = await requested();
  await nextFile();
  await decide(first.id, 'failed');
  const second = await requested('100', first.merchantId);
  world.pass(1);
  const third = await requested('100', first.merchantId);
  world.pass(1);
  // what was said of smaller ones says nothing of one of about as much
  const large = await requested('150', first.merchantId);
  await nextFile();
  const waits = { step: 'held', held_reason: 'unknown_outcome' };
  expect([await row(first.id), await row(second.id)]).toMatchObject([{ status: 'failed' }, waits]);
  expect([await row(third.id), await row(large.id)]).toMatchObject([{ step: 'batched' }, waits]);
});

test('a small payout of one merchant does not use up what another one is asked about', async () => {
  await recovered(await forgotten(CENTS));
  const other = await requested();
  await nextFile();
  await decide(other.id, 'failed');
  const payout = await requested();
  await nextFile();
  expect(await row(payout.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  await decide(payout.id, 'paid');
  expect(await changed()).toEqual({ bank: -CENTS, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('two files and two payouts: each has paid one, whichever is decided first', async () => {
  const first = await forgotten(CENTS);
  const older = await requested();
  await recovered(first);
  const second = await forgotten(CENTS);
  const newer = await requested();
  await recovered(second);
  await decide(older.id, 'paid');
  await decide(newer.id, 'paid');
  expect(await changed()).toEqual({ bank: -2n * CENTS, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('a file that the bank refuses after one of its entries was found to have paid a payout gives that one back', async () => {
  const file = await forgotten(CENTS, 7_000n);
  const payout = await requested();
  await recovered(file);
  await decide(payout.id, 'paid');
  bank.refuse(file.name);
  await bank.look();
  expect(await row(payout.id)).toMatchObject({ status: 'failed' });
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  expect(await ledgerFindings()).toEqual([]);
});

test('an entry that comes back while its payout is being decided is not taken twice', async () => {
  const file = await forgotten(CENTS);
  const payout = await requested();
  await recovered(file);
  bank.answer(file.trace, 'R01');
  const blocker = await world.admin.connect();
  try {
    await blocker.query('begin');
    await blocker.query('select from lost_ach_entries where file = $1 for update', [file.name]);
    const returned = bank.look();
    await waiting(1);
    const decided = refusedWith(decide(payout.id, 'paid'));
    await waiting(2);
    await blocker.query('commit');
    expect(await Promise.all([returned, decided])).toEqual([false, 'not_resolvable']);
  } finally {
    blocker.release();
  }
  expect(await changed()).toEqual({ bank: 0n, lost: 0n });
  await decide(payout.id, 'failed');
  expect(await of(payout.merchantId, 'available')).toBe(BTC);
  expect(await ledgerFindings()).toEqual([]);
});

test('one of more than the entries is found paid by an entry of as much, else by any to its account', async () => {
  const file = await forgotten(7_000n, CENTS);
  const { merchantId } = await requested();
  await requested('100', merchantId);
  const third = await requested('100', merchantId);
  const other = await requested('150', merchantId);
  expect(await recovered(file)).toHaveLength(4);
  await world.admin.query('delete from lost_questions where payout_id = any ($1)', [[third.id, other.id]]);
  await decide(third.id, 'paid');
  expect((await changed()).lost).toBe(7_000n);
  await decide(other.id, 'paid');
  expect((await changed()).lost).toBe(0n);
  expect(await ledgerFindings()).toEqual([]);
});

test('what goes to one of the accounts of a file waits, and who decides it is told that the bank has sent it back', async () => {
  const payout = await requested();
  const nobody = [
    { id: 'payout_nobody000000000', cents: 7_000n, account: '444555666' },
    { id: 'payout_nobody000000001', cents: CENTS, account: account() },
  ];
  const name = forgottenFile(bank, nobody);
  const bytes = bank.executed.at(-1)?.bytes as Uint8Array;
  await putBack();
  await bank.look();
  expect(await recovered({ name, bytes })).toEqual([payout.id]);
  const [, { trace }] = readNachaFile(new TextDecoder().decode(bytes)).entries as [unknown, { readonly trace: string }];
  bank.answer(trace, 'R01');
  await bank.look();
  await expect(decide(payout.id, 'paid')).rejects.toMatchObject({ message: expect.stringContaining('sent back (R01)') });
});

test('a look that finds a file, and the decision of a payout that waits, do not stand in each other’s way', async () => {
  await recovered(await forgotten(CENTS));
  const payout = await requested();
  await nextFile();
  atBank([{ id: 'payout_nobody000000009', cents: 7_000n }]);
  await putBack();
  const deadlocks = async () =>
    (await world.admin.query('select deadlocks from pg_stat_database where datname = current_database()')).rows[0].deadlocks;
  const earlier = await deadlocks();
  const blocker = await world.admin.connect();
  try {
    await blocker.query('begin');
    await blocker.query('select from payouts where id = $1 for update', [payout.id]);
    const decided = decide(payout.id, 'paid');
    await waiting(1);
    const look = bank.look();
    await waiting(2);
    await blocker.query('commit');
    await Promise.all([decided, look]);
  } finally {
    blocker.release();
  }
  await world.admin.query('select pg_stat_force_next_flush()');
  expect(await deadlocks()).toBe(earlier);
  expect(await row(payout.id)).toMatchObject({ status: 'completed' });
});

test.each([
  ['amount', 1n, account],
  ['account', 0n, () => '444555666'],
])('an entry that has the name of a payout and another %s is not that payout', async (_, more, to) => {
  const payout = await requested();
  const name = forgottenFile(bank, [{ id: payout.id, cents: payout.cents + more }], to());
  await putBack();
  await bank.look();
  expect(await openBreakers(ctx.db)).toHaveLength(1);
  expect(await row(payout.id)).toMatchObject({ step: more === 0n ? 'queued' : 'held' });
  expect(await recovered({ name, bytes: bank.executed.at(-1)?.bytes as Uint8Array })).toHaveLength(more === 0n ? 0 : 1);
  expect((await changed()).lost).toBe(payout.cents + more);
});
