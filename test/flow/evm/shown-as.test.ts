// Whether what is recorded of one of our transactions on Ethereum's chain is what nodes show of it: only then it is booked.
import { expect, test } from 'vitest';
import { isShownAs } from '../../../src/flow/evm/progress.ts';
import type { Attempt } from '../../../src/store/payouts/batch-rows.ts';

const hash = (digit: string): string => `0x${digit.repeat(64)}`;
const outcome = { result: 'paid', gasPaid: 5n } as const;
const recorded = { txid: hash('1'), blockHash: hash('2'), outcome } as Attempt;
const facts = { txid: hash('1'), coinbase: false, inputs: [], outputs: [], spends: [], outcome };
const ended = { height: 7, blockHash: hash('2'), facts };

test('what is the same in all is shown', () => {
  expect(isShownAs(recorded, ended)).toBe(true);
});

test.each([
  ['no node shows it', null],
  ['it is in another block', { ...ended, blockHash: hash('3') }],
  ['it is another transaction', { ...ended, facts: { ...facts, txid: hash('4') } }],
  ['it has failed', { ...ended, facts: { ...facts, outcome: { ...outcome, result: 'failed' as const } } }],
  ['its gas has cost something else', { ...ended, facts: { ...facts, outcome: { ...outcome, gasPaid: 6n } } }],
])('where %s it is not', (_, other) => {
  expect(isShownAs(recorded, other)).toBe(false);
});

test('of what no block was read nothing is shown', () => {
  expect(isShownAs({ ...recorded, outcome: null }, ended)).toBe(false);
});
