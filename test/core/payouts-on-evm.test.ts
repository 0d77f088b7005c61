// Payouts and reimbursements on Ethereum's chain without a database: what each step of theirs books, by every account, and what their gas may cost.
import { expect, test } from 'vitest';
import type { Entry } from '../../src/core/judge/case.ts';
import {
  evmBorneEntry,
  evmCompleteEntries,
  evmGiveBackEntries,
  evmPaidAfterAllEntries,
  evmReturnEntry,
  evmSignEntry,
  gasEntry,
  leavingOnEvm,
} from '../../src/core/payouts/evm-postings.ts';
import {
  chargedGas,
  exactOffer,
  gasLimit,
  gasWorth,
  leastGas,
  payoutOffer,
  reservedGas,
  usualGas,
} from '../../src/core/payouts/gas.ts';
import type { PostedPayout } from '../../src/core/payouts/postings.ts';
import { leastSwept, MOST_TOP_UP, sweepGasEntry, sweptEther } from '../../src/core/payouts/sweeps.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';

type Code = 'ETH' | 'USDT';
const payoutIn = (currency: Code, reimburses: string | null): PostedPayout => ({
  id: 'payout_1',
  merchantId: 7n,
  currency,
  amount: 1_000n,
  feeMax: 30n,
  reimburses,
});
const TOKEN = payoutIn('USDT', null);
const TOKEN_BACK = payoutIn('USDT', 'txn_1');
const ETHER = payoutIn('ETH', null);
const ETHER_BACK = payoutIn('ETH', 'txn_1');
const NOTHING = new Map();
const booked = (step: string, times: number, out: bigint) => new Map([[step, { times, out }]]);

/** What an entry books, by account. */
function lines({ postings }: Entry): Record<string, bigint> {
  expect(postings.reduce((sum, { amount }) => sum + amount, 0n)).toBe(0n);
  return Object.fromEntries(postings.map(({ account, amount }) => [account, amount]));
}
const all = (entries: readonly Entry[]) => entries.map((one) => ({ key: one.key, kind: one.kind, ...lines(one) }));

test('of a payout its amount leaves, and of one in ether its gas too; of a reimbursement what its gas leaves of it', () => {
  expect([TOKEN, TOKEN_BACK, ETHER, ETHER_BACK].map((one) => leavingOnEvm(one, 20n))).toEqual([1_000n, 980n, 1_020n, 1_000n]);
  expect(all([evmSignEntry(TOKEN_BACK, 20n)])).toEqual([
    { key: 'po:payout_1:sign:1', kind: 'payout_signed', 'asset:chain:USDT:outbound': 980n, 'asset:chain:USDT': -980n },
  ]);
});

test('a payout in a token is charged for its gas, as income, and gets back the rest of what was held for it', () => {
  expect(all(evmCompleteEntries(TOKEN, 20n, 12n, 5n))).toEqual([
    {
      key: 'po:payout_1:final',
      kind: 'payout_paid',
      'merchant:7:held:USDT': 1_012n,
      'asset:chain:USDT:outbound': -1_000n,
      'income:gas:USDT': -12n,
    },
    {
      key: 'po:payout_1:rest',
      kind: 'payout_released',
      'merchant:7:held:USDT': 18n,
      'asset:receivable:merchant:7:USDT': -5n,
      'merchant:7:available:USDT': -13n,
    },
  ]);
  expect(evmCompleteEntries(TOKEN, 20n, 30n, 0n)).toHaveLength(1);
});

test('a reimbursement in a token keeps the gas that was signed for it as income, and one in ether has it in what leaves', () => {
  expect(all(evmCompleteEntries(TOKEN_BACK, 20n, 12n, 5n))).toEqual([
    {
      key: 'po:payout_1:final',
      kind: 'payout_paid',
      'refund_payable:txn_1:USDT': 1_000n,
      'asset:chain:USDT:outbound': -980n,
      'income:gas:USDT': -20n,
    },
  ]);
  expect(all(evmCompleteEntries(ETHER_BACK, 20n, 12n, 5n))).toEqual([
    { key: 'po:payout_1:final', kind: 'payout_paid', 'refund_payable:txn_1:ETH': 1_000n, 'asset:chain:ETH:outbound': -1_000n },
  ]);
});

test('gas is an expense in ether, less what of it has left with the payout already', () => {
  const ofEther = all([gasEntry(ETHER_BACK, 15n, 20n, NOTHING)]);
  expect(ofEther).toEqual([{ key: 'po:payout_1:gas', kind: 'gas_paid', 'income:gas:ETH': -5n, 'asset:chain:ETH': 5n }]);
  expect(all([gasEntry(ETHER_BACK, 25n, 20n, NOTHING)])).toMatchObject([
    { 'expense:network_fee:ETH': 5n, 'asset:chain:ETH': -5n },
  ]);
  expect(all([gasEntry(TOKEN, 15n, 20n, NOTHING)])).toMatchObject([{ 'expense:network_fee:ETH': 15n, 'asset:chain:ETH': -15n }]);
  expect(all([gasEntry(TOKEN, 15n, 20n, booked('gas', 1, 9n))])).toMatchObject([
    { key: 'po:payout_1:2:gas', 'expense:network_fee:ETH': 6n, 'asset:chain:ETH': -6n },
  ]);
});

test('what has failed comes back: what was on its way, and the hold of a payout', () => {
  const back = { 'asset:chain:USDT:outbound': -1_000n, 'asset:chain:USDT': 1_000n };
  expect(all(evmGiveBackEntries(TOKEN, 20n, { owed: 4n, isAgain: false }))).toEqual([
    { key: 'po:payout_1:failed', kind: 'payout_failed', ...back },
    {
      key: 'po:payout_1:release',
      kind: 'payout_released',
      'merchant:7:held:USDT': 1_030n,
      'asset:receivable:merchant:7:USDT': -4n,
      'merchant:7:available:USDT': -1_026n,
    },
  ]);
  expect(evmGiveBackEntries(TOKEN, 20n, { owed: 0n, isAgain: true })[1]?.key).toBe('po:payout_1:again:release');
  expect(all(evmGiveBackEntries(TOKEN_BACK, 20n, { owed: 4n, isAgain: false }))).toMatchObject([
    { 'asset:chain:USDT:outbound': -980n, 'asset:chain:USDT': 980n },
  ]);
});

test('what was completed and is undone gives back what it had cost', () => {
  const of = { signed: 20n, fee: 12n, owed: 4n, booked: NOTHING };
  expect(all([evmReturnEntry(TOKEN, of)])).toEqual([
    {
      key: 'po:payout_1:return',
      kind: 'payout_returned',
      'asset:chain:USDT': 1_000n,
      'income:gas:USDT': 12n,
      'asset:receivable:merchant:7:USDT': -4n,
      'merchant:7:available:USDT': -1_008n,
    },
  ]);
  expect(all([evmReturnEntry(TOKEN_BACK, { ...of, booked: booked('return', 1, 0n) })])).toEqual([
    {
      key: 'po:payout_1:2:return',
      kind: 'payout_returned',
      'asset:chain:USDT': 980n,
      'income:gas:USDT': 20n,
      'refund_payable:txn_1:USDT': -1_000n,
    },
  ]);
  expect(all([evmReturnEntry(ETHER_BACK, of)])).toMatchObject([
    { 'asset:chain:ETH': 1_000n, 'refund_payable:txn_1:ETH': -1_000n },
  ]);
});

test('what had failed and is paid after all is taken from its merchant again, with what it is charged; what he has not he owes', () => {
  const of = { fee: 12n, gasPaid: 15n, there: 900n, booked: NOTHING };
  expect(all(evmPaidAfterAllEntries(TOKEN, of))).toEqual([
    {
      key: 'po:payout_1:paid:hold_again',
      kind: 'payout_hold',
      'merchant:7:available:USDT': 900n,
      'asset:receivable:merchant:7:USDT': 112n,
      'merchant:7:held:USDT': -1_012n,
    },
    {
      key: 'po:payout_1:final',
      kind: 'payout_paid',
      'merchant:7:held:USDT': 1_012n,
      'asset:chain:USDT': -1_000n,
      'income:gas:USDT': -12n,
    },
    { key: 'po:payout_1:gas', kind: 'gas_paid', 'expense:network_fee:ETH': 15n, 'asset:chain:ETH': -15n },
  ]);
  const second = evmPaidAfterAllEntries(TOKEN, {
    ...of,
    booked: new Map([...booked('final', 1, 0n), ...booked('paid_again', 1, 0n)]),
  });
  expect(second[1]?.key).toBe('po:payout_1:2:paid_again');
});

test('a reimbursement that had failed and is paid after all is borne: what has arrived of it', () => {
  const borne = evmBorneEntry(TOKEN_BACK, 20n, true, NOTHING);
  expect(all(borne === null ? [] : [borne])).toMatchObject([{ 'expense:reorg_loss:USDT': 980n, 'asset:chain:USDT': -980n }]);
  expect(evmBorneEntry(TOKEN_BACK, 20n, false, NOTHING)).toBeNull();
});

test('what is offered for gas: twice the base fee with the tip, or a quarter more than today where it must be exact; within the bounds', () => {
  const gwei = 10n ** 9n;
  expect(payoutOffer({ base: 10n * gwei, tip: gwei })).toEqual({ maxFee: 21n * gwei, tip: gwei });
  // a proposer need not take a transaction that offers him nothing
  expect(payoutOffer({ base: 10n * gwei, tip: 0n }).tip).toBe(1n);
  expect(payoutOffer({ base: 0n, tip: 5_000n * gwei })).toEqual({ maxFee: 2_000n * gwei, tip: 2_000n * gwei });
  expect(exactOffer({ base: 10n * gwei, tip: gwei })).toEqual({ maxFee: 13_500_000_000n, tip: 13_500_000_000n });
  expect(exactOffer({ base: 3n, tip: 0n }).maxFee).toBe(100_000_000n);
  expect(exactOffer({ base: 100_000_001n, tip: 0n }).maxFee).toBe(125_000_002n);
});

test('what a call takes before anything is run, and the gas that it is given', () => {
  expect(leastGas('0x')).toBe(21_000);
  // five bytes, of which two are zero: 10 for each zero and 40 for each other one
  expect(leastGas('0x0001000203')).toBe(21_000 + 10 * 2 + 40 * 3);
  expect(leastGas(`0x${'00'.repeat(10)}`)).toBe(21_100);
  expect(gasLimit(21_000, '0x')).toBe(21_000);
  expect(gasLimit(20_000, '0x')).toBe(21_000);
  expect(gasLimit(21_001, '0x')).toBe(26_252);
  expect(gasLimit(1, '0x01')).toBe(26_300);
  expect(gasLimit(40_001, '0x')).toBe(50_002);
  expect(gasLimit(190_000, '0x')).toBe(200_000);
});

const rates = new Map([
  ['ETH', { usd: parseRate('3000.00') as Rate }],
  ['USDT', { usd: parseRate('1.50') as Rate }],
]);

test('what gas is worth in a token is rounded up, and nothing where a price is missing', () => {
  expect(gasWorth('ETH', 12_345n, new Map())).toBe(12_345n);
  // 3,000 dollars a 10^18 wei, 1.50 dollars a 10^6 units
  expect(gasWorth('USDT', 10n ** 18n, rates)).toBe(2_000_000_000n);
  expect(gasWorth('USDT', 1n, rates)).toBe(1n);
  for (const missing of ['ETH', 'USDT']) {
    const others = new Map([...rates].filter(([code]) => code !== missing));
    expect(gasWorth('USDT', 10n ** 18n, others)).toBeNull();
  }
});

test('what is held for gas is half as much again as a transfer may take; what is charged is never more than what was signed', () => {
  const gwei = 10n ** 9n;
  expect(reservedGas(10n * gwei)).toBe(150_000n * 10n * gwei);
  expect(reservedGas(1n)).toBe(150_000n * 100_000_000n);
  expect([usualGas('USDT', gwei), usualGas('ETH', gwei)]).toEqual([100_000n * gwei, 21_000n * gwei]);
  const first = { fee: 1_000n, gas: 100, maxFee: 10n };
  expect([chargedGas(first, 500n), chargedGas(first, 501n), chargedGas(first, 2_000n)]).toEqual([500n, 501n, 1_000n]);
  expect(chargedGas({ ...first, fee: 3n }, 500n)).toBe(2n);
});

test('what is worth moving: so many times what that costs, of a token with the ether that is sent there first', () => {
  const gwei = 10n ** 9n;
  const fees = { base: 8n * gwei, tip: 0n };
  const maxFee = 10n * gwei;
  expect(leastSwept('ETH', { fees, multiple: 20, rates })).toBe(21_000n * maxFee * 20n);
  expect(leastSwept('USDT', { fees, multiple: 20, rates })).toBe((121_000n * maxFee * 20n * 2_000n) / 10n ** 12n);
  expect(leastSwept('USDT', { fees, multiple: 20, rates: new Map() })).toBeNull();
  expect(sweptEther(1_000_000n, 21, 3n)).toBe(999_937n);
  expect(MOST_TOP_UP).toBe(200_000n * 2_000n * gwei);
});

test('the gas of a sweep is booked as the difference to what is booked of it', () => {
  const entry = sweepGasEntry('batch_1', 15n, NOTHING);
  expect(all(entry === null ? [] : [entry])).toEqual([
    { key: 'sweep:batch_1:gas', kind: 'gas_paid', 'expense:network_fee:ETH': 15n, 'asset:chain:ETH': -15n },
  ]);
  const more = sweepGasEntry('batch_1', 20n, booked('gas', 1, 15n));
  expect(all(more === null ? [] : [more])).toMatchObject([{ key: 'sweep:batch_1:2:gas', 'expense:network_fee:ETH': 5n }]);
  expect(sweepGasEntry('batch_1', 15n, booked('gas', 1, 15n))).toBeNull();
  expect(sweepGasEntry('batch_1', 0n, NOTHING)).toBeNull();
});
