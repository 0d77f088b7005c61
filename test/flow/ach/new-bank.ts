// A bank for a test of its reports, with nothing of earlier tests under way, and payouts that it is to pay.
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { testBank } from '../../support/bank.ts';
import { ctx, world } from '../payouts/merchants.ts';

const DAY = 86_400_000;

/** It knows every file of the database, as copies of ours; what tests before this one left has ended. */
export async function newBank(): Promise<ReturnType<typeof testBank>> {
  const bank = testBank(ctx, { dedupes: true });
  const { rows } = await world.admin.query('select name, bytes from ach_files');
  for (const { name, bytes } of rows) bank.copies.set(name, bytes);
  // the end of the days in which it may come back
  await world.wait(10 * DAY);
  bank.cutOff();
  await bank.look();
  await bank.look();
  bank.executed.length = 0;
  return bank;
}

/** A payout of 100 dollars. @returns its id */
export const requested = async (merchantId: bigint): Promise<string> =>
  (await requestAchPayout(ctx, { merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null })).id;

/** A payout that the bank has the file of. @returns its id */
export async function handedOver(bank: ReturnType<typeof testBank>, merchantId: bigint): Promise<string> {
  const id = await requested(merchantId);
  world.pass(1);
  bank.cutOff();
  await bank.look();
  return id;
}

/** Where a payout stands in a file, and the state of that. */
export const entryOf = async (id: string): Promise<{ trace: string; file: string; state: string }> =>
  (
    await world.admin.query(
      'select e.trace, e.file, f.state from ach_entries e join ach_files f on f.name = e.file where e.payout_id = $1',
      [id],
    )
  ).rows[0];
