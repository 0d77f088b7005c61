// What it costs that somebody pays one order in very many outputs: the worker's own judge on a real database, while they are seen, mined and
// booked, for one more of them, for a price that is paid in them, and for the merchant's accept of as many late ones.
import { randomBytes } from 'node:crypto';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import type { Context } from '../src/flow/context.ts';
import { resolveTransaction } from '../src/flow/transactions/create-cancel-resolve.ts';
import { createTransactionBatches } from '../src/flow/transactions/request-batches.ts';
import { systemClock } from '../src/outside/clock.ts';
import { beginCursor, insertBlocks, moveCursor, readCursor, setCaughtUp } from '../src/store/chain/blocks.ts';
import { recordSightings } from '../src/store/chain/sightings.ts';
import { insertMerchant } from '../src/store/merchants/merchants.ts';
import { connect, type Database, type Sql } from '../src/store/postgres/connect.ts';
import { createJudgeDue } from '../src/worker/judge-due.ts';
import { portsFor } from '../test/support/ports.ts';
import type { Figure } from './report.ts';

const IN_ONE = 500;
const DUST_MINOR = 600n;
const MORE = 15;
const MINUTE_MS = 60_000;
const LOCKING = new Set(['update_judged_payments', 'lock_decided_payments']);

/** Milliseconds: of the longest database transaction, of the longest time in one with locked payments, and without a turn for others. */
type Longest = { open: number; locked: number; held: number };

export async function measureDust(databaseUrl: string, outputs: number): Promise<Figure[]> {
  const db = connect({ url: databaseUrl, role: 'bursar_app', maxConnections: 4, applicationName: 'bench' });
  try {
    const bench = await openDust(db);
    return [
      ...(await flood(bench, outputs)),
      figure('credit of a price that is paid in', outputs, await creditPrice(bench, outputs)),
      figure("the merchant's accept of a review of", outputs, await acceptReview(bench, outputs)),
    ];
  } finally {
    await db.close();
  }
}

function figure(work: string, outputs: number, { open, locked, held }: Longest): Figure {
  return {
    work: `judge: ${work} ${outputs.toLocaleString('en')} outputs`,
    measured: `longest database transaction ${open.toFixed(0)} ms, ${locked.toFixed(0)} ms with locked payments; loop held ${held.toFixed(0)} ms`,
    goal: '≤ 1,000, 200, 100 ms',
  };
}

type Bench = Awaited<ReturnType<typeof openDust>>;

async function openDust(db: Database) {
  let nowMs = Date.UTC(2026, 5, 1);
  const now = () => nowMs;
  const longest: Longest = { open: 0, locked: 0, held: 0 };
  const ports = portsFor('regtest', { ...systemClock, now });
  const ctx: Context = {
    db: { ...db, transaction: <T>(work: (sql: Sql) => Promise<T>) => timed(db, longest, work) },
    ports,
    network: 'regtest',
    currencies: ['BTC'],
    tokenContract: null,
    feeBps: 0,
    settlementSeconds: 86_400,
    contestedLimitMinor: 100_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: false,
    batches: createTransactionBatches(db, ports.seals, async () => null),
  };
  const createdAt = new Date(nowMs);
  const merchantId = await insertMerchant(db, { affiliateId: 'aff_bench', email: 'a@example.com', businessName: 'B', createdAt });
  const run = createJudgeDue(ctx, (_, error) => {
    throw error;
  });
  return {
    ...(await openChain(db, now)),
    ctx,
    merchantId,
    order: (minor: bigint, latePayments: 'accept' | 'review' = 'accept') =>
      insertOrder(db, { merchantId, minor, latePayments, atMs: nowMs }),
    /** The chain was read to its end after this time. */
    async wait(ms: number): Promise<void> {
      nowMs += ms;
      const cursor = await readCursor(db, 'BTC');
      if (cursor !== null) await setCaughtUp(db, 'BTC', cursor, nowMs);
    },
    /** What takes longest of some work. */
    async longestOf(work: () => Promise<unknown>): Promise<Longest> {
      Object.assign(longest, { open: 0, locked: 0, held: 0 });
      const delay = monitorEventLoopDelay({ resolution: 1 });
      delay.enable();
      await work();
      delay.disable();
      return { ...longest, held: delay.max / 1e6 };
    },
    async judgeAll(): Promise<void> {
      while (await run());
    },
  };
}

/** Payments as a watcher records them. */
async function openChain(db: Database, now: () => number) {
  await beginCursor(db, 'BTC', { height: 100, hash: hash(), previousHash: hash(), timeMs: now() }, now());
  let waiting: TransactionFactsOf[] = [];
  async function see(seen: readonly TransactionFactsOf[], isMined: boolean): Promise<void> {
    const cursor = await readCursor(db, 'BTC');
    if (cursor === null) throw new Error('no cursor');
    const next = { height: cursor.height + 1, hash: hash(), previousHash: cursor.hash, timeMs: now() };
    await db.transaction(async (sql) => {
      if (isMined) {
        await moveCursor(sql, 'BTC', cursor, next, now());
        await insertBlocks(sql, 'BTC', [next]);
      }
      const context = { block: isMined ? next : null, caughtUpAtMs: cursor.caughtUpAtMs, atMs: now() };
      const sightings = seen.map((facts) => ({ facts, seenAtMs: now() }));
      await recordSightings(sql, 'BTC', context, sightings);
    });
  }
  return {
    async pay(script: string, amounts: readonly bigint[]): Promise<void> {
      const outputs = amounts.map((amountMinor, vout) => ({ vout, script, amountMinor }));
      const facts = { txid: hash(), coinbase: false, inputs: [{ txid: hash(), vout: 0 }], outputs, spends: [] };
      waiting.push(facts);
      await see([facts], false);
    },
    /** Mines what waits, then empty blocks. */
    async mine(blocks: number): Promise<void> {
      for (let n = 0; n < blocks; n++) {
        const mined = waiting;
        waiting = [];
        await see(mined, true);
      }
    },
  };
}

type Order = {
  readonly merchantId: bigint;
  /** Satoshi, at 100,000 USD each bitcoin. */
  readonly minor: bigint;
  readonly latePayments: 'accept' | 'review';
  readonly atMs: number;
};

async function insertOrder(db: Database, order: Order): Promise<{ readonly id: string; readonly script: string }> {
  const [id, script] = [`txn_${hash().slice(0, 22)}`, `0014${hash().slice(0, 40)}`];
  const [at, until] = [new Date(order.atMs), new Date(order.atMs + 15 * MINUTE_MS)];
  await db.query({
    text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                     address, script, address_index, created_at, window_ends_at, due_at)
             values ($1, $2, 'BTC', 'started', $3, $4, 100000, $6, '[]', 100, $5, $1, decode($7, 'hex'), null, $6, $8, $8)`,
    values: [id, order.merchantId, order.minor / 10n, order.minor, order.latePayments, at, script, until],
  });
  await db.query({
    text: `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
             values ($1, $2, 1, 'transaction.started', 'started', 'created', $3)`,
    values: [order.merchantId, id, at],
  });
  return { id, script };
}
type TransactionFactsOf = Parameters<typeof recordSightings>[3][number]['facts'];
const hash = (): string => randomBytes(32).toString('hex');

async function timed<T>(db: Database, longest: Longest, work: (sql: Sql) => Promise<T>): Promise<T> {
  const began = performance.now();
  let lockedAt: number | null = null;
  const result = await db.transaction((sql) =>
    work({
      query(statement) {
        if (LOCKING.has(statement.name ?? '')) lockedAt ??= performance.now();
        return sql.query<never>(statement);
      },
    }),
  );
  const now = performance.now();
  longest.open = Math.max(longest.open, now - began);
  longest.locked = Math.max(longest.locked, lockedAt === null ? 0 : now - lockedAt);
  return result;
}

async function payInDust(bench: Bench, script: string, outputs: number): Promise<void> {
  for (let n = 0; n < outputs; n += IN_ONE)
    await bench.pay(
      script,
      Array.from({ length: Math.min(IN_ONE, outputs - n) }, () => DUST_MINOR),
    );
}

/** Dust to an order that is paid: noted and booked in portions; and one more output, of which the least counts. */
async function flood(bench: Bench, outputs: number): Promise<Figure[]> {
  const { id, script } = await bench.order(50_000n);
  await bench.pay(script, [50_000n]);
  await bench.mine(1);
  await bench.judgeAll();
  await payInDust(bench, script, outputs);
  const longest = await bench.longestOf(async () => {
    await bench.judgeAll();
    await bench.mine(1);
    await bench.judgeAll();
  });
  await expectStatus(bench, id, 'succeeded');
  const more: number[] = [];
  for (let n = 0; n < MORE; n++) {
    await bench.pay(script, [DUST_MINOR]);
    const began = process.threadCpuUsage();
    await bench.judgeAll();
    const { user, system } = process.threadCpuUsage(began);
    more.push((user + system) / 1000);
  }
  const sorted = more.toSorted((a, b) => a - b);
  return [
    figure('seen, mined and booked,', outputs, longest),
    {
      work: `judge: one more output to an order of ${outputs.toLocaleString('en')}`,
      measured: `${sorted[MORE >> 1]?.toFixed(0)} ms of CPU, the least ${sorted[0]?.toFixed(0)} ms`,
      goal: '≤ 50 ms',
    },
  ];
}

async function creditPrice(bench: Bench, outputs: number): Promise<Longest> {
  const { id, script } = await bench.order(DUST_MINOR * BigInt(outputs));
  await payInDust(bench, script, outputs);
  await bench.judgeAll();
  await bench.mine(5);
  await bench.judgeAll();
  await bench.mine(1);
  const longest = await bench.longestOf(() => bench.judgeAll());
  await expectStatus(bench, id, 'succeeded');
  return longest;
}

async function acceptReview(bench: Bench, outputs: number): Promise<Longest> {
  const { ctx, merchantId } = bench;
  const { id, script } = await bench.order(DUST_MINOR * BigInt(outputs) * 2n, 'review');
  await bench.wait(20 * MINUTE_MS);
  await bench.judgeAll();
  await payInDust(bench, script, outputs);
  await bench.judgeAll();
  await bench.mine(6);
  await bench.judgeAll();
  await expectStatus(bench, id, 'review');
  const answer = { merchantId, transactionId: id, action: 'accept', part: null, destination: null } as const;
  const longest = await bench.longestOf(async () => {
    await resolveTransaction(ctx, answer);
    await bench.judgeAll();
  });
  await expectStatus(bench, id, 'succeeded');
  return longest;
}

async function expectStatus({ ctx }: Bench, id: string, status: string): Promise<void> {
  const { rows } = await ctx.db.query<{ status: string }>({
    text: 'select status from transactions where id = $1',
    values: [id],
  });
  if (rows[0]?.status !== status) throw new Error(`${id} is ${rows[0]?.status}, not ${status}`);
}
