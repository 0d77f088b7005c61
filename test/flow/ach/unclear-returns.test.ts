// A return of which nobody can say which payout came back, or how much of it: its number and the name in it are of two payouts, or its amount is another one.
// Nothing of it is booked, and nothing is completed, before somebody has asked the bank.
import { beforeEach, describe, expect, test } from 'vitest';
import type { BankReport } from '../../../src/core/ach/bank-port.ts';
import { achReference } from '../../../src/core/ach/own-file.ts';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import { isComparedSince } from '../../../src/store/payouts/comparisons.ts';
import { returnOf } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, row, shopWith, world } from '../payouts/merchants.ts';
import { entryOf, handedOver, newBank } from './new-bank.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: Awaited<ReturnType<typeof newBank>>;
beforeEach(async () => {
  bank = await newBank();
});
const green = async (): Promise<void> => expect(await ledgerFindings()).toEqual([]);
const problems = async (): Promise<readonly string[]> => (await readReadiness(ctx, [])).problems;

test('a return that has the trace number of one payout and names another one gives back neither, and stops payouts', async () => {
  const merchantId = await shopWith(BTC);
  const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
  const [{ trace }, other] = [await entryOf(first), await entryOf(second)];
  bank.answer(trace, 'R03');
  const [report] = bank.reports();
  const { id, content } = report as Extract<BankReport, { readonly kind: 'nacha' }>;
  await bank.acknowledge(id);
  bank.say(content.replace(`799R03${trace}`, `799R03${other.trace}`));
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['processing', 'processing']);
  expect((await openBreakers(ctx.db))[0]?.findings.join()).toContain(
    `trace number ${other.trace} and names ${achReference(first)}`,
  );
  // nor is one of them completed while the bank is asked
  await world.wait(10 * DAY);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['processing', 'processing']);
  expect((await problems()).join()).toContain(`returns trace number ${other.trace} with another name or amount than was paid`);
  for (const waiting of bank.reports()) await bank.acknowledge(waiting.id);
  await clearBreakers(ctx.db, 'test', world.now());
  // the bank says it again, and rightly
  bank.say(content);
  await bank.look();
  expect([(await row(first)).status, (await row(second)).status]).toEqual(['failed', 'completed']);
  expect(await openBreakers(ctx.db)).toEqual([]);
  await green();
});

test.each([
  ['with another amount', 'amount'],
  ['with a number of nobody', 'number'],
] as const)('a return that names a payout %s completes nothing either, until it is taken away', async (_, wrong) => {
  const id = await handedOver(bank, await shopWith(BTC));
  const { trace } = await entryOf(id);
  bank.answer(trace, 'R03', ...(wrong === 'amount' ? [1n] : []));
  if (wrong === 'number') {
    const [{ id: right, content }] = bank.reports() as [Extract<BankReport, { readonly kind: 'nacha' }>];
    await bank.acknowledge(right);
    bank.say(content.replace(`799R03${trace}`, `799R03${trace.slice(0, 8)}9999999`));
  }
  await bank.look();
  await world.wait(10 * DAY);
  await bank.look();
  expect((await row(id)).status).toBe('processing');
  expect((await openBreakers(ctx.db)).flatMap(({ trippedBy }) => trippedBy)).toEqual(['INV-20']);
  for (const waiting of bank.reports()) await bank.acknowledge(waiting.id);
  await clearBreakers(ctx.db, 'test', world.now());
  await bank.look();
  expect((await row(id)).status).toBe('completed');
  await green();
});

describe('what else stands in a report with such a return', () => {
  /** The bank sends both back in one report, the second one with a number of nobody; the codes are those of the first and the second. */
  function saidTogether(first: string, second: string, codes: readonly [string, string] = ['R03', 'R03']): string {
    bank.answerTogether([
      { trace: first, code: codes[0] },
      { trace: second, code: codes[1] },
    ]);
    const [{ content }] = bank.reports() as [Extract<BankReport, { readonly kind: 'nacha' }>];
    return content;
  }
  const withNumberOfNobody = (content: string, trace: string): string =>
    content.replace(new RegExp(`799(R..)${trace}`), `799$1${trace.slice(0, 8)}9999999`);
  /** PostgreSQL was started again: what is kept is compared, and then what waits is handed over. */
  async function restarted(): Promise<void> {
    await world.admin.query(`delete from comparisons where currency = 'USD'`);
    const next = await handedOver(bank, await shopWith(BTC));
    expect((await entryOf(next)).state).toBe('acked');
  }
  async function insteadOfAll(content: string): Promise<void> {
    for (const { id } of bank.reports()) await bank.acknowledge(id);
    bank.say(content);
  }

  test('is booked and kept: a database that is put back learns of it, also when the report was taken away', async () => {
    const merchantId = await shopWith(BTC);
    const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
    const [one, two] = [await entryOf(first), await entryOf(second)];
    await insteadOfAll(withNumberOfNobody(saidTogether(one.trace, two.trace), two.trace));
    await bank.look();
    expect([(await row(first)).status, (await row(second)).status]).toEqual(['failed', 'processing']);
    const [said] = bank.reports();
    await insteadOfAll(returnOf(two.trace, achReference(second)));
    await clearBreakers(ctx.db, 'test', world.now());
    await bank.look();
    expect((await row(second)).status).toBe('failed');
    expect([...bank.kept.values()].map(({ id }) => id)).toContain(said?.id);
    await restarted();
    expect(await openBreakers(ctx.db)).toEqual([]);
    await green();
  });

  test('is all that a copy books: what a person was asked about comes back by none, whatever is decided by hand since', async () => {
    const merchantId = await shopWith(BTC);
    const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
    const [one, two] = [await entryOf(first), await entryOf(second)];
    await insteadOfAll(withNumberOfNobody(saidTogether(one.trace, two.trace), two.trace));
    await bank.look();
    for (const { id } of bank.reports()) await bank.acknowledge(id);
    await clearBreakers(ctx.db, 'test', world.now());
    await world.wait(10 * DAY);
    await bank.look();
    await world.admin.query('update payouts set resolved = true where id = $1', [second]);
    await restarted();
    expect([(await row(first)).status, (await row(second)).status]).toEqual(['failed', 'completed']);
  });

  test('is booked by a copy, though it has the number and the name of what a person was asked about', async () => {
    const id = await handedOver(bank, await shopWith(BTC));
    const { trace } = await entryOf(id);
    // one of them has another amount than was paid
    bank.answerTo({ trace, cents: 1n, code: 'R03' });
    bank.answer(trace, 'R03');
    const [wrong, right] = bank.reports() as Extract<BankReport, { readonly kind: 'nacha' }>[];
    await bank.acknowledge(right?.id ?? '');
    const leftOut = async (): Promise<readonly string[]> => {
      await bank.look();
      return [...bank.kept.values()].flatMap((copy) => (copy.kind === 'nacha' ? (copy.leftOut ?? []) : []));
    };
    const [named = ''] = await leftOut();
    expect(named).not.toBe('');
    expect((await row(id)).status).toBe('processing');
    // what a database that was put back finds: the copy of one report that has both
    for (const waiting of bank.reports()) await bank.acknowledge(waiting.id);
    await clearBreakers(ctx.db, 'test', world.now());
    bank.kept.clear();
    bank.kept.set('both', { id: 'both', kind: 'nacha', content: right?.content ?? '', leftOut: [named] });
    await restarted();
    expect([wrong?.content === right?.content, (await row(id)).status]).toEqual([false, 'failed']);
  });

  test('waits for its rate, and keeps payouts of nobody else, though PostgreSQL is started again', async () => {
    const merchantId = await shopWith(BTC);
    const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
    const [one, two] = [await entryOf(first), await entryOf(second)];
    await insteadOfAll(withNumberOfNobody(saidTogether(one.trace, two.trace), two.trace));
    await world.admin.query("update rates set at = at - interval '1 hour'");
    await bank.look();
    expect((await problems()).join()).toContain('waits for a rate');
    await world.admin.query(`delete from comparisons where currency = 'USD'`);
    await bank.look();
    expect(await isComparedSince(ctx.db, 'USD')).toBe(true);
    // and is booked by the report itself
    await world.rate('100000.00');
    await bank.look();
    expect((await row(first)).status).toBe('failed');
    for (const { id } of bank.reports()) await bank.acknowledge(id);
    await clearBreakers(ctx.db, 'test', world.now());
    await restarted();
  });

  test('holds up payouts by ach where a database that was put back has no rate for it, and that is told, with how it ends', async () => {
    const id = await handedOver(bank, await shopWith(BTC));
    bank.answer((await entryOf(id)).trace, 'R03');
    const [report] = bank.reports() as [BankReport];
    await bank.acknowledge(report.id);
    bank.kept.set('before', report);
    await world.admin.query("update rates set at = at - interval '1 hour'");
    await world.admin.query(`delete from comparisons where currency = 'USD'`);
    bank.troubles.length = 0;
    await bank.look();
    expect([await isComparedSince(ctx.db, 'USD'), bank.troubles]).toEqual([
      false,
      [expect.stringMatching(/^all payouts by ach wait: .* waits for a rate \(trace number \d+\)/)],
    ]);
    expect((await problems()).join()).toContain(bank.troubles[0]);
    await world.rate('100000.00');
    await restarted();
    expect((await row(id)).status).toBe('failed');
    expect((await problems()).join()).not.toContain('all payouts by ach wait');
  });

  test('waits for its rate, and is told, before the report may be taken away', async () => {
    const merchantId = await shopWith(BTC);
    const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
    const [one, two] = [await entryOf(first), await entryOf(second)];
    await insteadOfAll(withNumberOfNobody(saidTogether(one.trace, two.trace), two.trace));
    await world.admin.query("update rates set at = at - interval '1 hour'");
    await bank.look();
    expect((await problems()).join()).toContain(`waits for a rate (trace number ${one.trace})`);
    expect((await problems()).join()).toContain('with another name or amount than was paid');
    await world.rate('100000.00');
    await bank.look();
    expect((await row(first)).status).toBe('failed');
    expect((await problems()).join()).not.toContain('waits for a rate');
    expect((await problems()).join()).toContain('with another name or amount than was paid');
    for (const { id } of bank.reports()) await bank.acknowledge(id);
    await clearBreakers(ctx.db, 'test', world.now());
  });

  test('may be a dispute, which is told too', async () => {
    const merchantId = await shopWith(BTC);
    const [first, second] = [await handedOver(bank, merchantId), await handedOver(bank, merchantId)];
    const [one, two] = [await entryOf(first), await entryOf(second)];
    await insteadOfAll(withNumberOfNobody(saidTogether(one.trace, two.trace, ['R61', 'R03']), two.trace));
    await bank.look();
    expect((await problems()).join()).toContain(`a return is disputed (trace number ${one.trace}, R61)`);
    expect((await problems()).join()).toContain('with another name or amount than was paid');
    for (const { id } of bank.reports()) await bank.acknowledge(id);
    await clearBreakers(ctx.db, 'test', world.now());
    await restarted();
  });
});
