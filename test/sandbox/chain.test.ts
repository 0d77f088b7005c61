// What the simulated chains do when they are asked to pay, mine, replace, double-spend and reorganise, and that their journal contains all
// of it.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, describe, expect, it } from 'vitest';
import { type ChainState, feeOf, tip } from '../../src/sandbox/utxo/chain-state.ts';
import { openSimulatedNode, type SimulatedNode } from '../../src/sandbox/utxo/simulated-node.ts';
import { outpointKey } from '../../src/sandbox/utxo/transaction.ts';

const folder = mkdtempSync(join(tmpdir(), 'bursar-chain-'));
afterAll(() => rmSync(folder, { recursive: true }));

const script = (n: number): Buffer => Buffer.from(`0014${n.toString(16).padStart(2, '0').repeat(20)}`, 'hex');
const hexOf = (n: number): string => script(n).toString('hex');
const fresh = (): SimulatedNode => openSimulatedNode({ currency: 'BTC', folder: null, now: () => 1_800_000_000_000 });
const amounts = (node: SimulatedNode, n: number): unknown =>
  node.received(hexOf(n)).map(({ minor, confirmations }) => [minor, confirmations]);

describe('a simulated chain', () => {
  it('takes a payment into the mempool and mines it', () => {
    const node = fresh();
    node.pay([{ minor: 1000n, script: script(1) }]);
    expect(amounts(node, 1)).toEqual([[1000n, 0]]);
    node.mine(1);
    expect(amounts(node, 1)).toEqual([[1000n, 1]]);
    node.mine(3);
    expect(amounts(node, 1)).toEqual([[1000n, 4]]);
  });

  it('pays more than one of its outputs holds, and says so when it has not so much', () => {
    const node = fresh();
    const paid = node.pay([{ minor: 25_000_0000_0000n, script: script(1) }]);
    expect(paid?.inputs).toHaveLength(3);
    expect(node.pay([{ minor: 21_000_000_0000_0000n, script: script(1) }])).toBeNull();
  });

  it('never runs dry of confirmed outputs by paying many times between two blocks', () => {
    const node = fresh();
    for (let i = 0; i < 1100; i++) expect(node.pay([{ minor: 1000n, script: script(1) }])).not.toBeNull();
    expect(node.mine(1).transactions).toHaveLength(1101);
  });

  it('replaces a payment with another amount and a higher fee', () => {
    const node = fresh();
    const first = node.pay([{ minor: 1000n, script: script(1) }]);
    if (first === null) throw new Error('not paid');
    const firstFee = feeOf(node.state, first) as bigint;
    const second = node.replace(first, [{ minor: 777n, script: script(1) }]);
    if (second === null) throw new Error('not replaced');
    expect(second.inputs.map(outpointKey)).toEqual(first.inputs.map(outpointKey));
    expect(feeOf(node.state, second)).toBeGreaterThan(firstFee);
    expect(amounts(node, 1)).toEqual([[777n, 0]]);
  });

  it('replaces by more than the replaced outputs hold', () => {
    const node = fresh();
    const first = node.pay([{ minor: 1000n, script: script(1) }]);
    const second = first && node.replace(first, [{ minor: 15_000_0000_0000n, script: script(1) }]);
    expect(second?.inputs.length).toBe(2);
    expect(node.mine(1).transactions).toHaveLength(2);
  });

  it('ends what depends on a replaced transaction', () => {
    const node = fresh();
    const parent = node.pay([{ minor: 4_000_0000_0000n, script: script(1) }]);
    for (let i = 0; i < 1000; i++) node.pay([{ minor: 4_000_0000_0000n, script: script(2) }]);
    const child = node.state.spenders.get(`${parent?.txid}:1`);
    expect(child).toBeDefined();
    if (parent) node.doubleSpend([parent]);
    expect(node.state.alive.has(child as string)).toBe(false);
    expect(amounts(node, 1)).toEqual([]);
  });

  it('double-spends unconfirmed payments and leaves mined ones', () => {
    const node = fresh();
    const mined = node.pay([{ minor: 1000n, script: script(1) }]);
    node.mine(1);
    const open = node.pay([{ minor: 2000n, script: script(1) }]);
    if (mined === null || open === null) throw new Error('not paid');
    expect(node.doubleSpend([mined, open])).toHaveLength(1);
    expect(amounts(node, 1)).toEqual([[1000n, 1]]);
  });

  it('replaces blocks by empty ones, brings their payments back to the mempool and mines them later', () => {
    const node = fresh();
    node.pay([{ minor: 1000n, script: script(1) }]);
    node.mine(1);
    node.pay([{ minor: 2000n, script: script(1) }]);
    node.mine(2);
    const lost = tip(node.state);
    const height = lost.height;
    const top = node.reorg(3, { drop: false });
    expect(top.height).toBe(height + 1);
    expect(node.state.active.slice(-4).every((block) => block.transactions.length === 1)).toBe(true);
    expect(node.state.blocks.get(lost.hash)).toBe(lost);
    expect(amounts(node, 1)).toEqual([
      [1000n, 0],
      [2000n, 0],
    ]);
    node.mine(1);
    expect(amounts(node, 1)).toEqual([
      [1000n, 1],
      [2000n, 1],
    ]);
  });

  it('drops the payments of lost blocks for ever when it is told to, and no others', () => {
    const node = fresh();
    node.pay([{ minor: 500n, script: script(2) }]);
    node.mine(1);
    node.pay([{ minor: 1000n, script: script(1) }]);
    node.mine(1);
    node.pay([{ minor: 300n, script: script(3) }]);
    node.reorg(1, { drop: true });
    node.mine(5);
    expect(amounts(node, 1)).toEqual([]);
    expect(amounts(node, 2)).toEqual([[500n, 8]]);
    expect(amounts(node, 3)).toEqual([[300n, 5]]);
  });

  it.each(['BTC', 'BCH'] as const)('drops a lost block of %s in which payments spend the change of others', (currency) => {
    const node = openSimulatedNode({ currency, folder: null, now: () => 1_800_000_000_000 });
    for (let n = 0; n < 1100; n++) node.pay([{ minor: 1000n, script: script(1) }]);
    node.mine(1);
    expect(node.received(hexOf(1))).toHaveLength(1100);
    node.reorg(1, { drop: true });
    node.mine(2);
    expect(amounts(node, 1)).toEqual([]);
  });

  it('can be reorganised a hundred blocks deep right after it began', () => {
    const node = fresh();
    node.pay([{ minor: 1000n, script: script(1) }]);
    node.mine(1);
    node.reorg(100, { drop: false });
    node.mine(1);
    expect(amounts(node, 1)).toEqual([[1000n, 1]]);
  });

  it('pays by a coinbase', () => {
    const node = fresh();
    const block = node.mine(1, { outputs: [{ minor: 4000n, script: script(1) }] });
    expect(block.transactions[0]?.coinbase).toBe(true);
    expect(amounts(node, 1)).toEqual([[4000n, 1]]);
    node.reorg(1, { drop: false });
    expect(amounts(node, 1)).toEqual([]);
  });

  it('dates blocks by its clock, each later than the median of the eleven before', () => {
    let nowMs = 1_800_000_000_000;
    const node = openSimulatedNode({ currency: 'LTC', folder: null, now: () => nowMs });
    expect(tip(node.state).time).toBe(1_800_000_000);
    node.mine(40);
    node.state.active.slice(1).forEach((block, index) => {
      const before = node.state.active.slice(Math.max(0, index - 10), index + 1).map((each) => each.time);
      expect(block.time).toBeGreaterThan(before.sort((a, b) => a - b)[Math.floor(before.length / 2)] as number);
    });
    nowMs += 86_400_000;
    expect(node.mine(1).time).toBe(1_800_086_400);
  });
});

/** Everything that can be told apart from outside. */
function picture(state: ChainState): unknown {
  return {
    active: state.active.map((block) => block.hash),
    blocks: [...state.blocks.keys()].sort(),
    alive: [...state.alive].map(([txid, { block }]) => `${txid} ${block?.hash ?? 'mempool'}`).sort(),
    mempool: [...state.mempool.values()].map(({ transaction, time }) => [transaction.txid, time]),
    spenders: [...state.spenders].map(String).sort(),
    denied: [...state.denied],
    trouble: state.trouble,
    addresses: state.addressesGiven,
    outputs: [...state.faucetOutputs].map(String).sort(),
  };
}

function checkSound(state: ChainState): void {
  const inBlocks = state.active.slice(1).flatMap((block) => block.transactions.map((transaction) => transaction.txid));
  const known = [...inBlocks, ...state.mempool.keys()];
  expect(new Set(known).size).toBe(known.length);
  expect([...state.alive.keys()].sort()).toEqual([...known].sort());
  const seen = new Set<string>();
  const spent = new Set<string>();
  for (const txid of known) {
    const { transaction } = state.alive.get(txid) as NonNullable<ReturnType<typeof state.alive.get>>;
    for (const input of transaction.coinbase ? [] : transaction.inputs) {
      expect(seen.has(input.txid)).toBe(true);
      expect(spent.has(outpointKey(input))).toBe(false);
      spent.add(outpointKey(input));
      expect(state.spenders.get(outpointKey(input))).toBe(txid);
    }
    if (!transaction.coinbase) expect(feeOf(state, transaction)).toBeGreaterThan(0n);
    seen.add(txid);
  }
  expect(state.spenders.size).toBe(spent.size);
  for (const key of state.faucetOutputs.keys()) expect(spent.has(key)).toBe(false);
}

const step = fc.oneof(
  fc.record({ do: fc.constant('pay' as const), to: fc.integer({ min: 1, max: 4 }), minor: fc.bigInt(1n, 15_000_0000_0000n) }),
  fc.record({ do: fc.constant('mine' as const), blocks: fc.integer({ min: 1, max: 3 }) }),
  fc.record({ do: fc.constant('coinbase' as const), to: fc.integer({ min: 1, max: 4 }) }),
  fc.record({ do: fc.constant('reorg' as const), depth: fc.integer({ min: 1, max: 8 }), drop: fc.boolean() }),
  fc.record({ do: fc.constant('replace' as const), which: fc.nat(20), minor: fc.bigInt(1n, 1_0000_0000n) }),
  fc.record({ do: fc.constant('double' as const), which: fc.nat(20) }),
  fc.record({ do: fc.constant('deny' as const), which: fc.nat(20) }),
  fc.record({ do: fc.constant('address' as const) }),
);
type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;

function take(node: SimulatedNode, what: Step): void {
  const waiting = [...node.state.mempool.values()].map((entry) => entry.transaction);
  const chosen = 'which' in what ? waiting[what.which % Math.max(1, waiting.length)] : undefined;
  if (what.do === 'pay') node.pay([{ minor: what.minor, script: script(what.to) }]);
  if (what.do === 'mine') node.mine(what.blocks);
  if (what.do === 'coinbase') node.mine(1, { outputs: [{ minor: 7_000n, script: script(what.to) }] });
  if (what.do === 'reorg') node.reorg(what.depth, { drop: what.drop });
  if (what.do === 'replace' && chosen) node.replace(chosen, [{ minor: what.minor, script: script(1) }]);
  if (what.do === 'double' && chosen) node.doubleSpend([chosen]);
  if (what.do === 'deny' && chosen) node.deny(chosen, true);
  if (what.do === 'address') node.nextOutsideIndex();
}

describe('any history', () => {
  it('keeps a sound chain, and the journal makes the same chain again', () => {
    let run = 0;
    fc.assert(
      fc.property(fc.array(step, { maxLength: 25 }), (steps) => {
        const own = mkdtempSync(join(folder, `run${run++}-`));
        const options = { currency: 'BTC' as const, folder: own, now: () => 1_800_000_000_000 };
        const node = openSimulatedNode(options);
        for (const each of steps) take(node, each);
        checkSound(node.state);
        node.close();
        const again = openSimulatedNode(options);
        expect(picture(again.state)).toEqual(picture(node.state));
        again.close();
        rmSync(own, { recursive: true });
      }),
      { numRuns: 40 },
    );
  });
});
