// What of the gains of addresses in a block nothing explains: exactly that is a payment by a contract, whatever else the block did to them.
import { expect, test } from 'vitest';
import { BALANCE_PLACE } from '../../src/core/currencies/evm.ts';
import type { EvmBlock, EvmReceipt, EvmTransaction } from '../../src/outside/evm/answers.ts';
import { restByBalance } from '../../src/outside/evm/by-balance.ts';
import type { Shown } from '../../src/outside/evm/traces.ts';

const OURS = `0x${'0a'.repeat(20)}`;
const OTHER = `0x${'0b'.repeat(20)}`;
const STRANGER = `0x${'57'.repeat(20)}`;
const hash = (n: number): string => `0x${String(n).padStart(64, '0')}`;
const scriptOf = (address: string): Buffer => Buffer.from(`65766d${address.slice(2)}`, 'hex');

type Sent = Partial<Pick<EvmTransaction, 'from' | 'to' | 'value'>> & { readonly succeeded?: boolean; readonly gasPaid?: bigint };
type Case = {
  readonly gains: Readonly<Record<string, bigint>>;
  readonly sent?: readonly Sent[];
  readonly shown?: Shown;
  readonly block?: Partial<EvmBlock>;
};

async function rest({ gains, sent = [{}], shown = null, block: more = {} }: Case) {
  const block: EvmBlock = {
    ...{ hash: hash(9), previousHash: hash(8), height: 9, timeMs: 0, feeRecipient: null, baseFee: 0n, withdrawals: [] },
    transactions: sent.map(({ from = STRANGER, to = STRANGER, value = 0n }, nonce) => ({
      ...{ hash: hash(nonce + 1), from, to, value, nonce, input: '0x' },
    })),
    ...more,
  };
  const receipts = sent.map(({ succeeded = true, gasPaid = 21_000n }): EvmReceipt => {
    return { succeeded, gasPaid, gasUsed: 21_000n, logs: [] };
  });
  let missed = 0;
  const source = {
    gains: async (_block: EvmBlock, addresses: readonly string[]) =>
      new Map(addresses.map((address) => [address, gains[address] ?? 0n])),
    receipts: async () => receipts,
    missed: () => {
      missed++;
    },
  };
  const said = await restByBalance(source, block, { scripts: () => [OURS, OTHER].map(scriptOf) }, shown);
  const facts = said === 'unseen' ? null : said;
  const paid = Object.fromEntries(facts?.outputs.map(({ script, amountMinor }) => [`0x${script.slice(6)}`, amountMinor]) ?? []);
  return { facts, paid, missed };
}

test('what a block brought and nothing explains is a payment in its name, at a place of the address', async () => {
  const { facts, missed } = await rest({ gains: { [OURS]: 7n, [OTHER]: 5n } });
  const placeOf = (byte: number): number =>
    BALANCE_PLACE + (Number(`0x${byte.toString(16).padStart(2, '0').repeat(4)}`) % BALANCE_PLACE);
  expect(facts).toEqual({
    ...{ txid: hash(9), coinbase: false, inputs: [], spends: [] },
    outputs: [
      { vout: placeOf(10), script: scriptOf(OURS).toString('hex'), amountMinor: 7n, byBalance: true },
      { vout: placeOf(11), script: scriptOf(OTHER).toString('hex'), amountMinor: 5n, byBalance: true },
    ],
  });
  expect(missed).toBe(0);
});

test.each<[string, Case, Record<string, bigint>, number]>([
  ['nothing', { gains: {} }, {}, 0],
  ['what a transaction itself pays', { gains: { [OURS]: 7n }, sent: [{ to: OURS, value: 7n }] }, {}, 0],
  [
    'what a transaction itself pays, beside a contract',
    { gains: { [OURS]: 9n }, sent: [{ to: OURS, value: 7n }] },
    { [OURS]: 2n },
    0,
  ],
  ['a failed one', { gains: { [OURS]: 2n }, sent: [{ to: OURS, value: 7n, succeeded: false }] }, { [OURS]: 2n }, 0],
  ['what we send, and its gas', { gains: { [OURS]: -21_007n }, sent: [{ from: OURS, to: STRANGER, value: 7n }] }, {}, 0],
  [
    'what we send in a block in which a contract pays as much',
    { gains: { [OURS]: 0n }, sent: [{ from: OURS, to: STRANGER, value: 7n }] },
    { [OURS]: 21_007n },
    0,
  ],
  ['what we send and fails', { gains: { [OURS]: -21_000n }, sent: [{ from: OURS, value: 7n, succeeded: false }] }, {}, 0],
  ['what we send each other', { gains: { [OURS]: -21_003n, [OTHER]: 3n }, sent: [{ from: OURS, to: OTHER, value: 3n }] }, {}, 0],
  ['what is sent to its sender', { gains: { [OURS]: -21_000n }, sent: [{ from: OURS, to: OURS, value: 3n }] }, {}, 0],
  [
    'calls that are shown',
    { gains: { [OURS]: 9n }, sent: [{}, {}], shown: [[{ to: OURS, value: 4n }], null] },
    { [OURS]: 5n },
    0,
  ],
  [
    'calls that are shown of one that failed',
    { gains: { [OURS]: 9n }, sent: [{ succeeded: false }], shown: [[{ to: OURS, value: 4n }]] },
    { [OURS]: 9n },
    0,
  ],
  ['withdrawals', { gains: { [OURS]: 9n }, block: { withdrawals: [{ to: OURS, value: 9n }] } }, {}, 0],
  ['the fees of the block', { gains: { [OURS]: 21_000n }, sent: [{}], block: { feeRecipient: OURS } }, {}, 0],
  ['less than it says', { gains: { [OURS]: 3n, [OTHER]: 2n }, sent: [{ to: OURS, value: 4n }] }, {}, 1],
])('%s', async (_what, given, paid, missed) => {
  expect(await rest(given)).toMatchObject({ paid, missed });
});

test('a list that cannot name its addresses is not asked about, nor a block without transactions', async () => {
  const source = { gains: () => Promise.reject(new Error('asked')), receipts: async () => [], missed: () => undefined };
  const block = { transactions: [] } as unknown as EvmBlock;
  expect(await restByBalance(source, block, { scripts: () => [scriptOf(OURS)] }, null)).toBeNull();
  expect(await restByBalance(source, { ...block, transactions: [{} as EvmTransaction] }, {}, null)).toBeNull();
});
