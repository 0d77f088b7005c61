// Outputs at a script of ours that our key does not control on their chain: a witness program where there is no segwit. Whoever mines the
// next block can take them back, so no path makes a payment of them; they are recorded once. On the sandbox's nodes of the five chains.
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { finalDepth } from '../../src/core/confirmations.ts';
import type { UtxoCode } from '../../src/core/currency.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { readUnprotected, takeUnreported } from '../../src/store/chain/unprotected-payments.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { deepScan, lookUpAgain } from '../../src/worker/rescan/rescan.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import { type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

vi.setConfig({ testTimeout: 60_000 });

let node: ServedNode;
let chain: WatchedChain;
/** Where the watcher began. */
let tip: number;
async function open(currency: UtxoCode): Promise<void> {
  node = await createSimulatedNode({ currency, folder: null, now: () => Date.now() + (chain?.skew ?? 0) });
  node.mine(3);
  tip = node.state.active.length - 1;
  chain = await watchChain(currency, node.url);
  await chain.catchUp();
}
afterEach(async () => {
  await chain.close();
  await node.stop();
});

const pay = (owed: Owed, minor = 5_000_000n): string => node.pay([{ script: owed.script, minor }])?.txid as string;
const noted = () => readUnprotected(chain.db, 100);
async function receipts(): Promise<number> {
  const { rows } = await chain.db.query<{ n: bigint }>({ text: 'select count(*) as n from chain_receipts' });
  return Number(rows[0]?.n);
}

describe.each(['BCH', 'DASH', 'DOGE'] as const)('%s at the script of a BTC address', (currency) => {
  beforeEach(() => open(currency));

  test('is noted by the watcher, from the mempool on and once, and is no payment', async () => {
    const owed = await chain.owe({ currency: 'BTC' });
    await chain.takeDue(owed);
    const txid = pay(owed);
    await chain.catchUp();
    const note = { currency, outpoint: `${txid}:0`, transactionId: owed.id, amount: 5_000_000n };
    expect(await noted()).toMatchObject([{ ...note, height: null }]);
    expect(await takeUnreported(chain.db, currency, 0)).toHaveLength(1);
    node.mine(1);
    await chain.catchUp();
    expect(await noted()).toMatchObject([{ ...note, height: tip + 1 }]);
    node.reorg(2, { drop: false });
    node.mine(1);
    await chain.catchUp();
    expect(await noted()).toHaveLength(1);
    expect(await takeUnreported(chain.db, currency, 0)).toEqual([]);
    expect(await chain.facts(owed)).toEqual([]);
    expect(await chain.takeDue(owed)).toBe(false);
  });

  test('is no payment by a look-up, the deep scan, a rescan or the second reading', async () => {
    const old = await chain.owe({ currency: 'BTC', ageDays: 40 });
    const mined = pay(old);
    node.mine(finalDepth(currency).depth + 1);
    const waiting = pay(old, 6_000_000n);
    await chain.catchUp();
    expect(await noted()).toEqual([]);
    expect(await lookUpAgain(chain.ctx, currency, { fromHeight: tip, scripts: [old.script] })).toBe(true);
    expect((await readUnprotected(chain.db, 100)).map((payment) => payment.outpoint).sort()).toEqual(
      [`${mined}:0`, `${waiting}:0`].sort(),
    );
    expect(await deepScan(chain.ctx, currency)).toBeGreaterThan(0);
    await chain.db.query({ text: 'delete from unprotected_payments' });
    expect(await rescan(chain.ctx, currency, { fromHeight: tip + 1 })).toMatchObject({ found: [], lost: [] });
    expect((await readUnprotected(chain.db, 100)).map((payment) => payment.outpoint)).toEqual([`${mined}:0`]);
    expect(await reconcile(chain.ctx, currency)).toMatchObject({ trouble: null, blocksRead: 2 });
    expect([await receipts(), await chain.facts(old)]).toEqual([0, []]);
  });

  test('does not take a payment in the same transaction along', async () => {
    const [witness, own] = [await chain.owe({ currency: 'BTC' }), await chain.owe()];
    const txid = node.pay([
      { script: witness.script, minor: 7_000_000n },
      { script: own.script, minor: 8_000_000n },
    ])?.txid;
    node.mine(1);
    await chain.catchUp();
    expect(await chain.facts(own)).toMatchObject([{ txid, vout: 1, amount: 8_000_000n, state: 'mined' }]);
    expect(await noted()).toMatchObject([{ outpoint: `${txid}:0`, amount: 7_000_000n }]);
    expect(await chain.facts(witness)).toEqual([]);
  });

  test('fills no table when somebody repeats it for nothing', async () => {
    const owed = await chain.owe({ currency: 'BTC' });
    node.pay(Array.from({ length: 30 }, () => ({ script: owed.script, minor: 2_000_000n })));
    pay(owed);
    await chain.catchUp();
    node.mine(1);
    await chain.catchUp();
    const all = await readUnprotected(chain.db, 100);
    expect(all).toHaveLength(20);
    expect(all.every(({ height }) => height === tip + 1)).toBe(true);
  });
});

test.each([
  ['BTC', 'LTC'],
  ['LTC', 'BTC'],
  ['BTC', 'DOGE'],
  ['DOGE', 'BCH'],
  ['DASH', 'DOGE'],
  ['BCH', 'DASH'],
] as const)('%s at the script of an address of %s is a payment: the key controls it there', async (currency, asked) => {
  await open(currency);
  const owed = await chain.owe({ currency: asked });
  const txid = pay(owed);
  node.mine(1);
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined' }]);
  expect(await noted()).toEqual([]);
});
