// Database and our folder put back together: what the bank has of us tells what was forgotten, and where nobody can tell, a person does.
import { beforeEach, describe, expect, test } from 'vitest';
import { readNachaFile } from '../../../src/core/ach/nacha-reader.ts';
import { recoverAchFile } from '../../../src/flow/ach/restored-files.ts';
import { approvePayout, cancelPayout } from '../../../src/flow/payouts/cancel-and-approve.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { clearBreakers } from '../../../src/store/ledger/breakers.ts';
import { testBank } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, refusedWith, row, world } from '../payouts/merchants.ts';
import { balanceOf, forgottenFile, putBack, requested } from './forgotten-files.ts';

merchantsForAll();

const DAY = 86_400_000;
let bank: ReturnType<typeof testBank>;
beforeEach(() => {
  bank = testBank(ctx, { dedupes: false });
});

const fileOf = async (id: string) =>
  (
    await world.admin.query(
      'select f.name, f.state from ach_entries e join ach_files f on f.name = e.file where payout_id = $1',
      [id],
    )
  ).rows[0];

describe('a file of which only the bank knows', () => {
  test('is written back, and its payout is not paid by another one', async () => {
    await bank.look();
    const payout = await requested();
    const name = forgottenFile(bank, [payout]);
    await putBack();
    bank.cutOff();
    await bank.look();
    expect(await fileOf(payout.id)).toEqual({ name, state: 'acked' });
    expect(await row(payout.id)).toMatchObject({ status: 'processing', step: 'batched' });
    await world.wait(30 * DAY);
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    expect((await row(payout.id)).status).toBe('completed');
    expect(await ledgerFindings()).toEqual([]);
  });

  test('holds back every payment and every cancel until the bank can be asked', async () => {
    await bank.look();
    const payout = await requested('50');
    forgottenFile(bank, [payout]);
    await putBack();
    bank.cutOff();
    bank.state.isSilent = true;
    await bank.look();
    expect(await row(payout.id)).toMatchObject({ step: 'held' });
    expect(bank.troubles.join()).toContain('the bank cannot be asked which files it has');
    const cancel = { merchantId: payout.merchantId, payoutId: payout.id };
    expect(await refusedWith(cancelPayout(ctx, cancel))).toBe('payout_not_cancellable');
    bank.state.isSilent = false;
    await bank.look();
    expect((await fileOf(payout.id)).state).toBe('acked');
  });

  test('or our folder, and that the bank never got, waits for an approval that was forgotten, and goes when it is given again', async () => {
    await bank.look();
    const payout = await requested('50');
    const name = forgottenFile(bank, [payout]);
    bank.copies.set(name, bank.executed.pop()?.bytes as Uint8Array);
    await putBack();
    await bank.look();
    await bank.look();
    expect(bank.troubles.join()).toContain(`payout ${payout.id} is not what an API that is trusted has signed`);
    expect([(await fileOf(payout.id)).state, (await row(payout.id)).status]).toEqual(['built', 'processing']);
    await approvePayout(ctx, { payoutId: payout.id, by: 'ann' });
    await bank.look();
    expect([(await fileOf(payout.id)).state, bank.executed.length]).toEqual(['acked', 1]);
    const { approved_at: at, status } = await row(payout.id);
    await approvePayout(ctx, { payoutId: payout.id, by: 'bob' });
    expect(await row(payout.id)).toMatchObject({ approved_at: at, approved_by: 'ann', status });
  });

  test('and that pays somebody unknown stops payouts, until it is booked: what it paid to him is a loss', async () => {
    await bank.look();
    const payout = await requested();
    const name = forgottenFile(bank, [payout, { id: 'payout_nobody000000000', cents: 7_000n }]);
    await putBack();
    bank.cutOff();
    await bank.look();
    await bank.look();
    const { rows } = await world.admin.query('select tripped_by from breakers where cleared_at is null');
    expect(rows).toEqual([{ tripped_by: ['INV-20'] }]);
    expect((await ledgerFindings()).join()).toContain(`OUT-3: USD: bank file ${name} pays what this database does not know`);
    const bytes = bank.executed[0]?.bytes as Uint8Array;
    const recover = (acceptsLoss: boolean) => recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss });
    await expect(recover(false)).rejects.toMatchObject({ code: 'not_resolvable', message: expect.stringContaining('70.00 USD') });
    expect(await recover(true)).toEqual({ payoutIds: [payout.id], lost: 7_000n, alike: [] });
    await clearBreakers(ctx.db, 'ann', world.now());
    await bank.look();
    expect(await fileOf(payout.id)).toEqual({ name, state: 'acked' });
    expect(await ledgerFindings()).toEqual([]);
    expect(bank.executed).toHaveLength(1);
  });
});

test('a file that pays a payout which an operator had found paid by hand is booked once', async () => {
  await bank.look();
  const payout = await requested();
  await world.admin.query(`update payouts set step = 'held', held_reason = 'unknown_outcome' where id = $1`, [payout.id]);
  const before = await balanceOf('asset:bank:USD');
  await resolvePayout(ctx, { payoutId: payout.id, outcome: 'paid', evidence: 'the bank says so' });
  const name = forgottenFile(bank, [payout]);
  const bytes = bank.executed.at(-1)?.bytes as Uint8Array;
  await putBack();
  await bank.look();
  expect(await recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss: false })).toEqual({
    ...{ payoutIds: [payout.id], lost: 0n, alike: [] },
  });
  await clearBreakers(ctx.db, 'ann', world.now());
  await bank.look();
  expect(await balanceOf('asset:bank:USD')).toBe(before - payout.cents);
  expect(await row(payout.id)).toMatchObject({ status: 'completed' });
  expect(await ledgerFindings()).toEqual([]);
});

describe('a file of our folder that pays a payout of this database and one that it has forgotten', () => {
  /** As a dump that is older than the second of its payouts shows it. */
  async function halfKnown() {
    await bank.look();
    const payout = await requested();
    const name = forgottenFile(bank, [payout, { id: 'payout_nobody000000000', cents: 7_000n }]);
    const bytes = bank.executed[0]?.bytes as Uint8Array;
    bank.copies.set(name, bytes);
    bank.cutOff();
    await bank.look();
    return { payout, name, bytes };
  }

  test('pays the known one for good, also when it was moved away and payouts go on: nothing is paid twice', async () => {
    const { payout, name, bytes } = await halfKnown();
    expect(await fileOf(payout.id)).toEqual({ name, state: 'unknown' });
    expect(await row(payout.id)).toMatchObject({ status: 'processing', step: 'batched' });
    bank.copies.clear();
    await clearBreakers(ctx.db, 'ann', world.now());
    bank.cutOff();
    await bank.look();
    await bank.look();
    expect(bank.executed).toHaveLength(1);
    expect((await ledgerFindings()).join()).toContain(`OUT-3: USD: bank file ${name} pays what this database does not know`);
    expect(await recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss: true })).toEqual({
      payoutIds: [payout.id],
      lost: 7_000n,
      alike: [],
    });
    await clearBreakers(ctx.db, 'ann', world.now());
    const next = await requested(null, { account: '987654321' });
    bank.cutOff();
    await bank.look();
    expect(bank.executed).toHaveLength(2);
    const traces = bank.executed.flatMap((file) => readNachaFile(new TextDecoder().decode(file.bytes)).entries);
    expect(new Set(traces.map(({ trace }) => trace)).size).toBe(3);
    expect((await fileOf(next.id)).name).not.toBe(name);
    expect(await ledgerFindings()).toEqual([]);
  });

  test('and that the bank refuses after its loss was accepted has lost nothing', async () => {
    const { payout, name, bytes } = await halfKnown();
    await recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss: true });
    await clearBreakers(ctx.db, 'ann', world.now());
    bank.refuse(name);
    await bank.look();
    expect(await row(payout.id)).toMatchObject({ status: 'failed' });
    expect(await of(payout.merchantId, 'available')).toBe(BTC);
    expect(await ledgerFindings()).toEqual([]);
  });
});

test('a file in our folder that is none stops payouts until it is taken away, and is then closed without a restart', async () => {
  await bank.look();
  bank.copies.set('2026-06-09-Z', Buffer.from('half a fi'));
  await bank.look();
  expect((await ledgerFindings()).join()).toContain('OUT-3: USD: bank file 2026-06-09-Z pays what this database does not know');
  bank.copies.delete('2026-06-09-Z');
  await bank.look();
  expect(await ledgerFindings()).toEqual([]);
  await clearBreakers(ctx.db, 'ann', world.now());
  const { id } = await requested(null, { account: '987654321' });
  bank.cutOff();
  await bank.look();
  expect((await fileOf(id)).state).toBe('acked');
});
