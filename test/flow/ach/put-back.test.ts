// Everything of ours put back together, the list of what the bank was given included: nobody can tell what a forgotten file has paid, so a person
// does.
import { beforeEach, describe, expect, test } from 'vitest';
import { achReference } from '../../../src/core/ach/own-file.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { openBreakers } from '../../../src/store/ledger/breakers.ts';
import { returnOf, testBank } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, refusedWith, row, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: ReturnType<typeof testBank>;
beforeEach(() => {
  bank = testBank(ctx, { dedupes: false });
});

async function requested(): Promise<{ readonly id: string; readonly merchantId: bigint }> {
  const merchantId = await shopWith(BTC);
  const asked = { merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  return { id: (await requestAchPayout(ctx, asked)).id, merchantId };
}
/** A payout that is in no file here, and that a person has found paid. */
async function foundPaid(): ReturnType<typeof requested> {
  const paid = await requested();
  await putBack();
  await world.wait(4 * DAY);
  await bank.look();
  await resolvePayout(ctx, { payoutId: paid.id, outcome: 'paid', evidence: 'statement' });
  return paid;
}
/** What is stored is of before PostgreSQL was started. */
const putBack = () => world.admin.query(`update comparisons set checked_at = '2020-01-01' where currency = 'USD'`);
const fileOf = async (id: string) =>
  (
    await world.admin.query(
      'select f.name, f.state from ach_entries e join ach_files f on f.name = e.file where payout_id = $1',
      [id],
    )
  ).rows[0];

describe('where the list of files may have been put back too', () => {
  beforeEach(async () => {
    bank.state.isWitness = false;
    await bank.look();
  });

  test('payouts that a forgotten file may have paid wait for a person, who decides with evidence; later ones go on', async () => {
    const [paid, unpaid] = [await requested(), await requested()];
    await putBack();
    await world.wait(4 * DAY);
    await bank.look();
    for (const { id } of [paid, unpaid])
      expect(await row(id)).toMatchObject({ status: 'processing', step: 'held', held_reason: 'unknown_outcome' });
    expect(bank.troubles.join()).toContain(`may have been paid by a bank file`);
    expect(bank.executed).toEqual([]);
    const before = await of(unpaid.merchantId, 'available');
    expect(await resolvePayout(ctx, { payoutId: paid.id, outcome: 'paid', evidence: 'statement' })).toMatchObject({
      status: 'completed',
    });
    expect(await resolvePayout(ctx, { payoutId: unpaid.id, outcome: 'failed', evidence: 'no entry' })).toMatchObject({
      status: 'failed',
      error: 'no entry',
    });
    expect(await of(unpaid.merchantId, 'available')).toBe(BTC);
    expect(before).toBeLessThan(BTC);
    expect(await of(paid.merchantId, 'held', 'USD')).toBe(0n);
    const later = await requested();
    await world.wait(4 * DAY);
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    expect((await fileOf(later.id)).state).toBe('acked');
    expect(await ledgerFindings()).toEqual([]);
  });

  test('a look that could compare nothing is none: they wait for a person all the same', async () => {
    const { id, merchantId } = await requested();
    await putBack();
    await world.wait(4 * DAY);
    bank.state.isSilent = true;
    await bank.look();
    bank.state.isSilent = false;
    await bank.look();
    expect(await row(id)).toMatchObject({ status: 'processing', step: 'held', held_reason: 'unknown_outcome' });
    expect(await refusedWith(cancelPayout(ctx, { merchantId, payoutId: id }))).toBe('payout_not_cancellable');
    expect(bank.executed).toEqual([]);
  });

  test('neither is one of a clock that was fast', async () => {
    const { id } = await requested();
    await world.admin.query(`update bank_reads set begun_at = begun_at + interval '30 days'`);
    await putBack();
    await world.wait(4 * DAY);
    await bank.look();
    expect(await row(id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
    expect((await world.admin.query('select begun_at from bank_reads')).rows[0].begun_at.getTime()).toBe(world.now());
  });

  test('nothing waits when no banking day has ended since the last look: no file can have been made', async () => {
    const { id } = await requested();
    await putBack();
    await bank.look();
    expect(await row(id)).toMatchObject({ step: 'queued' });
    await world.wait(4 * DAY);
    await bank.look();
    expect((await fileOf(id)).state).toBe('acked');
  });

  test('one that was found paid and comes back is failed, whatever payout its trace number was given to since', async () => {
    const paid = await foundPaid();
    const later = await requested();
    await world.wait(4 * DAY);
    await bank.look();
    const { rows } = await world.admin.query('select trace from ach_entries where payout_id = $1', [later.id]);
    const content = returnOf(rows[0].trace, achReference(paid.id));
    for (let n = 0; n < 2; n++) {
      bank.say(content);
      await bank.look();
    }
    expect(await row(paid.id)).toMatchObject({ status: 'failed', error: 'R03' });
    expect(await of(paid.merchantId, 'available')).toBe(BTC);
    expect((await row(later.id)).status).toBe('processing');
    expect(await openBreakers(ctx.db)).toEqual([]);
    expect(await ledgerFindings()).toEqual([]);
  });

  test('so too while the file that its trace number was given to still lies where the bank takes it from', async () => {
    const paid = await foundPaid();
    const later = await requested();
    await world.wait(4 * DAY);
    bank.state.isLeaving = true;
    await bank.look();
    expect((await fileOf(later.id)).state).toBe('unknown');
    const { rows } = await world.admin.query('select trace from ach_entries where payout_id = $1', [later.id]);
    bank.say(returnOf(rows[0].trace, achReference(paid.id)));
    await bank.look();
    expect(await row(paid.id)).toMatchObject({ status: 'failed', error: 'R03' });
    expect([(await row(later.id)).status, bank.reports()]).toEqual(['processing', []]);
    expect(await openBreakers(ctx.db)).toEqual([]);
    expect(await ledgerFindings()).toEqual([]);
  });

  test('a return of somebody else whose name is only how the id of one that was found paid ends gives nothing back', async () => {
    const { id, merchantId } = await requested();
    await putBack();
    await world.wait(4 * DAY);
    await bank.look();
    await resolvePayout(ctx, { payoutId: id, outcome: 'paid', evidence: 'statement' });
    const before = await of(merchantId, 'available');
    for (const length of [1, 14]) bank.say(returnOf('091000019999999', achReference(id).slice(-length)));
    await bank.look();
    expect(await row(id)).toMatchObject({ status: 'completed' });
    expect(await of(merchantId, 'available')).toBe(before);
    expect(await openBreakers(ctx.db)).toHaveLength(1);
  });
});
