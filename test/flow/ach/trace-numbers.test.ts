// The seven digits of a trace number are used up one day: bank files go on at 1, and what the bank says of an old entry is not said of a new one.
import { beforeEach, expect, test } from 'vitest';
import { readNachaFile } from '../../../src/core/ach/nacha-reader.ts';
import { raiseTraces } from '../../../src/store/ach/traces.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { testBank } from '../../support/bank.ts';
import { checkedByMoov } from '../../support/moov-ach.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, row, shopWith, world } from '../payouts/merchants.ts';
import { requested } from './new-bank.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: ReturnType<typeof testBank>;
beforeEach(async () => {
  bank = testBank(ctx, { dedupes: true });
  const { rows } = await world.admin.query('select name, bytes from ach_files');
  for (const { name, bytes } of rows) bank.copies.set(name, bytes);
  await world.wait(10 * DAY);
  bank.cutOff();
  await bank.look();
  bank.executed.length = 0;
  world.pass(1);
});
async function handedOver(merchantId: bigint, count = 1): Promise<string[]> {
  const ids: string[] = [];
  for (let n = 0; n < count; n++) ids.push(await requested(merchantId));
  world.pass(1);
  bank.cutOff();
  await bank.look();
  return ids;
}
const numbersOf = async (ids: readonly string[]): Promise<number[]> => {
  const { rows } = await world.admin.query(
    'select right(trace, 7)::int as n from ach_entries where payout_id = any ($1) order by n',
    [ids],
  );
  return rows.map(({ n }) => n);
};
const lastIs = (n: number) => world.admin.query(`select setval('ach_trace', $1)`, [n]);

test('files go on at 1 after the highest, pass over what was given within a year, and no file has both', async () => {
  const merchantId = await shopWith(BTC);
  await lastIs(1);
  const first = await handedOver(merchantId, 2);
  expect(await numbersOf(first)).toEqual([2, 3]);
  await lastIs(9_999_997);
  expect(await numbersOf(await handedOver(merchantId, 2))).toEqual([9_999_998, 9_999_999]);
  expect(await numbersOf(await handedOver(merchantId, 3))).toEqual([1, 4, 5]);
  await lastIs(9_999_998);
  const together = await handedOver(merchantId, 2);
  expect(await numbersOf(together)).toEqual([6, 7]);
  const text = new TextDecoder().decode(bank.executed.at(-1)?.bytes);
  expect(checkedByMoov('-', text)).toMatchObject({ valid: true, errors: [] });
  for (const id of together) expect((await row(id)).status).toBe('processing');
  expect(await openBreakers(ctx.db)).toEqual([]);
  expect(await ledgerFindings()).toEqual([]);
});

test('after a year a number is given again, and a return is of the payout that it names', async () => {
  const merchantId = await shopWith(BTC);
  await lastIs(1_000);
  const [old = ''] = await handedOver(merchantId);
  await world.wait(20 * DAY);
  await bank.look();
  expect((await row(old)).status).toBe('completed');
  await world.wait(366 * DAY);
  await world.rate('100000.00');
  await lastIs(1_000);
  const [young = ''] = await handedOver(merchantId);
  expect([await numbersOf([old]), await numbersOf([young])]).toEqual([[1_001], [1_001]]);
  const [entry] = readNachaFile(new TextDecoder().decode(bank.executed.at(-1)?.bytes)).entries;
  bank.answer(entry?.trace ?? '', 'C01');
  await bank.look();
  const notices = await world.admin.query('select payout_id from ach_entries where trace = $1 and notice is not null', [
    entry?.trace,
  ]);
  // the bank's file names the older payout: it has taken its entry first
  expect(notices.rows).toEqual([{ payout_id: old }]);
  bank.answer(entry?.trace ?? '', 'R03');
  await bank.look();
  expect([(await row(old)).status, (await row(young)).status]).toEqual(['failed', 'processing']);
  expect(await openBreakers(ctx.db)).toEqual([]);
  expect(await ledgerFindings()).toEqual([]);
});

test('numbers of a file that the database had forgotten are passed on the way round too', async () => {
  const merchantId = await shopWith(BTC);
  await lastIs(9_999_990);
  await raiseTraces(ctx.db, 20);
  expect(await numbersOf(await handedOver(merchantId))).toEqual([21]);
  await raiseTraces(ctx.db, 9_999_990);
  expect(await numbersOf(await handedOver(merchantId))).toEqual([22]);
});
