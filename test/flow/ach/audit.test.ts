// What the audit says of bank files, their entries and the dollars in our bank.
import { beforeEach, describe, expect, test } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { postEntries } from '../../../src/store/ledger/ledger.ts';
import { testBank } from '../../support/bank.ts';
import { BTC, ctx, ledgerFindings, merchantsForAll, shopWith, world } from '../payouts/merchants.ts';

merchantsForAll();

let bank: ReturnType<typeof testBank>;
beforeEach(() => {
  bank = testBank(ctx, { dedupes: false });
});

/** A payout that waits for the end of a business day, which is now. */
async function requested(): Promise<string> {
  const merchantId = await shopWith(BTC);
  const asked = { merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  const { id } = await requestAchPayout(ctx, asked);
  bank.cutOff();
  return id;
}

const fileSet = (what: string): string =>
  `update ach_files set ${what} where name = (select file from ach_entries where payout_id = $1)`;
const changedBytes = (from: string, to: string): string => {
  const bytes = `convert_to(replace(convert_from(bytes, 'LATIN1'), '${from}', '${to}'), 'LATIN1')`;
  return fileSet(`bytes = ${bytes}, sha256 = sha256(${bytes})`);
};

describe('the audit', () => {
  const red = async (): Promise<string[]> => [
    ...new Set((await ledgerFindings()).map((finding) => finding.split(':')[0] as string)),
  ];

  test.each([
    [
      'an entry of another amount',
      `update ach_entries set cents = cents + 1 where payout_id = $1`,
      `update ach_entries set cents = cents - 1 where payout_id = $1`,
    ],
    [
      'other bytes',
      `update ach_files set bytes = bytes || '\\x00' where $1 <> ''`,
      `update ach_files set bytes = substring(bytes from 1 for length(bytes) - 1) where $1 <> ''`,
    ],
    [
      'a payout that came back and is not failed',
      `update ach_entries set returned = 'R03' where payout_id = $1`,
      `update ach_entries set returned = null where payout_id = $1`,
    ],
    [
      'a trace number of another line',
      `update ach_entries set trace = lpad((trace::bigint + 5000)::text, 15, '0') where payout_id = $1`,
      `update ach_entries set trace = lpad((trace::bigint - 5000)::text, 15, '0') where payout_id = $1`,
    ],
    [
      'bytes and hash that were changed together',
      changedBytes('123456789 ', '123456780 '),
      changedBytes('123456780 ', '123456789 '),
    ],
    ['a file that is over while its payout is processing', fileSet(`state = 'over'`), fileSet(`state = 'acked'`)],
    ['a file that never ends', fileSet(`returns_end = 'infinity'`), fileSet(`returns_end = settles_on + interval '3 days'`)],
    ['a refused file whose payout has not failed', fileSet(`state = 'refused'`), fileSet(`state = 'acked'`)],
  ])('INV-20 is red for %s', async (_, wrong, right) => {
    const id = await requested();
    await bank.look();
    expect(await red()).toEqual([]);
    await world.admin.query(wrong, [id]);
    expect(await red()).toContain('INV-20');
    await world.admin.query(right, [id]);
    expect(await red()).toEqual([]);
  });

  test('BANK-1 is red for money that left our bank and belongs to no payout', async () => {
    const post = (key: string, amount: bigint) =>
      postEntries(ctx.db, [
        {
          entry: {
            key,
            kind: 'test_entry',
            postings: [
              { account: 'asset:bank:USD', amount },
              { account: 'fx:USD', amount: -amount },
            ],
            parts: [],
          },
          transactionId: null,
          atMs: world.now(),
        },
      ]);
    await post('test:bank:1', -5n);
    expect((await red()).sort(), 'its dollars were bought by no payout').toEqual(['BANK-1', 'PAY-2']);
    await post('test:bank:2', 5n);
    expect(await red()).toEqual([]);
  });
});
