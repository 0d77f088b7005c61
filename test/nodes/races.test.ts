// The chain moves while the watcher reads it: between two of its requests a block comes, or a branch is replaced. No payment may look
// missing because of that. And what a new watcher does not remember is found again before a deep branch is read.
import fc from 'fast-check';
import pg from 'pg';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { ChainPort, MempoolPush } from '../../src/core/ports.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { type Transaction, transactionBytes } from '../../src/sandbox/utxo/transaction.ts';
import type { Database } from '../../src/store/postgres/connect.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { createChainWatcher } from '../../src/worker/chain/watcher.ts';
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

test.each([3, 6, 10])(
  'a double spend in a reorganisation of depth %i, deeper than the first block that was ever read, is found',
  async (depth) => {
    node.mine(20);
    await chain.close();
    chain = await watchChain('BTC', node.url);
    await chain.catchUp();
    const owed = await chain.owe();
    node.pay([{ script: owed.script, minor: 9_000n }]);
    node.mine(1);
    await chain.catchUp();
    node.reorg(depth, { drop: true });
    await chain.catchUp();
    const [lost] = await chain.facts(owed);
    expect(lost).toMatchObject({ state: 'conflicted', height: null });
    expect(lost?.conflictTxid).toMatch(/^[0-9a-f]{64}$/);
  },
);

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

test('a block that is taken back lets its payment fall into the mempool at once: whoever looks right after that never sees it missing', async () => {
  const owed = await chain.owe();
  node.pay([{ script: owed.script, minor: 9_000n }]);
  node.mine(2);
  await chain.catchUp();
  node.reorg(2, { drop: false });
  const seen: string[] = [];
  await chain.watcher.close();
  chain.watcher = watcherOn(() => ({}), {
    ...chain.db,
    async transaction(work) {
      const done = await chain.db.transaction(work);
      seen.push(...(await chain.facts(owed)).map((fact) => fact.state));
      return done;
    },
  });
  await chain.catchUp();
  expect(new Set(seen)).toEqual(new Set(['mempool']));
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

test.each([{ watcher: 'the same watcher' }, { watcher: 'a new one' }])(
  'a payment that was out of the mempool for five days and comes back is there again for $watcher',
  async ({ watcher }) => {
    const owed = await chain.owe({ ageDays: 29 });
    const paid = node.pay([{ script: owed.script, minor: 9_000n }]) as Transaction;
    await chain.catchUp();
    node.deny(paid, true);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'gone', gone: true }]);
    chain.skew += 5 * 86_400_000; // its address is older than thirty days now
    await chain.catchUp();
    if (watcher === 'a new one') await chain.restart();
    node.deny(paid, false);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ txid: paid.txid, state: 'mempool', gone: false }]);
  },
);

/** Another watcher on the same database, whose node answers in its own way. */
function watcherOn(changed: (port: ChainPort) => Partial<ChainPort>, db: Database = chain.db) {
  const port = chain.ctx.ports.chains.get('BTC') as ChainPort;
  const ctx = {
    ...chain.ctx,
    db,
    ports: { ...chain.ctx.ports, chains: new Map([['BTC' as const, { ...port, ...changed(port) }]]) },
  };
  return createChainWatcher(ctx, 'BTC', { scripts: createWatchedScripts(ctx) });
}

test('a watcher that lost its lock while it listed the mempool takes back nothing that its successor has seen', async () => {
  const owed = await chain.owe();
  await chain.watcher.close();
  const successor = watcherOn(() => ({}));
  let left = 2;
  const first = watcherOn((port) => ({
    condition: () => port.condition(),
    async mempool() {
      const listing = await port.mempool();
      if (--left !== 0) return listing;
      await endLockSessions();
      node.pay([{ script: owed.script, minor: 9_000n }]);
      // its session may just be breaking
      while ((await successor.pass().catch(() => null))?.role !== 'watching');
      expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
      return listing;
    },
  }));
  await first.pass();
  // a list that has changed is compared with what is recorded
  node.pay([{ script: Buffer.concat([Buffer.from('0014', 'hex'), Buffer.alloc(20, 9)]), minor: 9_000n }]);
  expect(await first.pass()).toMatchObject({ role: 'watching', caughtUp: false, more: true });
  expect(left).toBe(0);
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', gone: false }]);
  await Promise.all([first.close(), successor.close()]);
});
async function endLockSessions(): Promise<void> {
  const admin = new pg.Client({ connectionString: chain.url });
  await admin.connect();
  await admin.query(
    `select pg_terminate_backend(l.pid) from pg_locks l join pg_database d on d.oid = l.database
      where l.locktype = 'advisory' and d.datname = current_database()`,
  );
  await admin.end();
}

describe('what the node pushes', () => {
  let push: MempoolPush | undefined;
  const raw = (tx: Transaction | null): Uint8Array => transactionBytes(tx as Transaction, true);
  beforeEach(async () => {
    await chain.watcher.close();
    push = undefined;
    chain.watcher = watcherOn((port) => ({
      async subscribe(given) {
        push = given;
        return { isLive: () => true, close: async () => undefined };
      },
      // whole lists take their time, so that pushes are trusted for two seconds
      async mempool() {
        await new Promise((resolve) => setTimeout(resolve, 100));
        return port.mempool();
      },
    }));
    await chain.catchUp();
  });
  /** Waits until the watcher has understood it. */
  async function pushed(tx: Transaction | null): Promise<void> {
    const understood = new Promise<void>((resolve) => chain.watcher.onHint(resolve));
    push?.onTransactions([raw(tx)]);
    await understood;
  }

  test('and was replaced before it is recorded takes nothing from what replaced it', async () => {
    const owed = await chain.owe();
    const first = node.pay([{ script: owed.script, minor: 9_000n }]);
    const second = node.replace(first as Transaction, [{ script: owed.script, minor: 8_000n }]);
    await pushed(second);
    await chain.watcher.pass({ quiet: true });
    expect(await chain.facts(owed)).toMatchObject([{ txid: second?.txid, state: 'mempool' }]);
    await pushed(first);
    await chain.watcher.pass({ quiet: true });
    expect(await chain.facts(owed)).toMatchObject([{ txid: second?.txid, state: 'mempool', conflictTxid: null }]);
  });

  test('came when all that was pushed before it had been recorded, not when the whole list was last read', async () => {
    const owed = await chain.owe();
    const listedAtMs = (await chain.cursor())?.caught_up_at.getTime() ?? 0;
    chain.skew += 5_000;
    const beganMs = chain.ctx.ports.clock.now();
    expect(await chain.watcher.pass({ quiet: true })).toMatchObject({ state: 'ready', caughtUp: false });
    await pushed(node.pay([{ script: owed.script, minor: 9_000n }]));
    await chain.watcher.pass({ quiet: true });
    expect((await chain.cursor())?.caught_up_at.getTime()).toBe(listedAtMs);
    const { rows } = await chain.db.query<{ caught_up_at: Date }>({ text: 'select caught_up_at from payments' });
    expect(rows[0]?.caught_up_at.getTime()).toBeGreaterThanOrEqual(beganMs);
  });
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
        const expected = node
          .received(one.script.toString('hex'))
          .map((payment) => `${payment.txid} ${payment.minor} ${payment.confirmations > 0}`);
        expect(facts.map((fact) => `${fact.txid} ${fact.amount} ${fact.state === 'mined'}`).sort()).toEqual(expected.sort());
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
