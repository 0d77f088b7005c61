// Bank files that a database which was put back has forgotten, and the payouts in them.
import { createHash } from 'node:crypto';
import { writeNachaFile } from '../../../src/core/ach/nacha-file.ts';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { SANDBOX_BANK } from '../../../src/sandbox/bank/bank.ts';
import type { testBank } from '../../support/bank.ts';
import { approvalAbove, BTC, ctx, shopWith, world } from '../payouts/merchants.ts';

type TestBank = ReturnType<typeof testBank>;

/** Of the ledger, by its code. */
export const balanceOf = async (code: string): Promise<bigint> =>
  BigInt((await world.admin.query('select amount from ledger.account_balance where code = $1', [code])).rows[0]?.amount ?? 0);
const ACCOUNT = '123456789';
let files = 0;
/** Asked for by a new merchant, unless one is named. @param approval USD above which it waits for its approval @param amount in USD, fee included */
export async function requested(
  approval: string | null = null,
  {
    amount = '100',
    account = ACCOUNT,
    by,
  }: { readonly amount?: string; readonly account?: string; readonly by?: bigint | undefined } = {},
): Promise<{ readonly id: string; readonly cents: bigint; readonly merchantId: bigint }> {
  const merchantId = by ?? (await shopWith(BTC));
  if (approval !== null) await approvalAbove(merchantId, approval);
  const asked = { merchantId, amount, destination: `ach:021000021:${account}`, sourceCurrency: null };
  const { id, amount: cents } = await requestAchPayout(ctx, asked);
  return { id, cents, merchantId };
}
/** A file that the bank has, and that neither database nor folder remembers. @param account of those that name none */
export function forgottenFile(
  bank: TestBank,
  payouts: readonly { readonly id: string; readonly cents: bigint; readonly account?: string }[],
  account = ACCOUNT,
): string {
  files += 1;
  const modifier = 'ABCDEFGHIJ'.charAt(files / 9);
  const name = `2026-05-2${1 + (files % 9)}-${modifier}`;
  const text = writeNachaFile({
    origin: SANDBOX_BANK,
    date: name.slice(0, 10),
    time: '2000',
    modifier,
    entryClass: 'CCD',
    description: 'PAYOUT',
    effective: '2026-06-01',
    entries: payouts.map(({ id, cents, account: own = account }, at) => ({
      transactionCode: 22,
      routing: '021000021',
      account: own,
      cents,
      id: id.slice(-15),
      name: 'SHOP',
      trace: `09100001${String(files * 10_000 + at).padStart(7, '0')}`,
    })),
  });
  const bytes = new TextEncoder().encode(text);
  bank.executed.push({ name, bytes, sha256: createHash('sha256').update(bytes).digest() });
  return name;
}
/** What is stored is of before PostgreSQL was started. */
export const putBack = () => world.admin.query(`update comparisons set checked_at = '2020-01-01' where currency = 'USD'`);
