// An output that was at an address before its transaction was created is never its payment, on whatever path it is found: it is recorded,
// the audit names it, and an operator can acknowledge it. On the sandbox's node.
import { afterEach, beforeEach, expect, test } from 'vitest';
import { createSimulatedNode } from '../../src/sandbox/utxo/served-node.ts';
import { acceptEarly, acknowledgeEarly } from '../../src/store/chain/early-payments.ts';
import { ask } from '../../src/store/ledger/audit.ts';
import { RECONCILIATION } from '../../src/store/ledger/reconciliation.ts';
import { findTransactions, readFoundTransaction } from '../../src/store/transactions/lookup.ts';
import { reconcile } from '../../src/worker/rescan/reconciler.ts';
import { deepScan, lookUpAgain } from '../../src/worker/rescan/rescan.ts';
import { rescan } from '../../src/worker/rescan/rescan-all.ts';
import type { Engine } from './engine.ts';
import { ENGINES } from './engines.ts';
import { freshAddress, type Owed, type WatchedChain, watchChain } from './watched-chain.ts';

const HOUR_MS = 3_600_000;
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

/** An address that was given to somebody whose transaction is lost: the next one gets it again. */
const lostScript = (): Buffer => Buffer.from(freshAddress('BTC').script);
const noted = async ({ db } = chain) =>
  (await db.query<{ txid: string; transaction_id: string }>({ text: 'select txid, transaction_id from early_payments' })).rows;
/** What the audit says of chain and books: the ids of what is red. */
async function red(): Promise<string[]> {
  const answers = await ask(chain.db, RECONCILIATION, 1_000_000);
  return answers.filter(({ findings }) => findings.length > 0).map(({ id }) => id);
}
/** Everything that reads blocks and the mempool again. */
async function readAllAgain(owed: Owed, fromHeight = 1): Promise<void> {
  await deepScan(chain.ctx, 'BTC');
  expect(await lookUpAgain(chain.ctx, 'BTC', { fromHeight, scripts: [owed.script], firstSeen: chain.watcher.firstSeen })).toBe(
    true,
  );
  expect(await rescan(chain.ctx, 'BTC', { fromHeight })).toMatchObject({ found: [], lost: [] });
  for (let more = true; more; ) ({ more } = await reconcile(chain.ctx, 'BTC'));
}

test('a payment in a block that was read before the transaction was made is noted by whoever reads it again, and never a payment', async () => {
  const script = lostScript();
  const txid = await engine.pay([{ script, minor: 5_000n }]);
  await engine.mine(1);
  await chain.catchUp();
  const owed = await chain.owe({ script });
  await engine.mine(8);
  await chain.catchUp();
  await readAllAgain(owed);
  expect(await chain.facts(owed)).toEqual([]);
  expect(await noted()).toEqual([{ txid, transaction_id: owed.id }]);
  expect(await red()).toEqual(['EARLY-1']);
});

test('the second reading alone notes it too', async () => {
  const script = lostScript();
  await engine.pay([{ script, minor: 5_000n }]);
  await engine.mine(1);
  await chain.catchUp();
  await chain.owe({ script });
  await engine.mine(8);
  await chain.catchUp();
  await deepScan({ ...chain.ctx, ports: { ...chain.ctx.ports, chains: new Map() } }, 'BTC');
  for (let more = true; more; ) ({ more } = await reconcile(chain.ctx, 'BTC'));
  expect(await noted()).toHaveLength(1);
  expect(await red()).toEqual(['EARLY-1']);
});

test('a payment that waited in the mempool before the transaction was made never counts: not there, not in a block, not when it comes again', async () => {
  const script = lostScript();
  const txid = await engine.pay([{ script, minor: 5_000n }]);
  await chain.catchUp();
  const owed = await chain.owe({ script });
  await chain.catchUp();
  expect(await chain.facts(owed)).toEqual([]);
  await readAllAgain(owed);
  await engine.mine(1);
  await chain.catchUp();
  expect(await chain.facts(owed)).toEqual([]);
  expect(await noted()).toEqual([{ txid, transaction_id: owed.id }]);
  // out of its block, into the mempool, into another block
  await engine.reorg(1, { drop: false });
  await chain.catchUp();
  await engine.mine(8);
  await chain.catchUp();
  await readAllAgain(owed);
  expect(await chain.facts(owed)).toEqual([]);
  expect(await red()).toEqual(['EARLY-1']);
});

test('what is paid to the same address afterwards is a payment', async () => {
  const script = lostScript();
  await engine.pay([{ script, minor: 5_000n }]);
  await chain.catchUp();
  const owed = await chain.owe({ script });
  const txid = await engine.pay([{ script, minor: 6_000n }]);
  await chain.catchUp();
  expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', amount: 6_000n }]);
  await engine.mine(8);
  await chain.catchUp();
  await readAllAgain(owed);
  expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined', amount: 6_000n }]);
  expect(await noted()).toHaveLength(1);
});

test('one transaction that pays two: the payment of the younger one is noted, that of the older one is its payment', async () => {
  const script = lostScript();
  const older = await chain.owe();
  await engine.pay([
    { script: older.script, minor: 5_000n },
    { script, minor: 6_000n },
  ]);
  await chain.catchUp();
  const younger = await chain.owe({ script });
  await engine.mine(8);
  await chain.catchUp();
  await readAllAgain(younger);
  expect(await chain.facts(older)).toMatchObject([{ amount: 5_000n, state: 'mined' }]);
  expect(await chain.facts(younger)).toEqual([]);
  expect(await noted()).toMatchObject([{ transaction_id: younger.id }]);
});

test('a block that a reorganisation brings after the transaction was made can pay it', async () => {
  const owedBefore = await chain.owe();
  await engine.mine(3);
  await chain.catchUp();
  const owed = await chain.owe();
  await engine.pay([{ script: owed.script, minor: 5_000n }]);
  await engine.rewind(2);
  await engine.mine(3);
  await chain.catchUp();
  await readAllAgain(owed);
  expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', height: (await engine.height()) - 2 }]);
  expect(await chain.facts(owedBefore)).toEqual([]);
  expect(await noted()).toEqual([]);
});

test('a payer never suffers from an outage: paid and mined while no worker ran, or while a worker started again', async () => {
  const [first, second] = [await chain.owe(), await chain.owe()];
  await engine.pay([{ script: first.script, minor: 5_000n }]);
  await engine.mine(1);
  await engine.pay([{ script: second.script, minor: 5_000n }]);
  await chain.restart();
  await chain.catchUp();
  await engine.mine(1);
  await chain.catchUp();
  expect(await chain.facts(first)).toMatchObject([{ state: 'mined' }]);
  expect(await chain.facts(second)).toMatchObject([{ state: 'mined' }]);
  expect(await noted()).toEqual([]);
});

test.each([
  { hours: 47, blocks: 300, isPayment: true },
  { hours: 49, blocks: 280, isPayment: true },
  { hours: 49, blocks: 289, isPayment: false },
])(
  "after a worker's restart the node's word for when it came in counts only where clocks and blocks both say two days ($hours hours, $blocks blocks)",
  { timeout: 60_000 },
  async ({ hours, blocks, isPayment }) => {
    const node = await createSimulatedNode({ currency: 'BTC', folder: null, now: () => Date.now() });
    node.mine(2);
    const chain = await watchChain('BTC', node.url);
    try {
      await chain.catchUp();
      const script = lostScript();
      node.pay([{ script, minor: 5_000n }]);
      node.mine(blocks, { transactions: [] });
      await chain.catchUp();
      chain.skew = hours * HOUR_MS;
      const owed = await chain.owe({ script });
      await chain.restart();
      await chain.catchUp();
      expect(await chain.facts(owed)).toHaveLength(isPayment ? 1 : 0);
      expect(await noted(chain)).toHaveLength(isPayment ? 0 : 1);
    } finally {
      await chain.close();
      await node.stop();
    }
  },
);

test.each(['a worker that runs', 'a worker that starts'])(
  '%s takes no payment from a payer because our clock is days ahead',
  async (which) => {
    await engine.mine(3);
    await chain.catchUp();
    chain.skew = 72 * HOUR_MS;
    const owed = await chain.owe();
    if (which === 'a worker that starts') await chain.restart();
    await engine.pay([{ script: owed.script, minor: 5_000n }]);
    await chain.catchUp();
    expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool', amount: 5_000n }]);
    expect(await noted()).toEqual([]);
  },
);

test('a clock that was days ahead when the transaction was made takes no payment from it', async () => {
  chain.skew = 72 * HOUR_MS;
  const owed = await chain.owe();
  chain.skew = 0;
  await chain.restart();
  await engine.pay([{ script: owed.script, minor: 5_000n }]);
  await chain.catchUp();
  expect(await chain.facts(owed)).toHaveLength(1);
});

test('a database that was set back: what the worker saw before lies before all that is made after', async () => {
  const script = lostScript();
  await chain.db.query({ text: `select nextval('fact_order') from generate_series(1, 1000)` });
  await engine.pay([{ script, minor: 5_000n }]);
  await chain.catchUp();
  await chain.db.query({ text: `select setval('fact_order', 500)` });
  await engine.pay([{ script: lostScript(), minor: 5_000n }]); // something new in the mempool: the worker reads the number again
  await chain.catchUp();
  const owed = await chain.owe({ script });
  await engine.mine(1);
  await chain.catchUp();
  expect(await chain.facts(owed)).toEqual([]);
  expect(await noted()).toHaveLength(1);
});

test('an operator who has looked at it acknowledges it, and the audit is green', async () => {
  const script = lostScript();
  const txid = await engine.pay([{ script, minor: 5_000n }]);
  await chain.catchUp();
  await chain.owe({ script });
  await engine.mine(1);
  await chain.catchUp();
  expect(await red()).toEqual(['EARLY-1']);
  const { rows } = await chain.db.query<{ vout: number }>({ text: 'select vout from early_payments' });
  const outpoint = `${txid}:${rows[0]!.vout}`;
  expect(await acknowledgeEarly(chain.db, `${txid}:99`, 'ann', new Date(0))).toBe(false);
  expect(await acknowledgeEarly(chain.db, outpoint, 'ann', new Date(0))).toBe(true);
  expect(await red()).toEqual([]);
});

test('an operator finds it by its txid, and can decide that it is a payment after all: the next reading of its block records it', async () => {
  const script = lostScript();
  const txid = await engine.pay([{ script, minor: 5_000n }]);
  await chain.catchUp();
  const owed = await chain.owe({ script });
  await engine.mine(1);
  await chain.catchUp();
  expect(await findTransactions(chain.db, txid, 10)).toEqual([owed.id]);
  const { earlyPayments } = (await readFoundTransaction(chain.db, owed.id))!;
  expect(earlyPayments).toMatchObject([{ currency: 'BTC', txid, amount: 5_000n, state: 'noted' }]);
  const outpoint = `${txid}:${earlyPayments[0]!.vout}`;
  const at = new Date(0);
  expect(await acceptEarly(chain.db, `${txid}:99`, 'ann', at)).toBeNull();
  await acknowledgeEarly(chain.db, outpoint, 'ann', at);
  expect((await readFoundTransaction(chain.db, owed.id))!.earlyPayments).toMatchObject([{ state: 'acknowledged' }]);
  // what was only looked at stays out of the books
  const fromHeight = await engine.height();
  expect(await rescan(chain.ctx, 'BTC', { fromHeight })).toMatchObject({ found: [] });
  expect(await chain.facts(owed)).toEqual([]);
  expect(await acceptEarly(chain.db, outpoint, 'ann', at)).toMatchObject({ currency: 'BTC', transactionId: owed.id });
  expect(await rescan(chain.ctx, 'BTC', { fromHeight })).toMatchObject({ found: [{ outpoint, transactionId: owed.id }] });
  expect(await chain.facts(owed)).toMatchObject([{ txid, amount: 5_000n, state: 'mined', height: fromHeight }]);
  expect((await readFoundTransaction(chain.db, owed.id))!.earlyPayments).toMatchObject([{ state: 'accepted' }]);
  await engine.mine(8);
  await chain.catchUp();
  for (let more = true; more; ) ({ more } = await reconcile(chain.ctx, 'BTC'));
  expect(await red()).not.toContain('EARLY-1');
  expect(await red()).not.toContain('RECON-1');
});
