// What a bank says of whole files, and reports that cannot be booked: a refusal counts whenever it comes, a duplicate is no refusal, and one
// report that waits holds back nothing but the files that it may concern.
import { beforeEach, expect, test } from 'vitest';
import type { BankReport } from '../../../src/core/ach/bank-port.ts';
import { approvePayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import {
  approvalAbove,
  BTC,
  ctx,
  ledgerFindings,
  merchantsForAll,
  of,
  path,
  row,
  shopWith,
  world,
} from '../payouts/merchants.ts';
import { entryOf, handedOver, newBank, requested } from './new-bank.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: Awaited<ReturnType<typeof newBank>>;
beforeEach(async () => {
  bank = await newBank();
});
const green = async (): Promise<void> => expect(await ledgerFindings()).toEqual([]);
const problems = async (): Promise<readonly string[]> => (await readReadiness(ctx, [])).problems;

test('a duplicate is no refusal: the bank has the file', async () => {
  const merchantId = await shopWith(BTC);
  bank.state.next = ['lost_answer'];
  bank.state.onHandOver = async () => {
    bank.state.isSilent = true;
  };
  const id = await handedOver(bank, merchantId);
  const { file } = await entryOf(id);
  expect((await entryOf(id)).state).toBe('unknown');
  bank.state.isSilent = false;
  bank.hadBefore(file);
  await bank.look();
  expect([(await row(id)).status, (await entryOf(id)).state, bank.reports()]).toEqual(['processing', 'acked', []]);
  await green();
});

test('a refusal after the file was completed brings the money back as a return does', async () => {
  const merchantId = await shopWith(BTC);
  const id = await handedOver(bank, merchantId);
  const { file } = await entryOf(id);
  await world.wait(10 * DAY);
  await bank.look();
  expect((await row(id)).status).toBe('completed');
  bank.refuse(file);
  await world.admin.query("update rates set at = at - interval '1 hour'");
  await bank.look();
  expect([(await row(id)).status, bank.reports().length]).toEqual(['completed', 1]);
  await world.rate('50000.00');
  await bank.look();
  expect(await row(id)).toMatchObject({
    status: 'failed',
    error: 'the bank refused the file: unknown company',
    given_back: '200000',
  });
  expect(await of(merchantId, 'available')).toBe(BTC + 100_000n);
  expect(await path(id)).toEqual(['payout.processing', 'payout.completed', 'payout.failed', 'payout.returned']);
  expect(bank.reports()).toEqual([]);
  await green();
});

test('a refusal of a file that does not exist stays with the bank, and is told', async () => {
  const id = await handedOver(bank, await shopWith(BTC));
  bank.refuse('2020-01-01-A');
  await bank.look();
  expect([(await row(id)).status, bank.reports().length]).toEqual(['processing', 1]);
  expect((await problems()).join()).toContain('is about a file 2020-01-01-A, and there is none');
});

test('what is no report holds back nothing, and is told until it is taken away', async () => {
  const merchantId = await shopWith(BTC);
  const first = await handedOver(bank, merchantId);
  bank.say('ACK 2026-06-02 everything is fine');
  await world.wait(10 * DAY);
  const second = await handedOver(bank, merchantId);
  expect([(await row(first)).status, (await entryOf(second)).state]).toEqual(['completed', 'acked']);
  expect((await problems()).join()).toContain('it is no NACHA file');
  await bank.acknowledge(bank.reports()[0]?.id ?? '');
  await bank.look();
  expect((await problems()).join()).not.toContain('NACHA');
});

test('a report before which a tool for text has put something may tell of any return: nothing is completed before it is read', async () => {
  const merchantId = await shopWith(BTC);
  const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
  const { trace } = await entryOf(first);
  bank.answer(trace, 'R03');
  const [report] = bank.reports();
  const { id, content } = report as Extract<BankReport, { readonly kind: 'nacha' }>;
  await bank.acknowledge(id);
  bank.say(`\u00ef\u00bb\u00bf${content}`);
  await world.wait(10 * DAY);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['processing', 'processing']);
  expect((await problems()).join()).toContain('cannot be read, and nothing is completed before it is');
  await bank.acknowledge(bank.reports()[0]?.id ?? '');
  bank.say(`\r\n${content}`);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['failed', 'completed']);
  await green();
});

test('a return without a rate holds back its own file only', async () => {
  const [merchantId, other] = [await shopWith(BTC), await shopWith(BTC)];
  const returned = await handedOver(bank, merchantId);
  const kept = await handedOver(bank, other);
  bank.answer((await entryOf(returned)).trace, 'R03');
  await world.wait(10 * DAY);
  await world.admin.query("update rates set at = at - interval '1 hour'");
  await bank.look();
  expect([(await row(returned)).status, (await row(kept)).status]).toEqual(['processing', 'completed']);
  expect((await problems()).join()).toContain('waits for a rate');
  await world.rate('100000.00');
  await bank.look();
  expect((await row(returned)).status).toBe('failed');
  await green();
});

test('a return beside one that is not ours is kept like any other: a database that was put back books it again', async () => {
  const merchantId = await shopWith(BTC);
  const id = await handedOver(bank, merchantId);
  const { trace } = await entryOf(id);
  bank.returnBeside(trace, '091000019999999');
  await bank.look();
  expect((await row(id)).status).toBe('failed');
  expect([bank.reports(), bank.kept.size]).toEqual([[], 1]);
  expect(await openBreakers(ctx.db)).toHaveLength(1);
  await clearBreakers(ctx.db, 'test', world.now());
  // what is kept is compared after a restart of PostgreSQL; what was foreign then does not stop payouts again
  await world.admin.query(`delete from comparisons where currency = 'USD'`);
  await bank.look();
  expect(await openBreakers(ctx.db)).toEqual([]);
});

test('nothing is completed that the bank has not taken from its folder', async () => {
  const merchantId = await shopWith(BTC);
  bank.state.isLeaving = true;
  const id = await handedOver(bank, merchantId);
  await world.wait(10 * DAY);
  await bank.look();
  expect([(await row(id)).status, (await entryOf(id)).state]).toEqual(['processing', 'unknown']);
  expect(bank.troubles.join()).toContain('the bank has not taken it for 5 hours');
  bank.state.isLeaving = false;
  await bank.look();
  await bank.look();
  expect((await entryOf(id)).state).toBe('acked');
  expect(bank.executed).toHaveLength(1);
  await bank.look();
  expect((await row(id)).status).toBe('processing');
});

test('payouts that are let go one by one after the end of a business day share the next file', async () => {
  const merchantId = await shopWith(BTC);
  await approvalAbove(merchantId, '0.00');
  const ids = [await requested(merchantId), await requested(merchantId), await requested(merchantId)];
  world.pass(1);
  bank.cutOff();
  world.pass(1);
  for (const id of ids) {
    await approvePayout(ctx, { payoutId: id, by: 'test' });
    await bank.look();
  }
  expect(bank.executed).toEqual([]);
  world.pass(1);
  bank.cutOff();
  await bank.look();
  expect(bank.executed).toHaveLength(1);
  expect(new Set(await Promise.all(ids.map(async (id) => (await entryOf(id)).file))).size).toBe(1);
});

test('a file that cannot be read may tell of any return: nothing is completed before somebody has looked', async () => {
  const id = await handedOver(bank, await shopWith(BTC));
  bank.say('101 nonsense');
  await world.wait(30 * DAY);
  await bank.look();
  expect((await row(id)).status).toBe('processing');
  expect(bank.troubles.join()).toContain('cannot be read');
});

test('a notice of change is recorded and moves nothing', async () => {
  const id = await handedOver(bank, await shopWith(BTC));
  bank.answer((await entryOf(id)).trace, 'C01');
  await bank.look();
  expect((await row(id)).status).toBe('processing');
  const { rows } = await world.admin.query('select notice from ach_entries where payout_id = $1', [id]);
  expect(rows).toEqual([{ notice: 'C01' }]);
  await green();
});

test.each(['a duplicate', 'a return'])(
  '%s of a file that the bank has refused stops payouts: it was executed, and its balances were given back',
  async (what) => {
    const [one, two] = [await shopWith(BTC), await shopWith(BTC)];
    const first = await requested(one);
    const second = await handedOver(bank, two);
    const { file, trace } = await entryOf(first);
    expect((await entryOf(second)).file).toBe(file);
    bank.refuse(file);
    await bank.look();
    expect([await of(one, 'available'), await of(two, 'available')]).toEqual([BTC, BTC]);
    if (what === 'a return') bank.answer(trace, 'R03');
    else bank.hadBefore(file);
    await bank.look();
    const open = await openBreakers(ctx.db);
    expect(open.map(({ trippedBy }) => trippedBy)).toEqual([['INV-20']]);
    expect(bank.troubles.join()).toContain(`bank file ${file} was refused`);
    await clearBreakers(ctx.db, 'ann', world.now());
    await bank.look();
    expect(await openBreakers(ctx.db)).toEqual([]);
  },
);

test('a refusal of a file of which an entry came back gives nothing back, and is told until it is taken away', async () => {
  const [one, two] = [await shopWith(BTC), await shopWith(BTC)];
  const first = await requested(one);
  const second = await handedOver(bank, two);
  const { file, trace } = await entryOf(first);
  bank.answer(trace, 'R03');
  await bank.look();
  bank.refuse(file);
  await bank.look();
  await world.wait(10 * DAY);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['failed', 'processing']);
  expect((await problems()).join()).toContain(`refuses file ${file}, of which it has sent an entry back`);
  for (const { id } of bank.reports()) await bank.acknowledge(id);
  await bank.look();
  expect((await row(second)).status).toBe('completed');
  await green();
});
