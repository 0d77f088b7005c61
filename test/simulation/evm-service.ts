// The service of the random orders in ether and USDT: one simulated chain of Ethereum behind the production client over loopback, a real database,
// the production jobs of one worker, a clock and prices that only the test moves. Which block is final can stand still, as it does on the real chain
// when a third of its validators are away.
import { createServer } from 'node:http';
import type { CurrencyCode, EvmCode } from '../../src/core/currency.ts';
import { createAddressPool } from '../../src/flow/addresses/pool.ts';
import type { Context } from '../../src/flow/context.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import { createChainNodes } from '../../src/outside/utxo/by-currency.ts';
import { TOKEN } from '../../src/sandbox/evm/contracts.ts';
import { answerEvmRpc } from '../../src/sandbox/evm/rpc-server.ts';
import { openSimulatedEvm } from '../../src/sandbox/evm/simulated-evm.ts';
import { closeServer, listen } from '../../src/sandbox/server.ts';
import { accountsOf } from '../../src/signer/accounts.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { createBatchOfKey } from '../../src/store/postgres/batch.ts';
import { isJudged } from '../../src/store/transactions/due.ts';
import type { PassResult } from '../../src/worker/chain/pass-result.ts';
import { createWatchedScripts } from '../../src/worker/chain/watch-list.ts';
import { type ChainWatcher, createChainWatcher } from '../../src/worker/chain/watcher.ts';
import { workerJobs } from '../../src/worker/jobs.ts';
import type { Job } from '../../src/worker/loop.ts';
import { portsFor, SEALS } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner } from '../support/signer.ts';
import { addMerchant, Crash, type Death, feedsOf, type Merchant, mortal } from './simulated-service.ts';

const BOTH: readonly EvmCode[] = ['ETH', 'USDT'];
/** What the simulated node calls finalized: so many blocks behind its tip. */
const FINALIZED_BEHIND = 64;
const SECRET = 'simulated';

export type EvmService = Awaited<ReturnType<typeof openEvmService>>;

export async function openEvmService(options: { readonly feeBps: number }) {
  const { db, drop } = await freshDatabase();
  let nowMs = Date.UTC(2026, 0, 5);
  const clock = { now: () => nowMs };
  const prices = new Map<EvmCode, bigint>();
  const chain = openSimulatedEvm({ folder: null, now: clock.now });
  const tip = (): number => chain.state.active.length - 1;
  /** The height at which finality stands still; null where it goes on. */
  let stalledAt: number | null = null;
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const asked = Buffer.concat(parts).toString('utf8');
      const told = stalledAt === null ? asked : asked.replaceAll('"finalized"', `"0x${stalledAt.toString(16)}"`);
      // a node that tries no waiting calls: how many are tried in a second depends on the machine
      const tried = told.replaceAll('"eth_simulateV1"', '"not_there"');
      void answerEvmRpc(chain, SECRET, request, tried, response);
    });
  });
  const url = `http://bursar:${SECRET}@127.0.0.1:${await listen(server, 0)}/`;
  const urls = new Map(BOTH.map((currency) => [currency, [url]]));
  const reach = createChainNodes({ network: 'regtest', clock, urls, tokenContract: TOKEN });
  const ports = portsFor('regtest', clock, { chains: reach.chains, rateFeeds: feedsOf(prices, clock.now) });
  for (const { currency, xpub } of accountsOf(new Uint8Array(32).fill(7), 'regtest'))
    await addSignerKey(db, { currency, xpub, at: new Date(nowMs) });
  const signer = await openSigner(db);
  const pools = new Map(
    BOTH.map((currency) => [currency as CurrencyCode, createAddressPool({ db, ports }, currency, { ready: 20 })]),
  );
  const ctx: Context = {
    db,
    ports,
    network: 'regtest',
    currencies: BOTH,
    tokenContract: TOKEN,
    feeBps: options.feeBps,
    settlementSeconds: 86_400,
    contestedLimitMinor: 1_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: false,
    batches: createTransactionBatches(db, SEALS, async (currency) => (await pools.get(currency)?.next()) ?? null),
    batchOfKey: createBatchOfKey(),
  };
  const troubles: string[] = [];
  const newWorker = () => {
    const life = { death: null as Death | null, isOver: false };
    const own: Context = { ...ctx, db: mortal(db, life) };
    const scripts = createWatchedScripts(own);
    const watchers = new Map(
      BOTH.map((currency) => [
        currency as CurrencyCode,
        createChainWatcher(own, currency, { scripts, blocksPerPass: 40 }) as ChainWatcher,
      ]),
    );
    const jobs = workerJobs(own, watchers, (job, error) => {
      if (error instanceof Crash) life.isOver = true;
      else troubles.push(`${job}: ${String(error)}`);
    });
    return { life, watchers, jobs };
  };
  let worker = newWorker();
  const run = (name: string): Promise<boolean> => (worker.jobs.find((one) => one.name === name) as Job).run();

  return {
    ...{ db, ctx, chain, prices, troubles, run },
    now: clock.now,
    wait(ms: number): void {
      nowMs += ms;
    },
    tip,
    finalized: (): number => stalledAt ?? tip() - FINALIZED_BEHIND,
    /** The last block that is final stays it, or finality goes on. */
    stall(stands: boolean): void {
      stalledAt = stands ? Math.max(0, tip() - FINALIZED_BEHIND) : null;
    },
    setDown: (down: boolean): void => chain.setTrouble({ down, fault: null, left: null }),
    /** Whether both watchers have read all that the node has. */
    async read(): Promise<boolean> {
      const done = await Promise.all(BOTH.map((currency) => catchUp(worker.watchers.get(currency) as ChainWatcher)));
      return done.every(Boolean);
    },
    async judge(): Promise<void> {
      for (let round = 0; round < 50; round++) {
        while (!worker.life.isOver && (await run('judge')));
        if (worker.life.isOver) return;
        for (const currency of BOTH) await run(`look-up ${currency}`);
        if (await isJudged(db)) return;
      }
      throw new Error('the judge does not come to rest');
    },
    /** The worker dies at its n-th database transaction from now on, if it reads and judges so long; another one takes its place. */
    async die(transactionsLeft: number, how: Death['how']): Promise<void> {
      worker.life.death = { transactionsLeft, how };
      const died = (error: unknown): void => {
        if (!(error instanceof Crash)) throw error;
        worker.life.isOver = true;
      };
      await this.read().catch(died);
      if (!worker.life.isOver) await this.judge().catch(died);
      await this.restart();
    },
    async restart(): Promise<void> {
      for (const watcher of worker.watchers.values()) await watcher.close();
      worker = newWorker();
    },
    addMerchant: (policy: Merchant['policy'], toleranceBps: number) => addMerchant(ctx, { policy, toleranceBps }),
    async close(): Promise<void> {
      for (const watcher of worker.watchers.values()) await watcher.close();
      await reach.close();
      await closeServer(server);
      chain.close();
      await signer.close();
      await drop();
    },
  };
}

async function catchUp(watcher: ChainWatcher): Promise<boolean> {
  for (let pass = 0; pass < 60; pass++) {
    const result: PassResult = await watcher.pass();
    if (result.caughtUp) return true;
    if (result.state !== 'ready') return false;
  }
  return false;
}
