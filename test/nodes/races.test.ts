// The chain moves while the watcher looks at it: between two of its questions a block comes, or a branch is replaced. No payment may be seen
// missing for that. And what a watcher that has just started does not remember is found again before a deep branch is read.
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { ChainPort } from '../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/served-node.ts';
import { createChainWatcher } from '../../src/worker/chain-watcher.ts';
import { createWatchedScripts } from '../../src/worker/watch-list.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

const RUNS = 12;

let node: ServedNode;
let chain: WatchedChain;
beforeEach(async () => {
  node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
  node.mine(5);
  chain = await watchChain('BTC', node.url);
  await chain.catchUp();
});
afterEach(async () => {
  await chain.close();
  await node.stop();
});

/** A watcher whose node lets something happen before it answers one kind of question, once. */
async function interrupted(method: 'mempool' | 'hashAt' | 'readBlock', happens: () => void) {
  await chain.watcher.close();
  const port = chain.ctx.ports.chains.get('BTC') as ChainPort;
  let left = 1;
  const interrupt = () => {
    if (left-- === 1) happens();
  };
  const first = <T>(asked: typeof method, ask: () => T): T => {
    if (asked === method) interrupt();
    return ask();
  };
  const moved: ChainPort = {
    ...port,
    mempool: () => first('mempool', () => port.mempool()),
    hashAt: (height) => first('hashAt', () => port.hashAt(height)),
    readBlock: (hash, watch) => first('readBlock', () => port.readBlock(hash, watch)),
  };
  const ctx = { ...chain.ctx, ports: { ...chain.ctx.ports, chains: new Map([['BTC' as const, moved]]) } };
  chain.watcher = createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx) });
}

test('a block that comes while the mempool is listed takes no payment away', async () => {
  const owed = await chain.owe();
  node.pay([{ script: owed.script, minor: 9_000n }]);
  await chain.catchUp();
  await interrupted('mempool', () => node.mine(1));
  expect(await chain.watcher.pass()).toMatchObject({ caughtUp: false });
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', gone: false }]);
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
});

test.each(['hashAt', 'readBlock'] as const)(
  'a branch that is replaced at %s leaves everything where it belongs',
  async (method) => {
    const owed = await chain.owe();
    node.pay([{ script: owed.script, minor: 9_000n }]);
    node.mine(4);
    await interrupted(method, () => node.reorg(3, { drop: false }));
    await chain.catchUp();
    expect((await chain.cursor())?.hash).toBe(node.state.active.at(-1)?.hash);
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
  },
);

test('a branch that is replaced while a replaced branch is read', async () => {
  const owed = await chain.owe();
  node.pay([{ script: owed.script, minor: 9_000n }]);
  node.mine(3);
  await chain.catchUp();
  node.reorg(3, { drop: false });
  await interrupted('readBlock', () => node.reorg(2, { drop: false }));
  await chain.catchUp();
  expect((await chain.cursor())?.hash).toBe(node.state.active.at(-1)?.hash);
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', gone: false }]);
});

test('a payment 120 blocks deep is double-spent by a branch that a new watcher reads', async () => {
  const owed = await chain.owe();
  node.pay([{ script: owed.script, minor: 9_000n }]);
  node.mine(120);
  await chain.catchUp();
  await chain.restart();
  node.mine(1);
  await chain.catchUp();
  node.reorg(121, { drop: true });
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ state: 'conflicted', height: null }]);
});

const moves = fc.array(fc.record({ what: fc.nat(7), which: fc.nat(255) }), { minLength: 5, maxLength: 60 });

test('whatever happens in whatever order, the watcher ends with what is true', async () => {
  await fc.assert(
    fc.asyncProperty(moves, async (steps) => {
      const owed = await Promise.all(Array.from({ length: 3 }, () => chain.owe()));
      const paid: NonNullable<ReturnType<typeof node.pay>>[] = [];
      for (const [i, { what, which }] of steps.entries()) {
        const { script } = owed[which % owed.length] as (typeof owed)[number];
        const outputs = [{ script, minor: 1_000n + BigInt(which % 3) }];
        if (what <= 1) paid.push(node.pay(outputs) as (typeof paid)[number]);
        else if (what === 2) node.mine(1);
        else if (what === 3) node.reorg(1 + (which % 4), { drop: which % 3 === 0 });
        else if (what === 4) replaceOne(paid, which, which % 2 === 0 ? outputs : []);
        else if (what === 5) await chain.restart({ blocksPerPass: 2 });
        else await chain.watcher.pass();
        if (i % 7 === 6) await chain.catchUp();
      }
      await chain.catchUp();
      for (const one of owed) {
        const facts = (await chain.facts(one)).filter((fact) => fact.state === 'mined' || fact.state === 'mempool');
        const truth = node
          .received(one.script.toString('hex'))
          .map((coin) => `${coin.txid} ${coin.minor} ${coin.confirmations > 0}`);
        expect(facts.map((fact) => `${fact.txid} ${fact.amount} ${fact.state === 'mined'}`).sort()).toEqual(truth.sort());
      }
    }),
    { numRuns: RUNS },
  );
}, 120_000);

/** Replaces one of the payments that are still in the mempool. */
function replaceOne(
  paid: readonly NonNullable<ReturnType<typeof node.pay>>[],
  which: number,
  outputs: readonly { script: Buffer; minor: bigint }[],
): void {
  const waiting = paid.filter((one) => node.state.mempool.has(one.txid));
  const one = waiting[which % Math.max(1, waiting.length)];
  if (one !== undefined) node.replace(one, outputs);
}
