// The service of the simulated histories: five simulated chains behind the production RPC client over loopback, one real database, two
// workers made of the production jobs, a clock and prices that only the test moves. A worker can be made to die between two statements.
import type { CurrencyCode, UtxoCode } from '../../src/core/currency.ts';
import { sortableId } from '../../src/core/ids.ts';
import type { RateFeed } from '../../src/core/rate-feed.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import type { Context } from '../../src/flow/context.ts';
import { sealSettings, setSettings } from '../../src/flow/merchants/settings.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import { systemRng } from '../../src/outside/rng.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { createSimulatedNode, type ServedNode } from '../../src/sandbox/utxo/served-node.ts';
import { accountsOf } from '../../src/signer/accounts.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { insertMerchant } from '../../src/store/merchants/merchants.ts';
import { DEFAULT_SETTINGS } from '../../src/store/merchants/settings.ts';
import { createBatchOfKey } from '../../src/store/postgres/batch.ts';
import type { Database, Sql } from '../../src/store/postgres/connect.ts';
import { isJudged } from '../../src/store/transactions/due.ts';
import type { PassResult } from '../../src/worker/chain/pass-result.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { workerJobs } from '../../src/worker/jobs.ts';
import type { Job } from '../../src/worker/loop.ts';
import { portsFor, SEALS } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner } from '../support/signer.ts';
import { CODES, type Code } from './behaviour.ts';

export type Merchant = { readonly id: bigint; readonly toleranceBps: number; readonly policy: 'accept' | 'review' };
export type SimulatedService = Awaited<ReturnType<typeof openSimulatedService>>;
/** What a worker dies of. */
export class Crash extends Error {}
export type Death = { transactionsLeft: number; readonly how: 'before' | 'inside' | 'after' };
type Worker = {
  readonly watchers: ReadonlyMap<CurrencyCode, ChainWatcher>;
  readonly jobs: readonly Job[];
  death: Death | null;
};

export async function openSimulatedService(options: { readonly feeBps: number }) {
  const { db, drop } = await freshDatabase();
  let nowMs = Date.UTC(2026, 0, 5);
  let steadyMs = 0;
  const clock = { now: () => nowMs, steady: () => steadyMs };
  const prices = new Map<Code, bigint>([
    ['BTC', 65_000_00n],
    ['LTC', 80_00n],
    ['BCH', 400_00n],
    ['DASH', 30_00n],
    ['DOGE', 20n],
  ]);
  const nodes = new Map<Code, ServedNode>();
  for (const currency of CODES) nodes.set(currency, await createSimulatedNode({ currency, folder: null, now: clock.now }));
  const urls = new Map([...nodes].map(([currency, node]) => [currency as UtxoCode, [node.url]]));
  const reach = createChainNodes({ network: 'regtest', clock, urls, tokenContract: null });
  const ports = portsFor('regtest', clock, {
    chains: reach.chains,
    rateFeeds: feedsOf(prices, clock.now),
  });
  for (const { currency, xpub } of accountsOf(new Uint8Array(32).fill(7), 'regtest')) {
    await addSignerKey(db, { currency, xpub, at: new Date(nowMs) });
  }
  const signer = await openSigner(db);
  const troubles: string[] = [];
  const contextOn = (database: Database): Context => {
    const pools = new Map(
      CODES.map((currency) => [currency as CurrencyCode, createAddressPool({ db: database, ports }, currency, { ready: 50 })]),
    );
    return {
      db: database,
      ports,
      network: 'regtest',
      currencies: CODES,
      tokenContract: null,
      feeBps: options.feeBps,
      settlementSeconds: 86_400,
      contestedLimitMinor: 1_000_00n,
      unfinalPayoutMinor: null,
      exposureMinor: null,
      hasBank: false,
      batches: createTransactionBatches(database, SEALS, async (currency) => (await pools.get(currency)?.next()) ?? null),
      batchOfKey: createBatchOfKey(),
    };
  };
  const ctx = contextOn(db);

  function newWorker(): Worker {
    const worker = { death: null as Death | null };
    const own = contextOn(mortal(db, worker));
    const scripts = createWatchedScripts(own);
    const watchers = new Map(
      CODES.map((currency) => [currency as CurrencyCode, createChainWatcher(own, currency, { scripts, blocksPerPass: 40 })]),
    );
    const jobs = workerJobs(own, watchers, (job, error) => {
      if (!(error instanceof Crash)) troubles.push(`${job}: ${String(error)}`);
      else doomed.add(worker);
    });
    return Object.assign(worker, { watchers, jobs });
  }
  /** Workers of which a job swallowed the crash: they end as soon as it is through. */
  const doomed = new Set<object>();
  const workers: Worker[] = [newWorker(), newWorker()];

  async function restart(at: number): Promise<void> {
    const worker = workers[at] as Worker;
    for (const watcher of worker.watchers.values()) await watcher.close();
    workers[at] = newWorker();
  }
  /** Lets a worker do something; should it die of it, another one takes its place. */
  async function alive<T>(at: number, work: (worker: Worker) => Promise<T>): Promise<T | null> {
    const worker = workers[at] as Worker;
    let result: T | null = null;
    try {
      result = await work(worker);
    } catch (error) {
      if (!(error instanceof Crash)) throw error;
      doomed.add(worker);
    }
    if (!doomed.delete(worker)) return result;
    await restart(at);
    return null;
  }
  const run = (at: number, job: string): Promise<boolean | null> =>
    alive(at, (worker) => (worker.jobs.find((one) => one.name === job) as Job).run());
  const passOf = (at: number, currency: Code): Promise<PassResult | null> =>
    alive(at, (worker) => (worker.watchers.get(currency) as ChainWatcher).pass());

  return {
    db,
    ctx,
    nodes,
    feeBps: BigInt(options.feeBps),
    prices,
    troubles,
    now: clock.now,
    node: (currency: Code) => nodes.get(currency) as ServedNode,
    wait(ms: number): void {
      nowMs += ms;
      steadyMs += ms;
    },
    /** Sets the clock, which the nodes share: negative = back, and forward as far as it was set back. */
    setClock(byMs: number): void {
      nowMs += byMs;
    },
    pollRates: () => run(0, 'rates'),
    /** One pass of whoever watches the chain; null when the worker died of it. */
    async pass(currency: Code): Promise<PassResult | null> {
      const first = await passOf(0, currency);
      return first?.role === 'standby' ? passOf(1, currency) : first;
    },
    /** Both workers look at the same time; at most one of them may watch. */
    async passBoth(currency: Code): Promise<PassResult | null> {
      const both = await Promise.all([passOf(0, currency), passOf(1, currency)]);
      if (both.filter((one) => one?.role === 'watching').length > 1) troubles.push(`two workers watch ${currency}`);
      return both.find((one) => one?.role === 'watching') ?? null;
    },
    /** Judges until nothing is due, and looks up what rule 8 wants. */
    async judge(): Promise<void> {
      let round = 0;
      do {
        if (round++ > 50) throw new Error('the judge does not come to rest');
        // a worker that died of it leaves work behind
        while ((await run(0, 'judge')) !== false);
        for (const currency of CODES) await run(0, `look-up ${currency}`);
      } while (!(await isJudged(db)));
    },
    judgeBoth: () => Promise.all([run(0, 'judge'), run(1, 'judge')]),
    run,
    restart,
    /** The first worker dies at its n-th database transaction from now on. */
    killAt(transactionsLeft: number, how: Death['how']): void {
      (workers[0] as Worker).death = { transactionsLeft, how };
    },
    spare(): void {
      (workers[0] as Worker).death = null;
    },
    addMerchant: (policy: Merchant['policy'], toleranceBps: number) => addMerchant(ctx, { policy, toleranceBps }),
    async close(): Promise<void> {
      for (const worker of workers) for (const watcher of worker.watchers.values()) await watcher.close();
      await reach.close();
      for (const node of nodes.values()) await node.stop();
      await signer.close();
      await drop();
    },
  };
}

/** A merchant of its own, with what it lets pass. */
export async function addMerchant(ctx: Context, { policy, toleranceBps }: Omit<Merchant, 'id'>): Promise<Merchant> {
  const nowMs = ctx.ports.clock.now();
  const affiliateId = sortableId('aff_', nowMs, systemRng.bytes(10));
  const createdAt = new Date(nowMs);
  const id = await insertMerchant(ctx.db, { affiliateId, email: 'shop@example.com', businessName: 'Shop', createdAt });
  await sealSettings(ctx.ports, ctx.db, id, DEFAULT_SETTINGS);
  const change = { tolerancePercent: (toleranceBps / 100).toFixed(2), latePayments: policy };
  await setSettings(ctx, { merchantId: id, scopes: new Set(['payments', 'payouts']), change });
  return { id, policy, toleranceBps };
}

/** Three exchanges that all say what the test says. @param prices cents */
export function feedsOf(prices: ReadonlyMap<CurrencyCode, bigint>, now: () => number): readonly RateFeed[] {
  const quotes = (source: string) =>
    [...prices].map(([currency, cents]) => {
      const price = cents * 10n ** 6n;
      return { source, currency, bid: price, ask: price, atMs: now() };
    });
  return ['kraken', 'coinbase', 'bitstamp'].map((source) => ({ source, read: async () => quotes(source) }));
}

/** The database of a worker that may die before, inside or after one of its transactions. */
export function mortal(db: Database, worker: { death: Death | null }): Database {
  const dies = (): Death['how'] | null => {
    const { death } = worker;
    if (death === null || --death.transactionsLeft > 0) return null;
    worker.death = null;
    return death.how;
  };
  return {
    ...db,
    async transaction<T>(work: (sql: Sql) => Promise<T>): Promise<T> {
      const how = dies();
      if (how === 'before') throw new Crash('died before a transaction');
      const result = await db.transaction(async (sql) => {
        const made = await work(sql);
        if (how === 'inside') throw new Crash('died inside a transaction');
        return made;
      });
      if (how === 'after') throw new Crash('died after a transaction');
      return result;
    },
  };
}
