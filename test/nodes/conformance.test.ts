// The same cases on a real bitcoind, a real litecoind and the sandbox's nodes: what happens on the chain is what the watcher records, in
// every order, through outages, restarts and reorganisations.
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type CurrencyCode, isUtxo, type UtxoCode } from '../../src/core/currency.ts';
import { createUtxoNode } from '../../src/outside/utxo/node/node.ts';
import type { Engine } from './engine.ts';
import { ENGINES } from './engines.ts';
import { createMatrix } from './matrix.ts';
import { type WatchedChain, watchChain } from './watched-chain.ts';

/** A currency whose addresses have the same form of script. */
const NEIGHBOUR: Readonly<Record<CurrencyCode, CurrencyCode>> = {
  BTC: 'LTC',
  LTC: 'BTC',
  BCH: 'DOGE',
  DASH: 'BCH',
  DOGE: 'DASH',
  ETH: 'USDT',
  USDT: 'ETH',
};

const NO_RIVALS = 'no rival can be got into the mempool of a daemon that is not ours to restart';

const matrix = createMatrix();
afterAll(() => console.log(matrix.text()));

for (const { title, currency, start } of ENGINES) {
  describe(title, () => {
    let engine: Engine;
    let chain: WatchedChain;
    const units = (minor: bigint): bigint => minor * engine.unit;
    beforeAll(async () => {
      engine = await start();
      console.log(`conformance: ${engine.currency} on ${engine.name}`);
    });
    afterAll(() => engine?.remove());
    beforeEach(async () => {
      chain = await watchChain(engine.currency, engine.url, { contract: engine.contract ?? null });
      await chain.catchUp();
    });
    afterEach(async ({ task }) => {
      matrix.note({ currency, engine: engine?.name ?? title, what: task.name, state: task.result?.state ?? 'run' });
      await chain?.close();
    });

    test('begins at the tip', async () => {
      expect(await chain.cursor()).toMatchObject({ height: await engine.height(), deep_height: await engine.height() });
    });

    test.runIf(isUtxo(currency))('says what a transaction costs', async () => {
      const clock = { now: () => Date.now() };
      const node = createUtxoNode({ currency: currency as UtxoCode, url: engine.url, network: 'regtest', clock });
      expect(await node.feeRate()).toBeGreaterThanOrEqual(1_000n);
      await node.close();
    });

    test('a payment is seen in the mempool, then in its block', async () => {
      const owed = await chain.owe();
      const txid = await engine.pay([{ script: owed.script, minor: units(123_456n) }]);
      expect(await chain.catchUp()).toMatchObject({ state: 'ready', caughtUp: true });
      expect(await chain.facts(owed)).toMatchObject([
        { txid, amount: units(123_456n), state: 'mempool', height: null, foundMined: false },
      ]);
      expect(await chain.takeDue(owed)).toBe(true);
      await chain.catchUp();
      expect(await chain.takeDue(owed)).toBe(false);
      await engine.mine(1);
      expect(await chain.catchUp()).toMatchObject({ blocksRead: 1, caughtUp: true });
      expect(await chain.facts(owed)).toMatchObject([
        { txid, state: 'mined', height: await engine.height(), foundMined: false, gone: false },
      ]);
      expect(await chain.takeDue(owed)).toBe(true);
    });

    test('several outputs of one transaction, to one address and to two, are payments of their own', async () => {
      const [one, two] = [await chain.owe(), await chain.owe()];
      const txid = await engine.pay([
        { script: one.script, minor: units(50_000n) },
        { script: two.script, minor: units(60_000n) },
      ]);
      const second = await engine.pay([{ script: one.script, minor: units(50_000n) }]);
      await engine.mine(1);
      await chain.catchUp();
      const facts = await chain.facts(one);
      expect(facts.map((fact) => fact.txid).sort()).toEqual([txid, second].sort());
      expect(facts.every((fact) => fact.amount === units(50_000n) && fact.foundMined)).toBe(true);
      expect(await chain.facts(two)).toMatchObject([{ txid, amount: units(60_000n), state: 'mined' }]);
    });

    test('a transaction that was made while the watcher ran is watched at once', async () => {
      for (let i = 0; i < 3; i++) {
        const owed = await chain.owe();
        await engine.pay([{ script: owed.script, minor: units(30_000n) }]);
        await engine.mine(1);
        await chain.catchUp();
        expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
      }
    });

    test('a payment at the address of another currency is recorded under the chain it came on', async () => {
      const owed = await chain.owe({ currency: NEIGHBOUR[engine.currency] });
      await engine.pay([{ script: owed.script, minor: units(40_000n) }]);
      await engine.mine(1);
      await chain.catchUp();
      expect(await chain.facts(owed)).toHaveLength(1);
    });

    test('catches up after an outage, through restarts in the middle, and misses and repeats nothing', async () => {
      const owed = await Promise.all(Array.from({ length: 6 }, () => chain.owe()));
      for (const [i, one] of owed.entries()) {
        await engine.pay([{ script: one.script, minor: units(20_000n + BigInt(i)) }]);
        await engine.mine(2);
      }
      const before = (await chain.cursor())?.caught_up_at.getTime() as number;
      let passes = 0;
      for (let done = false; !done; passes++) {
        await chain.restart({ blocksPerPass: 5 });
        const result = await chain.watcher.pass();
        expect(result.blocksRead).toBeLessThanOrEqual(5);
        if (!result.caughtUp) expect((await chain.cursor())?.caught_up_at.getTime()).toBe(before);
        done = result.caughtUp;
      }
      expect(passes).toBe(3);
      for (const one of owed) expect(await chain.facts(one)).toHaveLength(1);
      expect((await chain.cursor())?.caught_up_at.getTime()).toBeGreaterThan(before);
    });

    test('a reorganisation gives a payment back to the mempool, and a later block takes it again', async () => {
      const owed = await chain.owe();
      const txid = await engine.pay([{ script: owed.script, minor: units(70_000n) }]);
      await engine.mine(2);
      await chain.catchUp();
      await engine.reorg(2);
      expect(await chain.catchUp()).toMatchObject({ caughtUp: true, height: await engine.height() });
      expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mempool', height: null, gone: false }]);
      await engine.mine(1);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined', height: await engine.height() }]);
    });

    test('a reorganisation that double-spends a payment leaves it conflicted with its rival, and another one takes that back', async ({
      skip,
    }) => {
      skip(engine.replaces === false, NO_RIVALS);
      const owed = await chain.owe();
      const txid = await engine.pay([{ script: owed.script, minor: units(80_000n) }]);
      await engine.mine(1);
      await chain.catchUp();
      await engine.reorg(1, { drop: true });
      await chain.catchUp();
      const [lost] = await chain.facts(owed);
      expect(lost).toMatchObject({ txid, state: 'conflicted', height: null });
      expect(lost?.conflictTxid).toMatch(/^(?:0x)?[0-9a-f]{64}$/);
      // the rival's block is lost in turn: nobody is in a block then, and the rival waits in the mempool
      await engine.reorg(2);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'conflicted', conflictTxid: lost?.conflictTxid }]);
    });

    test('a reorganisation while the service is down, and one during the catch-up', async () => {
      const owed = await chain.owe();
      const txid = await engine.pay([{ script: owed.script, minor: units(90_000n) }]);
      await engine.mine(1);
      await chain.catchUp();
      await engine.reorg(1);
      await engine.mine(8);
      await chain.restart({ blocksPerPass: 3 });
      await chain.watcher.pass();
      await engine.reorg(4);
      await engine.mine(2);
      await chain.catchUp();
      const cursor = await chain.cursor();
      expect(cursor?.height).toBe(await engine.height());
      expect(await chain.facts(owed)).toMatchObject([{ txid, state: 'mined' }]);
    });

    test('a replacement in the mempool conflicts with what it replaces, and is a payment of its own', async ({ skip }) => {
      skip(engine.replaces === false, NO_RIVALS);
      const owed = await chain.owe();
      const first = await engine.pay([{ script: owed.script, minor: units(100_000n) }]);
      await chain.catchUp();
      const second = await engine.replace(first, [{ script: owed.script, minor: units(90_000n) }]);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([
        { txid: first, state: 'conflicted', conflictTxid: second },
        { txid: second, state: 'mempool', amount: units(90_000n) },
      ]);
      await engine.mine(1);
      await chain.catchUp();
      expect((await chain.facts(owed)).map((fact) => fact.state)).toEqual(['conflicted', 'mined']);
    });

    test('a double spend that pays us nothing is noticed by the payment it spends', async ({ skip }) => {
      skip(engine.replaces === false, NO_RIVALS);
      const owed = await chain.owe();
      const first = await engine.pay([{ script: owed.script, minor: units(100_000n) }]);
      await chain.catchUp();
      const rival = await engine.replace(first, []);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ txid: first, state: 'conflicted', conflictTxid: rival, gone: false }]);
    });

    test('a transaction with the same inputs and the same output to us is the same payment', async ({ skip }) => {
      skip(engine.replaces === false, NO_RIVALS);
      const owed = await chain.owe();
      const first = await engine.pay([{ script: owed.script, minor: units(55_000n) }]);
      await chain.catchUp();
      const twin = await engine.replace(first, [{ script: owed.script, minor: units(55_000n) }]);
      expect(twin).not.toBe(first);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ txid: twin, state: 'mempool', conflictTxid: null }]);
      await engine.mine(1);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ txid: twin, state: 'mined' }]);
    });

    test('a node that is merely behind takes nothing back, and time stands still meanwhile', async () => {
      const owed = await chain.owe();
      await engine.pay([{ script: owed.script, minor: units(65_000n) }]);
      await engine.mine(2);
      await chain.catchUp();
      const before = await chain.cursor();
      await engine.rewind(2);
      expect(await chain.watcher.pass()).toMatchObject({ state: 'ready', caughtUp: false, height: before?.height });
      expect(await chain.cursor()).toEqual(before);
      expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
      await engine.mine(3);
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ state: 'mined' }]);
      expect((await chain.cursor())?.height).toBe((before?.height as number) + 1);
    });

    test('a node that is down is reported, and what happened meanwhile is found afterwards', async ({ skip }) => {
      skip(engine.foreign === true, 'the environment names the daemon: it is not ours to stop');
      const owed = await chain.owe();
      await engine.pay([{ script: owed.script, minor: units(75_000n) }]);
      await engine.mine(1);
      await engine.stop();
      const result = await chain.watcher.pass();
      expect(result).toMatchObject({ state: 'down', caughtUp: false });
      await engine.start();
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ state: 'mined', foundMined: true }]);
    });

    test('the locks of its quorums, and of its own node only, are reported', async ({ skip }) => {
      const port = chain.ctx.ports.chains.get(engine.currency);
      const owed = await chain.owe();
      const txid = await engine.pay([{ script: owed.script, minor: units(95_000n) }]);
      if (engine.quorums === undefined) {
        skip(engine.currency === 'DASH', 'its quorums are not ours to command');
        expect(await port?.locks([txid])).toEqual(new Map());
        return;
      }
      expect(await port?.locks([txid, '00'.repeat(32)])).toEqual(new Map());
      await engine.quorums.lock(txid);
      expect(await port?.locks([txid])).toEqual(new Map([[txid, 'instantsend']]));
      await engine.mine(1);
      await engine.quorums.lockChain((await engine.height()) - 1);
      expect(await port?.locks([txid])).toEqual(new Map([[txid, 'instantsend']]));
      await engine.quorums.lockChain(await engine.height());
      expect(await port?.locks([txid])).toEqual(new Map([[txid, 'chainlock']]));
      await chain.catchUp();
      expect(await chain.facts(owed)).toMatchObject([{ txid, lock: 'chainlock' }]);
    });

    test('two watchers: one watches, the other stands by and takes over', async () => {
      const owed = await chain.owe();
      await chain.catchUp();
      const first = chain.watcher;
      const other = await watchOther(chain, engine);
      expect(await other.pass()).toMatchObject({ role: 'standby' });
      await engine.pay([{ script: owed.script, minor: units(85_000n) }]);
      await first.close();
      await expect.poll(async () => (await other.pass()).caughtUp, { timeout: 5_000 }).toBe(true);
      expect(await chain.facts(owed)).toMatchObject([{ state: 'mempool' }]);
      await other.close();
    });
  });
}

async function watchOther(chain: WatchedChain, engine: Engine) {
  const { createChainWatcher } = await import('../../src/worker/chain/watcher.ts');
  const { createWatchedScripts } = await import('../../src/worker/chain/watch-list.ts');
  return createChainWatcher(chain.ctx, engine.currency, { scripts: createWatchedScripts(chain.ctx) });
}
