// Payouts to bank accounts: which balance pays, what is held and booked, and what the bank's words make of them, over a real database.
import { beforeEach, describe, expect, test } from 'vitest';
import { readNachaFile } from '../../../src/core/ach/nacha-reader.ts';
import type { CurrencyCode } from '../../../src/core/currency.ts';
import { parseRate, type Rate } from '../../../src/core/rate.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { setSettings } from '../../../src/flow/merchants/settings.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import { saveRates } from '../../../src/store/transactions/rates.ts';
import { testBank } from '../../support/bank.ts';
import { fund, owe } from '../../support/funded.ts';
import { checkedByMoov } from '../../support/moov-ach.ts';
import {
  approvalAbove,
  BTC,
  ctx,
  held,
  ledgerFindings,
  merchantsForAll,
  of,
  path,
  refusedWith,
  row,
  SCOPES,
  shopWith,
  trip,
  world,
} from '../payouts/merchants.ts';

merchantsForAll();

const ACCOUNT = 'ach:021000021:123456789';
const DAY = 86_400_000;
const request = (merchantId: bigint, amount: string, sourceCurrency: CurrencyCode | null = null, destination = ACCOUNT) =>
  requestAchPayout(ctx, { merchantId, amount, destination, sourceCurrency });
let bank: ReturnType<typeof testBank>;
beforeEach(async () => {
  bank = testBank(ctx, { dedupes: true });
  const { rows } = await world.admin.query('select name, bytes from ach_files');
  for (const { name, bytes } of rows) bank.copies.set(name, bytes);
  // what tests before this one left
  bank.cutOff();
  await bank.look();
  bank.executed.length = 0;
  world.pass(1);
});
const traceOf = async (id: string): Promise<string> =>
  (await world.admin.query('select trace from ach_entries where payout_id = $1', [id])).rows[0].trace;
const fileOf = async (id: string): Promise<string> =>
  (await world.admin.query('select file from ach_entries where payout_id = $1', [id])).rows[0].file;
/** A payout that the bank has. */
async function handedOver(amount = '100', shop?: bigint): Promise<string> {
  const { id } = await request(shop ?? (await shopWith(BTC)), amount);
  bank.cutOff();
  await bank.look();
  return id;
}
const green = async (): Promise<void> => expect(await ledgerFindings()).toEqual([]);

describe('a request', () => {
  test('converts what it takes and holds dollars; the account gets 99 %, the fee rounded up', async () => {
    const merchantId = await shopWith(BTC);
    // one bitcoin is 100,000 USD
    const made = await request(merchantId, '100.01');
    expect(made).toMatchObject({ status: 'processing', amountText: '100.01', amount: 99_00n, feeMax: 1_01n, fee: 1_01n });
    expect(made.source).toEqual({ currency: 'BTC', amount: 100_010n });
    expect(await of(merchantId, 'available')).toBe(BTC - 100_010n);
    expect(await of(merchantId, 'held', 'USD')).toBe(100_01n);
    const { rows } = await world.admin.query(
      `select a.code, p.amount from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
        where e.key = $1 order by p.line`,
      [`po:${made.id}:hold`],
    );
    expect(rows.map(({ code, amount }) => [code, amount])).toEqual([
      [`merchant:${merchantId}:available:BTC`, '100010'],
      ['fx:BTC', '-100010'],
      ['fx:USD', '10001'],
      [`merchant:${merchantId}:held:USD`, '-10001'],
    ]);
    await green();
  });

  test('takes USDT first, then BTC, then the largest, the named one alone, and never a mix', async () => {
    const merchantId = await shopWith(100_000n);
    await fund(ctx, merchantId, 1_000_000_000n, 'LTC');
    expect((await request(merchantId, '100')).source?.currency).toBe('BTC');
    // 100 of 100 USD are gone: only LTC is left
    expect((await request(merchantId, '100')).source?.currency).toBe('LTC');
    expect(await refusedWith(request(merchantId, '100', 'BTC'))).toBe('insufficient_balance');
    await fund(ctx, merchantId, 60_000n);
    await fund(ctx, merchantId, 40_000n, 'LTC');
    expect(await refusedWith(request(merchantId, '2000000'))).toBe('insufficient_balance');
    await fund(ctx, merchantId, 500_000_000n, 'USDT');
    expect(await refusedWith(request(merchantId, '100', 'USDT'))).toBe('rate_unavailable');
    const usd = parseRate('1.0001') as Rate;
    await saveRates(ctx.db, ctx.ports.seals, [{ currency: 'USDT', usd, used: [], leftOut: [] }], ctx.ports.clock.now());
    // rounded up to a millionth of a USDT
    expect((await request(merchantId, '100')).source).toEqual({ currency: 'USDT', amount: 99_990_001n });
    await green();
  });

  test('for all takes what the balance is worth, rounded down to the cent', async () => {
    const merchantId = await shopWith(123_456n);
    const made = await request(merchantId, 'all');
    expect(made).toMatchObject({ amountText: '123.45', amount: 122_21n, source: { currency: 'BTC', amount: 123_450n } });
    expect(await refusedWith(request(merchantId, 'all'))).toBe('payout_below_minimum');
    expect(await refusedWith(request(await shopWith(0n), 'all'))).toBe('insufficient_balance');
  });

  test('is refused in the order allow-list, minimum, maximum, balance, and leaves nothing', async () => {
    const poor = await shopWith(0n);
    const before = await world.admin.query('select count(*) from ledger.entry');
    expect(await refusedWith(request(poor, '99.99'))).toBe('payout_below_minimum');
    expect(await refusedWith(request(poor, '200000000'))).toBe('amount_above_maximum');
    expect(await refusedWith(request(poor, '100'))).toBe('insufficient_balance');
    await setSettings(ctx, { merchantId: poor, scopes: SCOPES, change: { payoutAllowList: ['ach:021000021:1111'] } });
    expect(await refusedWith(request(poor, '99.99'))).toBe('destination_not_allowed');
    expect((await world.admin.query('select count(*) from ledger.entry')).rows).toEqual(before.rows);
  });

  test('a hundred at once on a balance that covers exactly fifty: exactly fifty are taken', async () => {
    const merchantId = await shopWith(50n * 100_000n);
    const done = await Promise.allSettled(Array.from({ length: 100 }, () => request(merchantId, '100')));
    expect(done.filter(({ status }) => status === 'fulfilled')).toHaveLength(50);
    expect(await of(merchantId, 'available')).toBe(0n);
    await green();
  });
});

describe('what holds it back', () => {
  test('approval, a receivable, a breaker: it is in no file before, and a cancel gives back exactly what it took', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '50');
    const waits = await request(merchantId, '100');
    expect(waits).toMatchObject({ status: 'pending', heldReason: 'approval' });
    await world.rate('120000.00');
    const cancelled = await cancelPayout(ctx, { merchantId, payoutId: waits.id });
    expect(cancelled).toMatchObject({ status: 'failed', error: 'cancelled' });
    expect(await of(merchantId, 'available')).toBe(BTC);
    await world.rate('100000.00');
    const other = await request(merchantId, '100');
    bank.cutOff();
    await bank.look();
    expect(bank.executed).toEqual([]);
    await approvePayout(ctx, { payoutId: other.id, by: 'operator' });
    await owe(ctx, merchantId, 5n);
    bank.cutOff();
    await bank.look();
    expect(bank.executed).toEqual([]);
    await held();
    expect(await row(other.id)).toMatchObject({ status: 'processing', step: 'held', held_reason: 'receivable' });
    await owe(ctx, merchantId, -5n);
    await held();
    await trip();
    await bank.look();
    expect(bank.executed).toEqual([]);
    await clearBreakers(ctx.db, 'test', world.now());
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    await green();
  });

  test('a payout that no trusted API has signed waits for the operator, alone, and is tried again by itself', async () => {
    const [changed, foreign, good] = [
      await request(await shopWith(BTC), '100'),
      await request(await shopWith(BTC), '100'),
      await request(await shopWith(BTC), '100'),
    ];
    const { intent_key: key } = await row(foreign.id);
    await world.admin.query(`update payouts set destination = 'ach:021000021:666666' where id = $1`, [changed.id]);
    await world.admin.query(`update payouts set intent_key = repeat('a', 64) where id = $1`, [foreign.id]);
    bank.cutOff();
    await bank.look();
    for (const { id } of [changed, foreign])
      expect(await row(id)).toMatchObject({ status: 'pending', step: 'held', held_reason: 'approval' });
    expect(await row(good.id)).toMatchObject({ step: 'batched' });
    expect(bank.executed).toHaveLength(1);
    expect(await openBreakers(ctx.db)).toEqual([]);
    expect(bank.troubles.join()).toContain(`payout ${foreign.id} is not what an API that is trusted has signed`);
    await world.admin.query(`update payouts set destination = $2 where id = $1`, [changed.id, ACCOUNT]);
    await world.admin.query(`update payouts set intent_key = $2 where id = $1`, [foreign.id, key]);
    await world.wait(60_000);
    await world.rate('100000.00');
    await held();
    bank.cutOff();
    await bank.look();
    for (const { id } of [changed, foreign]) expect(await row(id)).toMatchObject({ step: 'batched', batch_id: null });
    await green();
  });
});

test('nothing is made, or handed over, while the signer does not say which APIs are trusted', async () => {
  const { id } = await request(await shopWith(BTC), '100');
  bank.cutOff();
  bank.state.isSignerAway = true;
  await bank.look();
  expect(await row(id)).toMatchObject({ step: 'queued' });
  expect(bank.troubles.join()).toContain('the signer does not say');
  bank.state.isSignerAway = false;
  bank.state.isDiskFull = true;
  await expect(bank.look()).rejects.toThrow('ENOSPC');
  bank.state.isDiskFull = false;
  bank.state.isSignerAway = true;
  await world.wait(60_000);
  await bank.look();
  expect(bank.executed).toEqual([]);
  bank.state.isSignerAway = false;
  await bank.look();
  expect(bank.executed).toHaveLength(1);
});

describe('a file', () => {
  test('waits for the end of a business day, has all that wait, and passes moov-io/ach', async () => {
    const merchantId = await shopWith(BTC);
    // Monday, 1 June 2026, in the morning
    await bank.look();
    const ids = [
      (await request(merchantId, '100')).id,
      (await request(merchantId, '2500.50', null, 'ach:011401533:0042:savings')).id,
    ];
    await bank.look();
    expect(bank.executed).toEqual([]);
    await world.wait(DAY);
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    const text = new TextDecoder().decode(bank.executed[0]?.bytes);
    expect(checkedByMoov('-', text)).toMatchObject({ valid: true, errors: [], creditCents: 99_00 + 2475_49 });
    const file = readNachaFile(text);
    const entries = file.entries.map(({ transactionCode, account, cents, trace }) => [transactionCode, account, cents, trace]);
    expect(entries.sort(([a], [b]) => Number(a) - Number(b))).toEqual([
      ['22', '123456789', 99_00n, await traceOf(ids[0] as string)],
      ['32', '0042', 2475_49n, await traceOf(ids[1] as string)],
    ]);
    expect(bank.copies.get(await fileOf(ids[0] as string))).toEqual(bank.executed[0]?.bytes);
    expect(await world.balance('asset:bank:USD:outbound')).toBeGreaterThanOrEqual(99_00n + 2475_49n);
    await green();
  });

  test('is completed when the second banking day after its settlement is over, and not a moment before', async () => {
    const merchantId = await shopWith(BTC);
    const id = await handedOver('100', merchantId);
    const { rows } = await world.admin.query('select returns_end from ach_files where name = $1', [await fileOf(id)]);
    await world.wait(rows[0].returns_end.getTime() - world.now() - 1);
    await bank.look();
    expect((await row(id)).status).toBe('processing');
    await world.wait(1);
    await bank.look();
    expect(await row(id)).toMatchObject({ status: 'completed', fee: '100' });
    expect(await of(merchantId, 'held', 'USD')).toBe(0n);
    expect(await path(id)).toEqual(['payout.processing', 'payout.completed']);
    await green();
  });

  test('that the bank refuses fails its payouts, and each gets back exactly what it took', async () => {
    const merchantId = await shopWith(BTC);
    bank.state.next = ['refused'];
    const id = await handedOver('100', merchantId);
    expect(await row(id)).toMatchObject({ status: 'failed', error: 'the bank refused the file: no funds' });
    expect(await of(merchantId, 'available')).toBe(BTC);
    const later = await handedOver('100', merchantId);
    bank.refuse(await fileOf(later));
    await bank.look();
    expect(await row(later)).toMatchObject({ status: 'failed' });
    expect(await of(merchantId, 'available')).toBe(BTC);
    await green();
  });
});

describe('a return', () => {
  test('waits for a rate, pays what is owed first, and is announced', async () => {
    const merchantId = await shopWith(100_000n);
    const id = await handedOver('100', merchantId);
    await owe(ctx, merchantId, 30_000n, 'BTC');
    bank.answer(await traceOf(id), 'R03');
    await world.admin.query("update rates set at = at - interval '1 hour'");
    await bank.look();
    expect((await row(id)).status).toBe('processing');
    await world.rate('50000.00');
    await bank.look();
    expect(await row(id)).toMatchObject({ status: 'failed', error: 'R03', given_back: '200000' });
    expect(await of(merchantId, 'available')).toBe(170_000n);
    expect(await path(id)).toEqual(['payout.processing', 'payout.failed', 'payout.returned']);
    expect(bank.reports()).toEqual([]);
    await world.rate('100000.00');
    await green();
  });

  test('of something that is not ours, or of another amount, stops payouts', async () => {
    const id = await handedOver();
    bank.answer(await traceOf(id), 'R03', 1n);
    await bank.look();
    expect((await row(id)).status).toBe('processing');
    expect(bank.troubles.join()).toContain('which is not what was paid');
    await clearBreakers(ctx.db, 'test', world.now());
  });
});
