// What an operator's monitoring is told of the service: the same from every process, since it is read from the database.
import { formatAmount } from '../core/money.ts';
import {
  countDeliveries,
  countEvents,
  countOpenPayouts,
  countReviews,
  newestEvent,
  readAssets,
  readOwed,
} from '../store/metrics/readings.ts';
import { type Context, watchedCodes } from './context.ts';
import { readReadiness } from './readiness.ts';

/** One measure with its values; the names of labels and measures are those of Prometheus (`snake_case`, units in the name). */
export type Metric = {
  readonly name: string;
  readonly help: string;
  readonly type: 'gauge' | 'counter';
  readonly values: readonly { readonly labels?: Readonly<Record<string, string>>; readonly value: string | number | bigint }[];
};

/** More events than that are told as this many. */
const MOST_DELIVERIES = 100_000;
/** Numbers of events are committed in another order than they are drawn; after this time none is missing any more. */
const EVENTS_SETTLE_MS = 10_000;

export type Metrics = {
  /** @throws when the database does not answer */
  read(): Promise<readonly Metric[]>;
};

/** What the service has, what merchants have of it, and how much waits. */
export async function readTotals({ db }: Pick<Context, 'db'>) {
  const [assets, owed, reviews, payouts, deliveries] = await Promise.all([
    readAssets(db),
    readOwed(db),
    countReviews(db),
    countOpenPayouts(db),
    countDeliveries(db, MOST_DELIVERIES),
  ]);
  return { assets, owed, reviews, payouts, deliveries };
}

/**
 * Counters begin at nothing when it is made: they count all merchants' events, in every process that counts.
 * @param steadyMs a clock that nobody sets
 */
export function createMetrics(ctx: Context, steadyMs: () => number = () => performance.now()): Metrics {
  const counted = new Map<string, bigint>();
  /** Everything up to `upTo` is counted; `next` was the newest number at `atMs`. */
  let progress: { readonly generation: number; readonly upTo: bigint; readonly next: bigint; readonly atMs: number } | null =
    null;

  async function events(): Promise<ReadonlyMap<string, bigint>> {
    const { generation } = ctx.db.identity;
    const atMs = steadyMs();
    const newest = await newestEvent(ctx.db);
    if (progress === null || progress.generation !== generation || newest < progress.next) {
      progress = { generation, upTo: newest, next: newest, atMs };
      return counted;
    }
    const { upTo, next } = progress;
    if (atMs - progress.atMs < EVENTS_SETTLE_MS) return counted;
    for (const { type, count } of await countEvents(ctx.db, { after: upTo, upTo: next }))
      counted.set(type, (counted.get(type) ?? 0n) + count);
    progress = { generation, upTo: next, next: newest, atMs };
    return counted;
  }

  return {
    async read() {
      const [readiness, totals, types] = await Promise.all([readReadiness(ctx, watchedCodes(ctx)), readTotals(ctx), events()]);
      return [...ofReadiness(ctx, readiness), ...ofMoney(totals.assets, totals.owed), ...ofWork({ ...totals, types })];
    },
  };
}

const gauge = (name: string, help: string, values: Metric['values']): Metric => ({ name, help, type: 'gauge', values });

function ofReadiness(
  ctx: Context,
  { chains, breakers, rates, problems, blocked }: Awaited<ReturnType<typeof readReadiness>>,
): Metric[] {
  const nowMs = ctx.ports.clock.now();
  return [
    gauge('bursar_ready', 'Whether payments can be received (1), as GET /readyz says.', [{ value: blocked === null ? 1 : 0 }]),
    gauge('bursar_problems', 'How many sentences GET /readyz has under problems.', [{ value: problems.length }]),
    gauge('bursar_breaker_open', 'Whether a red audit has stopped this (1) until an operator lets it go on.', [
      { labels: { name: 'payouts' }, value: breakers.some(({ name }) => name === 'payouts') ? 1 : 0 },
    ]),
    gauge(
      'bursar_node_ready',
      'Whether the node of this currency can be used (1).',
      chains.map(({ currency, state }) => ({ labels: { currency }, value: state === 'ready' ? 1 : 0 })),
    ),
    gauge(
      'bursar_chain_lag_blocks',
      'Blocks that the node has and the service has not read.',
      chains.flatMap(({ currency, nodeHeight, height }) =>
        nodeHeight === null || height === null ? [] : [{ labels: { currency }, value: Math.max(0, nodeHeight - height) }],
      ),
    ),
    gauge(
      'bursar_rate_age_seconds',
      'Age of the price that quotes use; absent without one.',
      Object.entries(rates).flatMap(([currency, rate]) =>
        rate === undefined ? [] : [{ labels: { currency }, value: Math.max(0, (nowMs - rate.atMs) / 1_000) }],
      ),
    ),
  ];
}

function ofMoney(assets: Awaited<ReturnType<typeof readAssets>>, owed: Awaited<ReturnType<typeof readOwed>>): Metric[] {
  return [
    gauge(
      'bursar_assets',
      'What the service has, by account of the ledger, in whole units.',
      assets.map(({ account, currency, amount }) => ({ labels: { account, currency }, value: formatAmount(amount, currency) })),
    ),
    gauge(
      'bursar_merchant_balances',
      'What all merchants have available, and what payouts hold of it, in whole units.',
      owed.map(({ kind, currency, amount }) => ({ labels: { kind, currency }, value: formatAmount(amount, currency) })),
    ),
  ];
}

type Work = {
  readonly reviews: Awaited<ReturnType<typeof countReviews>>;
  readonly payouts: Awaited<ReturnType<typeof countOpenPayouts>>;
  readonly deliveries: bigint;
  readonly types: ReadonlyMap<string, bigint>;
};

function ofWork({ reviews, payouts, deliveries, types }: Work): Metric[] {
  return [
    gauge(
      'bursar_transactions_in_review',
      "Transactions that wait for a person's decision.",
      reviews.map(({ currency, count }) => ({ labels: { currency }, value: count })),
    ),
    gauge(
      'bursar_open_payouts',
      'Payouts that have not ended.',
      payouts.map(({ method, status, count }) => ({ labels: { method, status }, value: count })),
    ),
    gauge('bursar_deliveries_waiting', `Events that webhooks wait for; ${MOST_DELIVERIES} means as many or more.`, [
      { value: deliveries },
    ]),
    {
      name: 'bursar_events_total',
      help: 'Events of all merchants by type since this process began, ten seconds late; each process counts all of them.',
      type: 'counter',
      values: [...types].map(([type, value]) => ({ labels: { type }, value })),
    },
  ];
}
