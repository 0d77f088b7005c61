// The protocol between us and a bank, as it was model-checked (AchPayout): each guard, by the name that it has there, is held by a test in which
// money would be lost or doubled without it. And the invariants that would show it.

import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, test } from 'vitest';
import { writeNachaFile } from '../../../src/core/ach/nacha-file.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { SANDBOX_BANK } from '../../../src/sandbox/bank/bank.ts';
import { clearBreakers } from '../../../src/store/ledger/breakers.ts';
import { testBank } from '../../support/bank.ts';
import {
  approvalAbove,
  BTC,
  ctx,
  ledgerFindings,
  merchantsForAll,
  refusedWith,
  row,
  shopWith,
  world,
} from '../payouts/merchants.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: ReturnType<typeof testBank>;

async function open(dedupes: boolean): Promise<void> {
  bank = testBank(ctx, { dedupes });
  const { rows } = await world.admin.query('select name, bytes from ach_files');
  for (const { name, bytes } of rows) bank.copies.set(name, bytes);
}
beforeEach(() => open(false));

/** A payout that waits for the end of a business day, which is now. */
async function requested(): Promise<string> {
  const merchantId = await shopWith(BTC);
  const asked = { merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  const { id } = await requestAchPayout(ctx, asked);
  bank.cutOff();
  return id;
}
const entryOf = async (id: string): Promise<{ trace: string; state: string; name: string }> =>
  (
    await world.admin.query(
      'select e.trace, f.state, f.name from ach_entries e join ach_files f on f.name = e.file where e.payout_id = $1',
      [id],
    )
  ).rows[0];
const times = (name: string): number => bank.executed.filter((file) => file.name === name).length;
const overs = async (): Promise<void> => {
  await world.wait(30 * DAY);
  await bank.look();
};

describe('AchPayout', () => {
  test('no_second_upload: a hand-over of unknown outcome is not repeated until the bank has said that it has no such file', async () => {
    const id = await requested();
    bank.state.next = ['lost_answer'];
    bank.state.onHandOver = async () => {
      bank.state.isSilent = true;
    };
    await bank.look();
    const { name } = await entryOf(id);
    expect(await entryOf(id)).toMatchObject({ state: 'unknown' });
    for (let n = 0; n < 3; n++) {
      await world.wait(DAY);
      await bank.look();
    }
    expect(times(name)).toBe(1);
    bank.state.isSilent = false;
    await bank.look();
    expect(await entryOf(id)).toMatchObject({ state: 'acked' });
    await overs();
    expect(times(name)).toBe(1);
    expect((await row(id)).status).toBe('completed');
  });

  test('no_second_upload: when the bank has none, the same bytes are handed over again', async () => {
    const id = await requested();
    bank.state.next = ['lost_request'];
    await bank.look();
    expect(await entryOf(id)).toMatchObject({ state: 'unknown' });
    expect(bank.executed).toEqual([]);
    await bank.look();
    const { name } = await entryOf(id);
    expect(times(name)).toBe(1);
    expect(bank.executed[0]?.bytes).toEqual(bank.copies.get(name));
  });

  test('no_second_upload: a worker that died in a hand-over is followed by one that asks first', async () => {
    const id = await requested();
    let handedOver = 0;
    bank.state.onHandOver = async () => {
      handedOver += 1;
      throw new Error('killed');
    };
    await expect(bank.look()).rejects.toThrow('killed');
    await bank.look();
    // its lease is still on
    expect([handedOver, (await entryOf(id)).state]).toEqual([1, 'uploading']);
    bank.state.onHandOver = async () => undefined;
    await world.wait(60_000);
    await bank.look();
    expect(await entryOf(id)).toMatchObject({ state: 'acked' });
    expect(times((await entryOf(id)).name)).toBe(1);
  });

  test('a lease of a worker whose clock was two days fast is over when the clock is right again', async () => {
    const id = await requested();
    bank.state.onHandOver = async () => {
      throw new Error('killed');
    };
    await expect(bank.look()).rejects.toThrow('killed');
    const { name } = await entryOf(id);
    await world.admin.query(`update ach_files set lease_until = lease_until + interval '2 days' where name = $1`, [name]);
    bank.state.onHandOver = async () => undefined;
    await bank.look();
    expect(await entryOf(id)).toMatchObject({ state: 'acked' });
    expect(times(name)).toBe(1);
  });

  test('duplicate_is_accepted: a bank that has had the file says duplicate, and nothing is given back', async () => {
    await open(true);
    const id = await requested();
    bank.state.next = ['lost_request'];
    bank.state.isSilent = false;
    let late: Parameters<typeof bank.state.onHandOver>[0] | null = null;
    bank.state.onHandOver = async (file) => {
      late ??= file;
    };
    await bank.look();
    // our first hand-over was on its way for long, and lands right after the bank said that it has none
    bank.state.landsLate = late;
    await bank.look();
    expect(await entryOf(id)).toMatchObject({ state: 'acked' });
    expect((await row(id)).status).toBe('processing');
    expect(times((await entryOf(id)).name)).toBe(1);
  });

  test('timeout_is_unknown: a bank that never answers fails nothing', async () => {
    const id = await requested();
    bank.state.next = ['lost_answer'];
    bank.state.onHandOver = async () => {
      bank.state.isSilent = true;
    };
    await bank.look();
    await overs();
    expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched', error: null });
    expect(bank.troubles.join()).toContain('cannot be asked');
  });

  test('return_once: the same return in two reports, before or after it was completed, is booked once', async () => {
    for (const isCompleted of [false, true]) {
      const id = await requested();
      await bank.look();
      if (isCompleted) await overs();
      const { trace } = await entryOf(id);
      for (const code of ['R03', 'R03']) bank.answer(trace, code);
      await bank.look();
      bank.answer(trace, 'R02');
      await bank.look();
      expect(await row(id)).toMatchObject({ status: 'failed', error: 'R03', given_back: '100000' });
      const { rows } = await world.admin.query(`select key from ledger.entry where payout_id = $1 and key like '%:return'`, [id]);
      expect(rows).toHaveLength(1);
    }
    expect(await ledgerFindings()).toEqual([]);
  });

  test('file_first: nothing is handed over that is not stored, here and in our folder', async () => {
    const id = await requested();
    bank.state.isDiskFull = true;
    await expect(bank.look()).rejects.toThrow('ENOSPC');
    expect(bank.executed).toEqual([]);
    bank.state.isDiskFull = false;
    const seen: unknown[] = [];
    bank.state.onHandOver = async (file) => {
      const { rows } = await world.admin.query('select bytes from ach_files where name = $1', [file.name]);
      seen.push([rows[0].bytes.equals(file.bytes), bank.copies.has(file.name), (await row(id)).step]);
    };
    await world.wait(60_000);
    await bank.look();
    expect(seen).toEqual([[true, true, 'batched']]);
  });
});

describe('a database that was put back', () => {
  test('does not know what a file of our folder pays: payouts stop by its name, and nothing is handed over or cancelled', async () => {
    const id = await requested();
    const merchantId = BigInt((await row(id)).merchant_id as string);
    bank.copies.set('2026-05-30-Z', new Uint8Array([1]));
    await world.admin.query(`update comparisons set checked_at = '2020-01-01' where currency = 'USD'`);
    await bank.look();
    expect(bank.executed).toEqual([]);
    const { rows } = await world.admin.query('select tripped_by, findings from breakers where cleared_at is null');
    expect(rows).toEqual([{ tripped_by: ['INV-20'], findings: [expect.stringContaining('2026-05-30-Z')] }]);
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId: id }))).toBe('payout_not_cancellable');
    // a person has asked the bank, and moved it away
    bank.copies.delete('2026-05-30-Z');
    await clearBreakers(ctx.db, 'test', world.now());
    await bank.look();
    expect(bank.executed).toHaveLength(1);
  });

  test('cancels nothing before our folder was compared', async () => {
    const merchantId = await shopWith(BTC);
    await approvalAbove(merchantId, '50');
    const asked = { merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
    const { id: payoutId } = await requestAchPayout(ctx, asked);
    await world.admin.query(`update comparisons set checked_at = '2020-01-01' where currency = 'USD'`);
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId }))).toBe('payout_not_cancellable');
    await bank.look();
    expect((await cancelPayout(ctx, { merchantId, payoutId })).error).toBe('cancelled');
  });

  test('gets back a file that was made for payouts which it still holds back, and asks the bank for it', async () => {
    const merchantId = await shopWith(BTC);
    const asked = { merchantId, amount: '100', destination: 'ach:021000021:4711:savings', sourceCurrency: null };
    await approvalAbove(merchantId, '50');
    const { id, amount } = await requestAchPayout(ctx, asked);
    // as the file was made that this copy does not know
    const text = writeNachaFile({
      origin: SANDBOX_BANK,
      date: '2026-05-31',
      time: '2000',
      modifier: 'Y',
      entryClass: 'CCD',
      description: 'PAYOUT',
      effective: '2026-06-01',
      entries: [
        {
          transactionCode: 32,
          routing: '021000021',
          account: '4711',
          cents: amount,
          id: id.slice(-15),
          name: 'SHOP',
          trace: '091000010005000',
        },
      ],
    });
    const bytes = new TextEncoder().encode(text);
    bank.copies.set('2026-05-31-Y', bytes);
    bank.executed.push({ name: '2026-05-31-Y', bytes, sha256: createHash('sha256').update(bytes).digest() });
    await bank.look();
    expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched' });
    expect(await entryOf(id)).toEqual({ trace: '091000010005000', state: 'acked', name: '2026-05-31-Y' });
    expect(times('2026-05-31-Y')).toBe(1);
    await bank.look();
    const next = await requested();
    await bank.look();
    expect(Number((await entryOf(next)).trace)).toBeGreaterThan(91_000_010_005_000);
    expect(await ledgerFindings()).toEqual([]);
  });
});
