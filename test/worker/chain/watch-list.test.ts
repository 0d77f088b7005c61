// The watch list: exact, small, fast enough for every output of a block, and fresh: it has what was committed before a look began.
import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createSimulatedNode, type ServedNode } from '../../../src/sandbox/utxo/served-node.ts';
import { createByteSet } from '../../../src/worker/chain/byte-set.ts';
import { createWatchedScripts, createWatchList } from '../../../src/worker/chain/watch-list.ts';
import { type WatchedChain, watchChain } from '../../nodes/watched-chain.ts';

describe('a set of byte strings', () => {
  test('holds what a Set of texts holds', () => {
    fc.assert(
      fc.property(
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 6 })),
        fc.array(fc.uint8Array({ minLength: 1, maxLength: 6 })),
        (added, asked) => {
          const set = createByteSet();
          const model = new Set<string>();
          for (const bytes of added) {
            expect(set.add(bytes, 0, bytes.length)).toBe(!model.has(bytes.join()));
            model.add(bytes.join());
          }
          expect(set.size).toBe(model.size);
          for (const bytes of [...asked, ...added]) {
            const padded = Uint8Array.from([9, ...bytes, 9]);
            expect(set.has(padded, 1, 1 + bytes.length)).toBe(model.has(bytes.join()));
          }
        },
      ),
      { numRuns: 300 },
    );
  });

  test('a million scripts stay below 60 MB, and every one is found', () => {
    const set = createByteSet();
    const random = randomBytes(20_000_000);
    const script = Buffer.from(`0014${'00'.repeat(20)}`, 'hex');
    for (let i = 0; i < 1_000_000; i++) {
      random.copy(script, 2, i * 20, i * 20 + 20);
      set.add(script, 0, 22);
    }
    expect(set.memoryBytes).toBeLessThan(60_000_000);
    let found = 0;
    for (let i = 0; i < 1_000_000; i += 10) {
      random.copy(script, 2, i * 20, i * 20 + 20);
      if (set.has(script, 0, 22)) found++;
    }
    expect(found).toBe(100_000);
    random.copy(script, 2, 1, 21);
    expect(set.has(script, 0, 22)).toBe(false);
  });
});

describe('the list of a chain', () => {
  let node: ServedNode;
  let chain: WatchedChain;
  beforeEach(async () => {
    node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
    chain = await watchChain('BTC', node.url);
  });
  afterEach(async () => {
    await chain.close();
    await node.stop();
  });

  test('holds the scripts of thirty days, and what is committed later as soon as it is asked to be fresh', async () => {
    const old = await chain.owe({ ageDays: 31 });
    const young = await chain.owe({ ageDays: 29 });
    const scripts = createWatchedScripts(chain.ctx);
    await scripts.fresh();
    expect([old, young].map(({ script }) => scripts.has(script, 0, script.length))).toEqual([false, true]);
    for (let i = 0; i < 5; i++) {
      const next = await chain.owe();
      expect(scripts.has(next.script, 0, next.script.length)).toBe(false);
      // callers that ask together share a look, and each gets one that began after it asked
      await Promise.all([scripts.fresh(), scripts.fresh(), scripts.fresh()]);
      expect(scripts.has(next.script, 0, next.script.length)).toBe(true);
    }
    expect(scripts.size).toBe(6);
  });

  test('a look that began before the commit does not count for a caller that asks after it', async () => {
    const scripts = createWatchedScripts(chain.ctx);
    await scripts.fresh();
    for (let i = 0; i < 20; i++) {
      const early = scripts.fresh();
      const next = await chain.owe();
      await scripts.fresh();
      expect(scripts.has(next.script, 0, next.script.length)).toBe(true);
      await early;
    }
  });

  test('one that waits for its chain to be read past its window stays in it, however long the outage was', async () => {
    const waiting = await chain.owe({ ageDays: 40 });
    await chain.db.query({
      text: `update transactions set status = 'started', window_ends_at = created_at + interval '15 minutes', due_at = created_at + interval '15 minutes' where id = $1`,
      values: [waiting.id],
    });
    const scripts = createWatchedScripts(chain.ctx);
    await scripts.fresh();
    expect(scripts.has(waiting.script, 0, waiting.script.length)).toBe(true);
  });

  test('an old address with a payment that can still change stays in it', async () => {
    const old = await chain.owe({ ageDays: 40 });
    await chain.db.query({
      text: `insert into payments (transaction_id, currency, txid, vout, amount, twin_key, state, seen_at, caught_up_at, found_mined)
               values ($1, 'BTC', $2, 0, 1, $3, 'mempool', now(), now(), false)`,
      values: [old.id, 'ab'.repeat(32), randomBytes(32)],
    });
    await chain.db.query({
      text: `insert into payment_inputs (currency, prev_txid, prev_vout, txid) values ('BTC', $1, 258, $2)`,
      values: ['0123456789abcdef'.repeat(4), 'ab'.repeat(32)],
    });
    const list = createWatchList(chain.ctx, 'BTC', createWatchedScripts(chain.ctx));
    await list.fresh();
    expect(list.hasScript(old.script, 0, old.script.length)).toBe(true);
    const outpoint = Buffer.concat([Buffer.from('0123456789abcdef'.repeat(4), 'hex').reverse(), Buffer.from([2, 1, 0, 0])]);
    expect(list.hasOutpoint(outpoint, 0)).toBe(true);
    outpoint[32] = 3;
    expect(list.hasOutpoint(outpoint, 0)).toBe(false);
  });

  test('rows restored from another cluster do not count as new for ever', async () => {
    await chain.owe();
    await chain.db.query({ text: `update transactions set made_in = '9000000000'` });
    const scripts = createWatchedScripts(chain.ctx);
    await scripts.fresh();
    expect(scripts.size).toBe(1);
    const { rows } = await chain.db.query<{ n: bigint }>({
      text: `select count(*) as n from transactions where made_in = '9000000000'`,
    });
    expect(rows[0]?.n).toBe(0n);
  });
});
