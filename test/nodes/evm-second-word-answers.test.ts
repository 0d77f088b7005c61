// What several nodes say of one block, compared: every kind of answer, as the adapters give them.
import { expect, test } from 'vitest';
import type { BlockFacts, OutputFacts, TransactionFacts, WatchList } from '../../src/core/ports.ts';
import { withAllWords, withSecondWord } from '../../src/outside/evm/second-word.ts';
import { NodeTrouble } from '../../src/outside/utxo/node/trouble.ts';

const script = (nth: number): string => `65766d${String(nth).padStart(40, '0')}`;
const [ONE, TWO] = [script(1), script(2)];
const HASH = `0x${'b1'.repeat(32)}`;
type Out = Partial<OutputFacts> & { readonly amountMinor: bigint };
const top = (amountMinor: bigint, to = ONE): Out => ({ vout: 0, script: to, amountMinor });
const inner = (amountMinor: bigint, to = ONE): Out => ({ vout: 1, script: to, amountMinor });
const byBalance = (amountMinor: bigint, to = ONE): Out => ({ vout: 2 ** 30, script: to, amountMinor, byBalance: true });
const paying = (txid: string, ...outputs: readonly Out[]): TransactionFacts => ({
  ...{ txid, coinbase: false, inputs: [], spends: [] },
  outputs: outputs.map((output) => ({ vout: 0, script: ONE, ...output })),
});
const fees = (...outputs: readonly Out[]): TransactionFacts => ({ ...paying(HASH, ...outputs), coinbase: true });
const block = (touched: readonly TransactionFacts[], how?: BlockFacts['inner']): BlockFacts => ({
  ...{ hash: HASH, previousHash: '0x00', timeMs: 0, transactionCount: 1, touched },
  ...(how === undefined ? {} : { inner: how }),
});
const SILENT = new NodeTrouble('down', 'other: no answer');
const ALL: WatchList = {
  hasScript: () => true,
  hasOutpoint: () => false,
  scripts: () => [ONE, TWO].map((one) => Buffer.from(one, 'hex')),
  fresh: async () => undefined,
};

/** What becomes of a block: what is left of it, and why it is unconfirmed. */
async function judged(ours: BlockFacts, theirs: readonly (BlockFacts | NodeTrouble)[], watch: WatchList | null = null) {
  const forgotten: string[] = [];
  const asked: WatchList[] = [];
  const forget = (name: string) => (hash: string) => void forgotten.push(`${name} ${hash}`);
  const others = theirs.map((answer, nth) => ({
    node: { name: `other ${nth}`, forget: forget(`other ${nth}`) },
    async read(wanted: WatchList) {
      asked.push(wanted);
      return answer;
    },
  }));
  const leaving: string[] = [];
  const nodes = { saidBy: { name: 'read', forget: forget('read') }, others, leave: (why: string) => void leaving.push(why) };
  const facts = await (watch === null ? withSecondWord(ours, nodes) : withAllWords(ours, nodes, watch));
  const left = facts.touched.flatMap(({ txid, outputs }) => outputs.map(({ amountMinor }) => `${txid} ${amountMinor}`));
  return { left, unconfirmed: facts.unconfirmed, forgotten, asked, leaving };
}

test('nobody is asked about a block that pays nothing, nor where there is no other node', async () => {
  expect(await judged(block([]), [SILENT])).toMatchObject({ unconfirmed: undefined, asked: [] });
  expect(await judged(block([paying('a', top(1n))]), [])).toMatchObject({ left: ['a 1'], unconfirmed: undefined });
  expect(await judged(block([]), [], ALL)).toMatchObject({ unconfirmed: undefined });
});

test('another node is asked about the addresses that are paid, by themselves', async () => {
  const { asked } = await judged(block([paying('a', top(1n)), paying('b', top(2n))]), [block([])]);
  const [watch] = asked;
  const bytes = (one: string): Buffer => Buffer.from(`00${one}`, 'hex');
  expect([ONE, TWO].map((one) => watch?.hasScript(bytes(one), 1, 24))).toEqual([true, false]);
  expect(watch?.hasOutpoint(Buffer.alloc(36), 0)).toBe(false);
  expect([...(watch?.scripts?.() ?? [])].map((one) => Buffer.from(one).toString('hex'))).toEqual([ONE]);
  await watch?.fresh();
});

test.each([
  { what: 'the same', theirs: [paying('a', top(1n), top(1n))], left: ['a 1', 'a 1'], state: undefined },
  { what: 'one of two equal ones', theirs: [paying('a', top(1n))], left: ['a 1'], state: 'denied' },
  { what: 'another amount', theirs: [paying('a', top(1n), top(2n))], left: ['a 1'], state: 'denied' },
  { what: 'another address', theirs: [paying('a', top(1n), top(1n, TWO))], left: ['a 1'], state: 'denied' },
  { what: 'another transaction', theirs: [paying('a', top(1n)), paying('b', top(1n))], left: ['a 1'], state: 'denied' },
  { what: 'nothing', theirs: [], left: [], state: 'denied' },
  { what: 'one more', theirs: [paying('a', top(1n), top(1n), top(1n))], left: ['a 1', 'a 1'], state: 'hidden' },
])('where the other shows $what', async ({ theirs, left, state }) => {
  const of = await judged(block([paying('a', top(1n), top(1n))]), [block(theirs)]);
  expect([of.left, of.unconfirmed?.state]).toEqual([left, state]);
  expect(of.forgotten).toEqual(state === undefined ? [] : [`read ${HASH}`, `other 0 ${HASH}`]);
});

test('a contradiction names both nodes, the block, the addresses, and what it is about, three of it', async () => {
  const many = [4n, 5n, 6n, 7n, 8n].map((amount) => top(amount, TWO));
  const { unconfirmed } = await judged(block([paying('0xaa', top(1n), ...many)]), [block([paying('0xaa', top(1n))])]);
  const to = `0x${TWO.slice(-40)}`;
  expect(unconfirmed).toEqual({
    state: 'denied',
    reason: `read shows in block ${HASH} what other 0 does not: 4 base units in 0xaa to ${to}, 5 base units in 0xaa to ${to}, 6 base units in 0xaa to ${to}, and 2 more`,
    scripts: [TWO],
  });
  const hidden = await judged(block([paying('0xaa', top(1n))]), [block([paying('0xaa', top(1n), top(9n))])]);
  expect(hidden.unconfirmed).toEqual({
    state: 'hidden',
    reason: `other 0 shows in block ${HASH} what read does not: 9 base units in 0xaa to 0x${ONE.slice(-40)}`,
    scripts: [ONE],
  });
  const both = await judged(block([paying('0xaa', top(1n, TWO))]), [block([paying('0xbb', top(1n))])], ALL);
  expect(both.unconfirmed?.state).toBe('denied');
  expect(both.unconfirmed?.reason).toMatch(/^read shows .* in 0xaa to 0x0*2; other 0 shows .* in 0xbb to 0x0*1$/);
  expect(both.unconfirmed?.scripts).toEqual([TWO, ONE]);
});

test('while no other node says anything, all of it is one word', async () => {
  const silent = await judged(block([paying('a', top(1n))]), [SILENT, SILENT]);
  expect([silent.left, silent.unconfirmed, silent.forgotten]).toEqual([
    ['a 1'],
    { state: 'silent', reason: 'other: no answer; other: no answer', scripts: [ONE] },
    [],
  ]);
  expect((await judged(block([]), [SILENT], ALL)).unconfirmed).toMatchObject({ state: 'silent', scripts: [ONE, TWO] });
  const { hasScript, hasOutpoint, fresh } = ALL;
  expect((await judged(block([]), [SILENT], { hasScript, hasOutpoint, fresh })).unconfirmed).toMatchObject({
    state: 'silent',
    scripts: [],
  });
});

test('of three nodes one other is enough to confirm, and to show more', async () => {
  const ours = block([paying('a', top(1n))]);
  for (const theirs of [
    [SILENT, ours],
    [block([]), ours],
    [ours, block([])],
  ])
    expect(await judged(ours, theirs)).toMatchObject({ left: ['a 1'], unconfirmed: undefined });
  expect(await judged(ours, [SILENT, block([])])).toMatchObject({ left: [], unconfirmed: { state: 'denied' } });
  const more = await judged(ours, [ours, block([paying('a', top(1n)), paying('b', top(2n))])]);
  expect(more).toMatchObject({ left: ['a 1'], unconfirmed: { state: 'hidden' } });
  expect(more.unconfirmed?.reason).toContain('other 1 shows');
});

const SUM = block([paying(HASH, byBalance(10n))], 'by_balance');
const CALLS = block([paying('a', inner(4n)), paying('b', inner(6n))]);
test.each([
  { what: 'calls here, their sum there', ours: CALLS, theirs: SUM, left: ['a 4', 'b 6'], state: undefined },
  { what: 'their sum here, calls there', ours: SUM, theirs: CALLS, left: [`${HASH} 10`], state: undefined },
  { what: 'more here', ours: CALLS, theirs: block([paying(HASH, byBalance(9n))], 'by_balance'), left: [], state: 'denied' },
  {
    what: 'more there',
    ours: CALLS,
    theirs: block([paying(HASH, byBalance(11n))], 'by_balance'),
    left: ['a 4', 'b 6'],
    state: 'hidden',
  },
  {
    what: 'the same sum to another address',
    ours: CALLS,
    theirs: block([paying(HASH, byBalance(10n, TWO))], 'by_balance'),
    left: [],
    state: 'denied',
  },
  { what: 'other calls of the same sum', ours: CALLS, theirs: block([paying('a', inner(10n))]), left: [], state: 'denied' },
])('calls and balances: $what', async ({ ours, theirs, left, state }) => {
  const of = await judged(ours, [theirs]);
  expect([of.left, of.unconfirmed?.state]).toEqual([left, state]);
});

test('a node that sees nothing of what contracts send denies the rest, and confirms none of that', async () => {
  const ours = block([paying('a', top(1n), inner(4n))]);
  const unseen = block([paying('a', top(1n))], 'unseen');
  const silent = await judged(ours, [unseen]);
  expect(silent).toMatchObject({ left: ['a 1', 'a 4'], unconfirmed: { state: 'silent', scripts: [ONE] } });
  expect(silent.unconfirmed?.reason).toBe('other 0: it shows neither the calls of the block nor the balances after it');
  expect(await judged(block([paying(HASH, byBalance(4n))], 'by_balance'), [block([], 'unseen')])).toMatchObject({
    unconfirmed: { state: 'silent' },
  });
  expect(await judged(ours, [unseen, ours])).toMatchObject({ unconfirmed: undefined });
  expect(await judged(block([paying('a', top(1n))]), [block([], 'unseen')])).toMatchObject({
    left: [],
    unconfirmed: { state: 'denied' },
  });
  // the fees of a block are no contract's: their places begin at 0 and go on behind it
  expect(await judged(block([fees(inner(4n))]), [block([], 'unseen')])).toMatchObject({ unconfirmed: { state: 'denied' } });
  // the one that is read sees nothing of them: that is told already
  expect(await judged(unseen, [ours])).toMatchObject({ left: ['a 1'], unconfirmed: undefined });
  expect(await judged(block([], 'unseen'), [ours], ALL)).toMatchObject({ unconfirmed: { state: 'hidden' } });
});

test('a node is left when two others show the same that it does not, and for nothing else', async () => {
  const [one, other] = [block([paying('a', top(1n))]), block([paying('b', top(2n))])];
  for (const theirs of [[one], [one, block([])], [one, other], [one, SILENT]])
    expect((await judged(block([]), theirs, ALL)).leaving).toEqual([]);
  expect((await judged(one, [block([]), block([])], ALL)).leaving).toEqual([]);
  expect((await judged(block([]), [one, other, one], ALL)).leaving).toEqual([
    expect.stringMatching(/^read does not show in block .* what two other nodes do$/),
  ]);
});
