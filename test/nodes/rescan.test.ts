// Blocks that the watchers have passed are read again: the last look-up of an address (rule 8), and the deep scan that finds payments to
// addresses of any age. And a reorganisation deeper than a hundred blocks. On the sandbox's node.
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { type ChainCursor, claimCursor, readCursor } from '../../src/store/chain/blocks.ts';
import { createBlockMemory } from '../../src/worker/rescan/block-script-fingerprints.ts';
import { deepScan, lookUpAgain } from '../../src/worker/rescan/rescan.ts';
import type { Engine } from './engine.ts';
import { ENGINES } from './engines.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

let engine: Engine;
let chain: WatchedChain;
beforeEach(async () => {
  engine = await (ENGINES.find(({ title }) => title === 'sandbox BTC') as (typeof ENGINES)[number]).start();
  chain = await watchChain('BTC', engine.url);
  await chain.catchUp();
});
afterEach(async () => {
  await chain?.close();
  await engine?.remove();
});

test('a payment on an address of forty days ago is not in the watch list, and found by the deep scan', async () => {
  const old = await chain.owe({ ageDays: 40 });
  const txid = await engine.pay([{ script: old.script, minor: 5_000n }]);
  await engine.mine(3);
  await chain.catchUp();
  expect(await chain.facts(old)).toEqual([]);
  expect(await deepScan(chain.ctx, 'BTC')).toBe(3);
  expect(await chain.facts(old)).toMatchObject([{ txid, state: 'mined', foundMined: true }]);
  expect(await chain.takeDue(old)).toBe(true);
  expect((await chain.cursor())?.deep_height).toBe(await engine.height());
  expect(await deepScan(chain.ctx, 'BTC')).toBe(0);
});

test('a watcher that moves the cursor while the deep scan records what it found takes nothing from it', async () => {
  const old = await chain.owe({ ageDays: 40 });
  await engine.pay([{ script: old.script, minor: 5_000n }]);
  await engine.mine(1);
  await chain.catchUp();
  const at = await readCursor(chain.db, 'BTC');
  let scan: Promise<number> = Promise.resolve(0);
  await chain.db.transaction(async (sql) => {
    await claimCursor(sql, 'BTC', at as ChainCursor);
    scan = deepScan(chain.ctx, 'BTC');
    await vi.waitFor(async () => {
      const { rows } = await chain.db.query({
        text: `select 1 from pg_locks where not granted and locktype = 'transactionid' and pid in (
                 select d.pid from pg_locks d where d.database = (select oid from pg_database where datname = current_database()))`,
      });
      expect(rows).toHaveLength(1);
    }, 10_000);
  });
  expect(await scan).toBe(1);
  expect(await chain.facts(old)).toMatchObject([{ state: 'mined' }]);
});

test('what the deep scan found is watched like any payment: its double spend is noticed', async () => {
  const old = await chain.owe({ ageDays: 40 });
  await engine.pay([{ script: old.script, minor: 5_000n }]);
  await engine.mine(1);
  await chain.catchUp();
  await deepScan(chain.ctx, 'BTC');
  await engine.reorg(1, { drop: true });
  await chain.catchUp();
  expect(await chain.facts(old)).toMatchObject([{ state: 'conflicted' }]);
  expect((await chain.cursor())?.deep_height).toBeLessThan(await engine.height());
});

test.each([
  { after: 'it was found', restarted: false },
  { after: 'a restart', restarted: true },
])(
  'what the deep scan found is seen again with its outputs after a reorganisation: back in the mempool, in another block ($after)',
  async ({ restarted }) => {
    const old = await chain.owe({ ageDays: 40 });
    const txid = await engine.pay([{ script: old.script, minor: 5_000n }]);
    await engine.mine(1);
    await chain.catchUp();
    await deepScan(chain.ctx, 'BTC');
    if (restarted) await chain.restart();
    await engine.reorg(1, { drop: false });
    await chain.catchUp();
    expect(await chain.facts(old)).toMatchObject([{ txid, state: 'mempool', gone: false }]);
    await engine.mine(1);
    await chain.catchUp();
    expect(await chain.facts(old)).toMatchObject([{ txid, state: 'mined', height: await engine.height(), gone: false }]);
    // a reorganisation that mines it at once
    await engine.reorg(1, { drop: false });
    await engine.mine(2);
    await chain.catchUp();
    expect(await chain.facts(old)).toMatchObject([{ txid, state: 'mined', gone: false }]);
  },
);

test('a look-up finds what lies in a block and in the mempool, once', async () => {
  const [mined, waiting, empty] = [await chain.owe({ ageDays: 40 }), await chain.owe({ ageDays: 40 }), await chain.owe()];
  const from = await engine.height();
  const first = await engine.pay([{ script: mined.script, minor: 5_000n }]);
  await engine.mine(2);
  const second = await engine.pay([{ script: waiting.script, minor: 6_000n }]);
  await chain.catchUp();
  const options = { fromHeight: from, scripts: [mined.script, waiting.script, empty.script] };
  for (let i = 0; i < 2; i++) expect(await lookUpAgain(chain.ctx, 'BTC', options)).toBe(true);
  expect(await chain.facts(mined)).toMatchObject([{ txid: first, state: 'mined' }]);
  expect(await chain.facts(waiting)).toMatchObject([{ txid: second, state: 'mempool' }]);
  expect(await chain.facts(empty)).toEqual([]);
});

test('a look-up that cannot be finished says so', async () => {
  const owed = await chain.owe();
  const options = { fromHeight: 1, scripts: [owed.script] };
  await engine.stop();
  expect(await lookUpAgain(chain.ctx, 'BTC', options)).toBe(false);
  await engine.start();
  expect(await lookUpAgain(chain.ctx, 'BTC', options)).toBe(true);
  await engine.mine(2);
  await chain.catchUp();
  await engine.rewind(1);
  expect(await lookUpAgain(chain.ctx, 'BTC', options)).toBe(false);
});

/** Counts the blocks that are fetched. */
function counted(): { readonly ctx: WatchedChain['ctx']; fetched: number } {
  const port = chain.ctx.ports.chains.get('BTC')!;
  const count = {
    fetched: 0,
    ctx: {
      ...chain.ctx,
      ports: {
        ...chain.ctx.ports,
        chains: new Map([
          [
            'BTC' as const,
            {
              ...port,
              readBlock: (...asked: Parameters<typeof port.readBlock>) => {
                count.fetched++;
                return port.readBlock(...asked);
              },
            },
          ],
        ]),
      },
    },
  };
  return count;
}

test('a block that was read once is fetched again only where it pays one of the addresses, whoever looks', async () => {
  const [mined, empty] = [await chain.owe({ ageDays: 40 }), await chain.owe()];
  const fromHeight = (await engine.height()) + 1;
  await engine.mine(4);
  const txid = await engine.pay([{ script: mined.script, minor: 5_000n }]);
  await engine.mine(5);
  await chain.catchUp();
  const count = counted();
  const memory = createBlockMemory();
  expect(await lookUpAgain(count.ctx, 'BTC', { fromHeight, scripts: [empty.script], memory })).toBe(true);
  expect(count.fetched).toBe(9);
  expect(await lookUpAgain(count.ctx, 'BTC', { fromHeight, scripts: [empty.script], memory })).toBe(true);
  expect(count.fetched).toBe(9);
  expect(await lookUpAgain(count.ctx, 'BTC', { fromHeight, scripts: [empty.script, mined.script], memory })).toBe(true);
  expect(count.fetched).toBe(10);
  expect(await chain.facts(mined)).toMatchObject([{ txid, state: 'mined', height: fromHeight + 4 }]);
});

test('what the deep scan has read the look-up knows, and an address that is younger than that reading too', async () => {
  await engine.mine(6);
  await chain.catchUp();
  const count = counted();
  const memory = createBlockMemory();
  expect(await deepScan(count.ctx, 'BTC', { memory })).toBe(6);
  const owed = await chain.owe();
  const fetched = count.fetched;
  const fromHeight = (await engine.height()) - 5;
  expect(await lookUpAgain(count.ctx, 'BTC', { fromHeight, scripts: [owed.script], memory })).toBe(true);
  expect(count.fetched).toBe(fetched);
});

test('a look-up waits for the watcher where the node’s chain is another one', async () => {
  const owed = await chain.owe();
  await engine.mine(3);
  await chain.catchUp();
  const fromHeight = (await engine.height()) - 2;
  await engine.reorg(2);
  const memory = createBlockMemory();
  expect(await lookUpAgain(chain.ctx, 'BTC', { fromHeight, scripts: [owed.script], memory })).toBe(false);
  await chain.catchUp();
  expect(await lookUpAgain(chain.ctx, 'BTC', { fromHeight, scripts: [owed.script], memory })).toBe(true);
});

test('many blocks are read deeply in several batches, each payment found in its block', async () => {
  const olds = [await chain.owe({ ageDays: 40 }), await chain.owe({ ageDays: 50 }), await chain.owe({ ageDays: 60 })];
  const heights: number[] = [];
  for (const old of olds) {
    await engine.pay([{ script: old.script, minor: 5_000n }]);
    await engine.mine(45);
    heights.push((await engine.height()) - 44);
  }
  await chain.catchUp();
  expect(await deepScan(chain.ctx, 'BTC')).toBe(135);
  for (const [i, old] of olds.entries()) expect(await chain.facts(old)).toMatchObject([{ state: 'mined', height: heights[i] }]);
  expect((await chain.cursor())?.deep_height).toBe(await engine.height());
});

test('a reorganisation of 130 blocks ends where the chain is, with every payment in its place', async () => {
  const kept = await chain.owe();
  await engine.pay([{ script: kept.script, minor: 5_000n }]);
  await engine.mine(1);
  const lost = await chain.owe();
  await engine.pay([{ script: lost.script, minor: 6_000n }]);
  await engine.mine(130);
  await chain.catchUp();
  await engine.reorg(130);
  await chain.catchUp();
  expect((await chain.cursor())?.height).toBe(await engine.height());
  expect(await chain.facts(kept)).toMatchObject([{ state: 'mined' }]);
  expect(await chain.facts(lost)).toMatchObject([{ state: 'mempool', gone: false }]);
  await engine.mine(1);
  await chain.catchUp();
  expect(await chain.facts(lost)).toMatchObject([{ state: 'mined' }]);
});

test('a chain on which nothing of ours lies any more is followed from below our first block', async () => {
  const owed = await chain.owe();
  await engine.pay([{ script: owed.script, minor: 5_000n }]);
  await engine.mine(1);
  await chain.catchUp();
  await engine.reorg(3);
  await chain.catchUp();
  expect((await chain.cursor())?.height).toBe(await engine.height());
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
});

test('a transaction whose database transaction commits late is watched when it is there', async () => {
  const script = Buffer.concat([Buffer.from('0014', 'hex'), randomBytes(20)]);
  let finish: () => void = () => undefined;
  const held = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const model = await chain.owe();
  let begun: () => void = () => undefined;
  const inserted = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const late = chain.db.transaction(async (sql) => {
    await sql.query({
      text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                       address, script, created_at, window_ends_at)
               select id || 'x', merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments, id || 'x', $2, created_at, window_ends_at
                 from transactions where id = $1`,
      values: [model.id, script],
    });
    begun();
    await held;
  });
  await inserted;
  // others commit after it was made, and passes go by
  for (let i = 0; i < 3; i++) {
    await chain.owe();
    await engine.mine(1);
    await chain.catchUp();
  }
  finish();
  await late;
  await engine.pay([{ script, minor: 7_000n }]);
  await engine.mine(1);
  await chain.catchUp();
  expect(await chain.facts({ id: `${model.id}x`, script })).toMatchObject([{ state: 'mined' }]);
});
