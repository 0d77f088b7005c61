// What a bank says of single entries, by every code that it may have: a return brings the money back, once; a notice and a dispute about a return move
// nothing, and a dispute is a person's to settle.
import { beforeEach, expect, test } from 'vitest';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, row, shopWith, world } from '../payouts/merchants.ts';
import { entryOf, newBank, requested } from './new-bank.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: Awaited<ReturnType<typeof newBank>>;
beforeEach(async () => {
  bank = await newBank();
});
async function handOver(): Promise<void> {
  world.pass(1);
  bank.cutOff();
  await bank.look();
}
async function handedOver(merchantId: bigint): Promise<string> {
  const id = await requested(merchantId);
  await handOver();
  return id;
}
const traceOf = async (id: string): Promise<string> => (await entryOf(id)).trace;
const problems = async (): Promise<string> => (await readReadiness(ctx, [])).problems.join();
const codes = (letter: string, from: number, to: number): readonly string[] =>
  Array.from({ length: to - from + 1 }, (_, at) => `${letter}${String(from + at).padStart(2, '0')}`);
const RETURNS = [...codes('R', 1, 60), ...codes('R', 80, 85)];
const NOTICES = [...codes('C', 1, 14), ...codes('C', 61, 69)];
/** The first and the last of each kind; which codes are disputes: test/core/ach.test.ts. */
const DISPUTES = ['R61', 'R70', 'R71', 'R77'];

test('a return of every code brings back what its payout took, once, and says why', async () => {
  const merchantId = await shopWith(BTC);
  const ids: string[] = [];
  for (const _ of RETURNS) ids.push(await requested(merchantId));
  await handOver();
  const paid = await of(merchantId, 'available');
  for (let times = 0; times < 2; times++) {
    for (const [at, id] of ids.entries()) bank.answer(await traceOf(id), RETURNS[at] as string);
    await bank.look();
    for (const [at, id] of ids.entries()) expect(await row(id)).toMatchObject({ status: 'failed', error: RETURNS[at] });
    expect([await of(merchantId, 'available'), bank.reports()]).toEqual([BTC, []]);
  }
  expect(paid).toBeLessThan(BTC);
  expect(await ledgerFindings()).toEqual([]);
});

test('a notice of every code moves nothing, and none comes between a payout and its end', async () => {
  const merchantId = await shopWith(BTC);
  const id = await handedOver(merchantId);
  for (const code of NOTICES) bank.answer(await traceOf(id), code);
  await bank.look();
  expect([(await row(id)).status, bank.reports()]).toEqual(['processing', []]);
  await world.wait(10 * DAY);
  await bank.look();
  expect((await row(id)).status).toBe('completed');
  expect(await ledgerFindings()).toEqual([]);
});

test.each(DISPUTES)('%s disputes a return: nothing moves, its file waits, and a person settles it', async (code) => {
  const merchantId = await shopWith(BTC);
  const id = await handedOver(merchantId);
  const other = await handedOver(merchantId);
  bank.answer(await traceOf(id), code);
  await world.wait(10 * DAY);
  await bank.look();
  expect([(await row(id)).status, (await row(other)).status]).toEqual(['processing', 'completed']);
  expect(await problems()).toContain(`disputed (trace number ${await traceOf(id)}, ${code})`);
  expect(await openBreakers(ctx.db)).toEqual([]);
  await bank.acknowledge(bank.reports()[0]?.id ?? '');
  await bank.look();
  expect((await row(id)).status).toBe('completed');
  expect(await problems()).not.toContain('disputed');
  expect(await ledgerFindings()).toEqual([]);
});

test.each(['before it is completed', 'after'])('a dispute of a return that was booked %s takes nothing back', async (when) => {
  const merchantId = await shopWith(BTC);
  const id = await handedOver(merchantId);
  if (when === 'after') await world.wait(10 * DAY);
  await bank.look();
  const trace = await traceOf(id);
  bank.answer(trace, 'R03');
  await bank.look();
  bank.answer(trace, 'R68');
  bank.answer(trace, 'R73');
  await bank.look();
  expect(await row(id)).toMatchObject({ status: 'failed', error: 'R03' });
  expect([await of(merchantId, 'available'), bank.reports().length]).toEqual([BTC, 2]);
  expect(await problems()).toContain('R68');
  expect(await ledgerFindings()).toEqual([]);
});

test('what a bank sends back beside a dispute is booked, once', async () => {
  const merchantId = await shopWith(BTC);
  const [id, other] = [await handedOver(merchantId), await handedOver(merchantId)];
  bank.answerTogether([
    { trace: await traceOf(id), code: 'R03' },
    { trace: await traceOf(other), code: 'R69' },
  ]);
  for (let looks = 0; looks < 3; looks++) {
    await bank.look();
    expect([(await row(id)).status, (await row(other)).status]).toEqual(['failed', 'processing']);
  }
  expect(bank.reports()).toHaveLength(1);
  expect(await ledgerFindings()).toEqual([]);
});
