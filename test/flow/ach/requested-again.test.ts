// A payout that was forgotten with its bank file, and that its merchant requests again: nobody but a person can tell it from another one.
import { beforeEach, expect, test } from 'vitest';
import { recoverAchFile } from '../../../src/flow/ach/restored-files.ts';
import { resolvePayout } from '../../../src/flow/payouts/resolve.ts';
import { clearBreakers } from '../../../src/store/ledger/breakers.ts';
import { testBank } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, of, row, world } from '../payouts/merchants.ts';
import { balanceOf, forgottenFile, putBack, requested } from './forgotten-files.ts';

merchantsForAll();

let bank: ReturnType<typeof testBank>;
let lostBefore: bigint;
beforeEach(async () => {
  bank = testBank(ctx, { dedupes: false });
  lostBefore = await lost();
});
const lost = (): Promise<bigint> => balanceOf('expense:unknown_outflow:USD');

const CENTS = 9_900n;
/** Of each test its own: what is open of one account may have paid what goes there later. */
let account = 800_000_000;
/** @param when the look that finds the file comes before or after it is requested again */
async function requestedAgain(when: 'before' | 'after') {
  await bank.look();
  account += 1;
  const before = await balanceOf('asset:bank:USD');
  const name = forgottenFile(bank, [{ id: 'payout_nobody000000000', cents: CENTS }], String(account));
  await putBack();
  if (when === 'before') await bank.look();
  const payout = await requested(null, { account: String(account) });
  expect(payout.cents).toBe(CENTS);
  if (when === 'after') await bank.look();
  return { payout, name, before };
}
async function recovered({ payout, name }: { readonly payout: { readonly id: string }; readonly name: string }) {
  const bytes = bank.executed[0]?.bytes as Uint8Array;
  const done = await recoverAchFile(ctx, { name, bytes, by: 'ann', acceptsLoss: true });
  expect(done).toEqual({ payoutIds: [], lost: CENTS, alike: [payout.id] });
  await clearBreakers(ctx.db, 'ann', world.now());
  bank.cutOff();
  await bank.look();
  expect(await row(payout.id)).toMatchObject({ step: 'held', held_reason: 'unknown_outcome' });
  expect(bank.executed).toHaveLength(1);
}

test.each(['before', 'after'] as const)('is not paid by another file: the look comes %s, and it was paid', async (when) => {
  const again = await requestedAgain(when);
  await recovered(again);
  await resolvePayout(ctx, { payoutId: again.payout.id, outcome: 'paid', evidence: 'the bank says so' });
  expect(await row(again.payout.id)).toMatchObject({ status: 'completed' });
  expect(await balanceOf('asset:bank:USD')).toBe(again.before - CENTS);
  expect((await lost()) - lostBefore).toBe(0n);
  expect(await ledgerFindings()).toEqual([]);
});

test('goes back to its merchant when it was another one, which stays lost', async () => {
  const again = await requestedAgain('before');
  await recovered(again);
  await resolvePayout(ctx, { payoutId: again.payout.id, outcome: 'failed', evidence: 'that was another' });
  expect(await of(again.payout.merchantId, 'available')).toBe(BTC);
  expect(await balanceOf('asset:bank:USD')).toBe(again.before - CENTS);
  expect((await lost()) - lostBefore).toBe(CENTS);
  expect(await ledgerFindings()).toEqual([]);
});

test('is what was lost once: a second one that is found paid is booked for itself', async () => {
  const again = await requestedAgain('before');
  const second = await requested(null, { account: String(account) });
  const bytes = bank.executed[0]?.bytes as Uint8Array;
  const { alike } = await recoverAchFile(ctx, { name: again.name, bytes, by: 'ann', acceptsLoss: true });
  expect(alike.toSorted()).toEqual([again.payout.id, second.id].toSorted());
  for (const payoutId of alike) await resolvePayout(ctx, { payoutId, outcome: 'paid', evidence: 'the bank says so' });
  expect(await balanceOf('asset:bank:USD')).toBe(again.before - 2n * CENTS);
  expect((await lost()) - lostBefore).toBe(0n);
});
