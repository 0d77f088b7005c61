// What blocks and waiting transactions of Ethereum's chain pay to addresses of ours, from what a node has answered, without a node.
import { expect, test } from 'vitest';
import { evmScript } from '../../src/core/currencies/evm.ts';
import type { EvmBlock, EvmLog, EvmReceipt, EvmTransaction } from '../../src/outside/evm/answers.ts';
import { endedFacts, etherIn, feesOf, paidInLog, tokensIn, waitingIn } from '../../src/outside/evm/payments.ts';

const address = (byte: string): string => `0x${byte.repeat(20)}`;
const PAYER = '0x000102030405060708090a0b0c0d0e0f10111213';
const [OURS, STRANGER, TOKEN, OTHER] = ['a1', 'c3', 'd4', 'e5'].map(address) as [string, string, string, string];
const script = evmScript(OURS);
const HASH = `0x${'77'.repeat(32)}`;
const MOST = 2n ** 96n;
const TRANSFER = '0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef';
const word = (value: bigint | string): string =>
  (typeof value === 'string' ? value.slice(2) : value.toString(16)).padStart(64, '0');
/** As an outpoint in a transaction's bytes: the input's name backwards, and its number. */
const NINTH = Buffer.concat([Buffer.from(PAYER.slice(2), 'hex').reverse(), Buffer.alloc(12), Buffer.of(9, 0, 0, 0)]);
/** Only `OURS` is watched, and what the payer sends with nonce 9. */
const watch = {
  hasScript: (bytes: Uint8Array, start: number, end: number) =>
    Buffer.from(bytes.subarray(start, end)).toString('hex') === script,
  hasOutpoint: (bytes: Uint8Array, start: number) => Buffer.from(bytes.subarray(start, start + 36)).equals(NINTH),
};
const sends = (of: Partial<EvmTransaction> = {}): EvmTransaction => ({
  hash: HASH,
  from: PAYER,
  to: OURS,
  value: 0n,
  nonce: 3,
  input: '0x',
  ...of,
});
const log = (of: Partial<EvmLog> & { readonly to?: string; readonly from?: string; readonly amount?: bigint } = {}): EvmLog => ({
  address: of.address ?? TOKEN,
  topics: of.topics ?? [TRANSFER, `0x${word(of.from ?? PAYER)}`, `0x${word(of.to ?? OURS)}`],
  data: of.data ?? `0x${word(of.amount ?? 5n)}`,
});
const receipt = (logs: readonly EvmLog[] = [], succeeded = true): EvmReceipt => ({ succeeded, logs, gasUsed: 10n, gasPaid: 50n });
const block = (transactions: readonly EvmTransaction[], of: Partial<EvmBlock> = {}): EvmBlock => ({
  hash: `0x${'88'.repeat(32)}`,
  previousHash: `0x${'99'.repeat(32)}`,
  height: 7,
  timeMs: 0,
  transactions,
  feeRecipient: null,
  baseFee: 2n,
  withdrawals: [],
  ...of,
});
const paidIn = (touched: Awaited<ReturnType<typeof etherIn>>) =>
  touched.map(({ txid, coinbase, outputs }) => ({
    txid,
    coinbase,
    paid: outputs.map(({ vout, amountMinor }) => [vout, amountMinor]),
  }));

const call = (selector: string, ...words: readonly (bigint | string)[]): string => `0x${selector}${words.map(word).join('')}`;
const waits = (input: string, of: Partial<EvmTransaction> = {}) =>
  waitingIn([sends({ to: TOKEN, input, ...of })], watch, TOKEN).flatMap(({ outputs }) => outputs);

test.each([
  ['transfer', call('a9059cbb', OURS, 5n)],
  ['transfer, in capitals', call('A9059CBB', OURS, 5n)],
  ['transferFrom', call('23b872dd', STRANGER, OURS, 5n)],
  ['transfer of the most that there can be', call('a9059cbb', OURS, MOST), MOST],
])('a waiting %s promises what it names', (_what, input, amount = 5n) => {
  expect(waits(input)).toEqual([{ vout: 1_000_000, script, amountMinor: amount }]);
});

test.each([
  ['to somebody else', call('a9059cbb', STRANGER, 5n)],
  ['from us to somebody else', call('23b872dd', OURS, STRANGER, 5n)],
  ['of nothing', call('a9059cbb', OURS, 0n)],
  ['of more than there can be', call('a9059cbb', OURS, MOST + 1n)],
  ['that is cut off', call('a9059cbb', OURS, 0x55n).slice(0, -1)],
  ['to what is no address', call('a9059cbb', `0x1${OURS.slice(2)}`, 5n)],
  ['by another call', call('095ea7b3', OURS, 5n)],
])('a waiting call %s promises nothing', (_what, input) => {
  expect(waits(input)).toEqual([]);
});

test('a waiting transaction promises ether to its payee, and a call of another contract no token', () => {
  const ether = (of: Partial<EvmTransaction>) => waitingIn([sends(of)], watch, null).flatMap(({ outputs }) => outputs);
  expect(ether({ value: 4n })).toEqual([{ vout: 1_000_000, script, amountMinor: 4n }]);
  for (const of of [{ value: 0n }, { value: 4n, to: null }, { value: 4n, to: STRANGER }]) expect(ether(of)).toEqual([]);
  expect(waits(call('a9059cbb', OURS, 5n), { to: OTHER })).toEqual([]);
  expect(waitingIn([sends({ to: STRANGER, value: 1n })], watch, null)).toEqual([]);
  expect(waitingIn([sends({ to: STRANGER, nonce: 9 })], watch, null)).toMatchObject([{ outputs: [], spends: [{ vout: 9 }] }]);
});

test('a block pays ether by its transactions, and by what contracts send inside them, where the whole succeeded', async () => {
  const transactions = [
    sends({ value: 4n }),
    sends({ to: STRANGER, value: 9n }),
    sends({ value: 6n }),
    sends({ to: null, value: 3n }),
  ];
  const shown = [
    [
      { to: STRANGER, value: 1n },
      { to: OURS, value: 2n },
    ],
    [],
    [],
    [],
  ];
  const receipts = async () => [receipt(), receipt(), receipt([], false), receipt()];
  expect(paidIn(await etherIn(block(transactions), watch, shown, receipts))).toEqual([
    {
      txid: HASH,
      coinbase: false,
      paid: [
        [0, 4n],
        [2, 2n],
      ],
    },
    { txid: HASH, coinbase: false, paid: [] },
  ]);
  const one = async () => [receipt()];
  const [paid] = await etherIn(block([sends({ value: 1n })]), watch, null, one);
  expect(paid).toEqual({
    txid: HASH,
    coinbase: false,
    inputs: [{ txid: word(PAYER), vout: 3 }],
    outputs: [expect.anything()],
    spends: [],
  });
  expect(await etherIn(block([sends()]), watch, null, one)).toEqual([]);
  const [spent] = await etherIn(block([sends({ to: STRANGER, nonce: 9 })]), watch, null, one);
  expect(spent).toMatchObject({ outputs: [], spends: [{ vout: 9 }], outcome: { result: 'paid', gasPaid: 50n } });
  const unasked = async () => Promise.reject(new Error('receipts are asked for only where something is ours'));
  expect(await etherIn(block([sends({ to: STRANGER, value: 9n })]), watch, null, unasked)).toEqual([]);
});

test('a block itself pays what its transactions offer above the base fee, and withdrawals, each at a place of its own', async () => {
  const receipts = async () => [receipt(), receipt()];
  const transactions = [sends({ to: STRANGER }), sends({ to: STRANGER })];
  const withdrawals = [
    { to: STRANGER, value: 1n },
    { to: OURS, value: 3n },
    { to: OURS, value: 0n },
  ];
  // 50 wei were paid for 10 units each, of which 2 a unit are burnt
  expect(paidIn(await etherIn(block(transactions, { feeRecipient: OURS, withdrawals }), watch, null, receipts))).toEqual([
    {
      txid: block([]).hash,
      coinbase: true,
      paid: [
        [0, 60n],
        [2, 3n],
      ],
    },
  ]);
  expect(await etherIn(block(transactions, { feeRecipient: STRANGER }), watch, null, receipts)).toEqual([]);
  const unasked = async () => Promise.reject(new Error('an empty block has no receipts'));
  expect(await etherIn(block([], { feeRecipient: OURS }), watch, null, unasked)).toEqual([]);
  const least = block([sends({ to: STRANGER })], { feeRecipient: OURS, withdrawals: [{ to: OURS, value: 1n }] });
  expect(paidIn(await etherIn(least, watch, null, async () => [{ ...receipt(), gasPaid: 21n }]))).toMatchObject([
    {
      paid: [
        [0, 1n],
        [1, 1n],
      ],
    },
  ]);
  const free = async () => [{ ...receipt(), gasPaid: 20n }];
  expect(await etherIn(block([sends({ to: STRANGER })], { feeRecipient: OURS }), watch, null, free)).toEqual([]);
  expect(() => feesOf({ baseFee: 6n } as EvmBlock, [receipt()])).toThrow('less than its base fee');
  expect(() => feesOf({ baseFee: 2n } as EvmBlock, [{ ...receipt(), gasUsed: null }])).toThrow('does not say');
  expect(() => feesOf({ baseFee: 2n } as EvmBlock, [{ ...receipt(), gasPaid: null }])).toThrow('does not say');
});

const tokens = (logs: readonly EvmLog[], of: Partial<EvmTransaction> = {}) =>
  tokensIn({ transactions: [sends({ to: TOKEN, ...of })] }, watch, TOKEN, [receipt(logs)]);

test('a block pays a token by its events, each at its place in the transaction, whoever has sent the transaction', () => {
  expect(tokens([log({ to: STRANGER }), log(), log({ from: OTHER, amount: MOST }), log({ amount: 0n })])).toMatchObject([
    {
      txid: HASH,
      outputs: [
        { vout: 1, script, amountMinor: 5n },
        { vout: 2, script, amountMinor: MOST, sentOn: true },
      ],
    },
  ]);
  const [least] = tokens([log({ amount: 1n })]);
  expect(least?.outputs).toEqual([{ vout: 0, script, amountMinor: 1n }]);
  expect(least).not.toHaveProperty('outcome');
  expect(least?.spends).toEqual([]);
  expect(tokens([log({ to: STRANGER })])).toEqual([]);
});

test.each([
  ['two topics', { topics: [TRANSFER, `0x${word(PAYER)}`] }, 'does not have its form'],
  ['four topics', { topics: [TRANSFER, `0x${word(PAYER)}`, `0x${word(OURS)}`, `0x${word(1n)}`] }, 'does not have its form'],
  ['more than an address', { topics: [TRANSFER, `0x${word(PAYER)}`, `0x${'f'.repeat(64)}`] }, 'does not have its form'],
  ['a payer that is none', { topics: [TRANSFER, `0x${'f'.repeat(64)}`, `0x${word(OURS)}`] }, 'does not have its form'],
  ['two words', { data: `0x${word(5n)}${word(5n)}` }, 'does not have its form'],
  ['more than there can be', { data: `0x${word(MOST + 1n)}` }, 'units'],
])('an event of the token with %s is an error and no payment', (_what, of, reason) => {
  expect(() => tokens([log(of)])).toThrow(reason);
});

test('an event of another contract is only reported, whatever is in it', () => {
  const reported = (of: Parameters<typeof log>[0]) =>
    tokens([log({ address: OTHER, ...of })]).flatMap((one) => one.tokenOutputs ?? []);
  expect(tokens([log({ address: OTHER })])[0]?.outputs).toEqual([]);
  expect(reported({})).toEqual([{ vout: 0, script, amountMinor: 0n, category: OTHER, tokens: 5n, nft: false }]);
  expect(reported({ data: `0x${word(5n)}ff` })).toMatchObject([{ tokens: 5n }]);
  expect(reported({ data: '0x' })).toMatchObject([{ tokens: 0n }]);
  const four = [TRANSFER, `0x${word(PAYER)}`, `0x${word(OURS)}`, `0x${word(8n)}`];
  expect(reported({ topics: four })).toMatchObject([{ tokens: 0n, nft: true }]);
  for (const of of [{ to: STRANGER }, { topics: [TRANSFER] }, { topics: [`0x${word(1n)}`, ...four.slice(1)] }])
    expect(reported(of)).toEqual([]);
  // ether's own events, once there are such (EIP-7708), are no token's
  expect(reported({ address: '0xfffffffffffffffffffffffffffffffffffffffe' })).toEqual([]);
});

test('a transaction of ours has done what it asks for where its one event says just that', () => {
  const input = call('a9059cbb', STRANGER, 5n);
  const result = (logs: readonly EvmLog[], of: Partial<EvmTransaction> = {}, succeeded = true) =>
    endedFacts(sends({ to: TOKEN, input, ...of }), receipt(logs, succeeded), TOKEN).outcome;
  const asked = log({ to: STRANGER });
  expect(result([asked])).toEqual({ result: 'paid', gasPaid: 50n });
  expect(endedFacts(sends({ to: TOKEN, input }), receipt([asked]), TOKEN)).toMatchObject({
    outputs: [{ script: evmScript(STRANGER), amountMinor: 5n }],
    spends: [{ vout: 3 }],
  });
  expect(result([asked, log({ address: OTHER })])).toMatchObject({ result: 'paid' });
  expect(result([], {}, false)).toEqual({ result: 'failed', gasPaid: 50n });
  for (const logs of [
    [],
    [asked, asked],
    [log({ to: STRANGER, amount: 4n })],
    [log({ to: OTHER })],
    [log({ to: STRANGER, from: OTHER })],
  ])
    expect(result(logs)).toMatchObject({ result: 'unclear' });
  expect(result([], { to: OTHER })).toMatchObject({ result: 'paid' });
  expect(() => endedFacts(sends(), { ...receipt(), gasPaid: null }, null)).toThrow('does not say');
  const ether = endedFacts(sends({ to: STRANGER, value: 4n }), receipt(), null);
  expect(ether).toMatchObject({
    outputs: [{ vout: 0, script: evmScript(STRANGER), amountMinor: 4n }],
    spends: [{ vout: 3 }],
    outcome: { result: 'paid' },
  });
  expect(endedFacts(sends({ value: 4n }), receipt([], false), null).outputs).toEqual([]);
});

test('an event that a contract would write is read as one of a block', () => {
  const { topics, data } = log();
  expect(paidInLog({ address: TOKEN.toUpperCase().replace('0X', '0x'), topics, data }, TOKEN)).toMatchObject({
    to: OURS,
    amount: 5n,
  });
  expect(paidInLog({ address: OTHER, topics, data }, TOKEN)).toBeNull();
  expect(paidInLog({ address: TOKEN, topics: topics.slice(0, 2), data }, TOKEN)).toBeNull();
  expect(paidInLog({ address: TOKEN, topics: [`0x${word(1n)}`, ...topics.slice(1)], data }, TOKEN)).toBeNull();
});
