// What a token's contract has kept of a transfer of ours, as its events say; of anything else only a person knows what it has done.
import { expect, test } from 'vitest';
import { keptEntry, keptOf, notArrived, writeOffEntry } from '../../src/core/payouts/sweeps.ts';

const [US, OWNER] = [`65766d${'a1'.repeat(20)}`, `65766d${'0e'.repeat(20)}`];
const target = Buffer.from(US, 'hex');
const paid = (script: string, amountMinor: bigint, more: object = {}) => ({ vout: 0, script, amountMinor, ...more });
const unclear = (...outputs: ReturnType<typeof paid>[]) => ({ outputs, outcome: { result: 'unclear', gasPaid: 1n } as const });

test.each([
  ['a fee', unclear(paid(OWNER, 3n), paid(US, 297n)), 3n],
  ['a fee, written behind', unclear(paid(US, 297n), paid(OWNER, 3n)), 3n],
  ['all of it', unclear(paid(OWNER, 300n)), 300n],
  ['nothing', unclear(paid(US, 300n)), null],
  ['less than was asked for', unclear(paid(OWNER, 3n), paid(US, 296n)), null],
  ['more than was asked for', unclear(paid(OWNER, 3n), paid(US, 298n)), null],
  ['twice what was asked for', unclear(paid(US, 300n), paid(US, 300n)), null],
  ['no event', unclear(), null],
  ['what others have sent', unclear(paid(OWNER, 3n, { sentOn: true }), paid(US, 297n)), null],
  ['a failed one', { ...unclear(paid(OWNER, 3n), paid(US, 297n)), outcome: { result: 'failed', gasPaid: 1n } as const }, null],
  ['a paid one', { ...unclear(paid(OWNER, 3n), paid(US, 297n)), outcome: { result: 'paid', gasPaid: 1n } as const }, null],
  ['one of which nobody says how it ended', { outputs: [paid(OWNER, 3n), paid(US, 297n)] }, null],
])('%s', (_what, facts, kept) => {
  expect(keptOf(facts, { target, amount: 300n })).toBe(kept);
});

test.each([
  ['all', [paid(US, 300n)], null],
  ['more', [paid(US, 300n), paid(US, 1n)], null],
  ['a part', [paid(OWNER, 3n), paid(US, 297n)], 3n],
  ['one unit less', [paid(US, 299n)], 1n],
  ['nothing', [paid(OWNER, 300n)], 300n],
])('of %s that arrives, the rest has not', (_what, outputs, kept) => {
  expect(notArrived({ outputs }, { target, amount: 300n })).toBe(kept);
});

test('is booked as the difference to what is booked of it', () => {
  const booked = (times: number, out: bigint) => new Map([['kept', { times, out }]]);
  const lines = (amount: bigint) => [
    { account: 'expense:token_fee:USDT', amount },
    { account: 'asset:chain:USDT', amount: -amount },
  ];
  expect(keptEntry('batch_1', 'USDT', 3n, new Map())).toMatchObject({ key: 'sweep:batch_1:kept', postings: lines(3n) });
  expect(keptEntry('batch_1', 'USDT', 3n, booked(1, 3n))).toBeNull();
  expect(keptEntry('batch_1', 'USDT', 0n, booked(1, 3n))).toMatchObject({ key: 'sweep:batch_1:2:kept', postings: lines(-3n) });
  expect(keptEntry('batch_1', 'USDT', 0n, new Map())).toBeNull();
});

test('each write-off of an address has a key of its own', () => {
  const of = (number: number, amount: bigint) => writeOffEntry('USDT', { address: '0xa1', number, amount });
  expect(of(1, 1n)).toMatchObject({ key: 'written_off:usdt:0xa1:1', kind: 'written_off' });
  expect(of(2, -5n)).toMatchObject({
    key: 'written_off:usdt:0xa1:2',
    kind: 'write_off_taken_back',
    postings: [
      { account: 'expense:written_off:USDT', amount: -5n },
      { account: 'asset:chain:USDT', amount: 5n },
    ],
  });
});
