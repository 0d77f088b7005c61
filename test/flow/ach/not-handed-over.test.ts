// A bank file that is made and not handed over yet when a forgotten file to an account of it is booked: it does not go out, for its payout may be the one
// that the forgotten file has paid.
import { beforeEach, expect, test } from 'vitest';
import { recoverAchFile } from '../../../src/flow/ach/restored-files.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { clearBreakers } from '../../../src/store/ledger/breakers.ts';
import { testBank } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, row, world } from '../payouts/merchants.ts';
import { forgottenFile, putBack, requested } from './forgotten-files.ts';

merchantsForAll();
let bank: ReturnType<typeof testBank>;
const CENTS = 9_900n;
let account = 700_000_000;
beforeEach(async () => {
  bank = testBank(ctx, { dedupes: false });
  await bank.look();
  account += 1;
});

const HOW = ['no hand-over was begun', 'its first hand-over was lost'] as const;
/** A file with a payout to the account, and one of another merchant to another account, which the bank does not have. */
async function made(how: (typeof HOW)[number]) {
  const payout = await requested(null, { account: String(account) });
  const other = await requested(null, { account: '123456780' });
  bank.cutOff();
  if (how === 'no hand-over was begun') {
    bank.state.isDiskFull = true;
    await expect(bank.look()).rejects.toThrow('ENOSPC');
  } else {
    bank.state.next.push('lost_request');
    bank.state.onHandOver = async () => {
      bank.state.isSilent = true;
    };
    await bank.look();
  }
  bank.state.onHandOver = async () => undefined;
  bank.state.isDiskFull = false;
  expect(await row(payout.id)).toMatchObject({ status: 'processing', step: 'batched' });
  expect(bank.executed).toEqual([]);
  return { payout, other };
}
/** A file that database and folder have forgotten is found, and an operator has it booked as lost. */
async function forgottenIsBooked(to: number): Promise<void> {
  const name = forgottenFile(bank, [{ id: 'payout_nobody000000000', cents: CENTS }], String(to));
  await putBack();
  bank.state.isSilent = false;
  await bank.look();
  const bytes = bank.executed[0]?.bytes as Uint8Array;
  expect(await recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss: true })).toMatchObject({ lost: CENTS });
  await clearBreakers(ctx.db, 'ann', world.now());
  // a lease of what has failed ends
  world.pass(60_000);
  for (let n = 0; n < 3; n++) await bank.look();
}

test.each(HOW)('%s: its payouts fail, and the one that is requested again is asked about', async (how) => {
  const { payout, other } = await made(how);
  await forgottenIsBooked(account);
  expect(bank.executed).toHaveLength(1);
  for (const { id, merchantId } of [payout, other]) {
    expect(await row(id)).toMatchObject({ status: 'failed', step: 'ended', error: expect.stringContaining('request it again') });
    expect(await of(merchantId, 'available')).toBe(BTC);
  }
  expect(bank.troubles.join()).toContain(payout.id);
  expect(await ledgerFindings()).toEqual([]);
  const again = await requested(null, { account: String(account), by: payout.merchantId });
  const otherAgain = await requested(null, { account: '123456780', by: other.merchantId });
  bank.cutOff();
  await bank.look();
  expect(await row(again.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  expect(await row(otherAgain.id)).toMatchObject({ step: 'batched' });
  expect(bank.executed).toHaveLength(2);
  await resolvePayout(ctx, { payoutId: again.id, outcome: 'paid', evidence: 'the bank says so' });
  expect(await ledgerFindings()).toEqual([]);
});

test.each(HOW)('%s: where the forgotten file has paid another account, it goes out', async (how) => {
  const { payout, other } = await made(how);
  await forgottenIsBooked(account + 50_000);
  expect(bank.executed).toHaveLength(2);
  for (const { id } of [payout, other]) expect(await row(id)).toMatchObject({ status: 'processing', step: 'batched' });
});
