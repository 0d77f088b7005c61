// The table of the worker's jobs: what runs, and how often. Each is safe to run in any number of workers at once.
import { LIGHTNING } from '../core/currencies/lightning.ts';
import type { CurrencyCode } from '../core/currency.ts';
import { ATTEMPTS_KEPT_MS } from '../core/webhooks.ts';
import type { Context } from '../flow/context.ts';
import { describeUnprotected, takeUnreported } from '../store/chain/unprotected-payments.ts';
import { pruneAttempts } from '../store/deliveries/deliveries.ts';
import { rollUp } from '../store/ledger/ledger.ts';
import { HELD_JOB } from '../store/payouts/payouts.ts';
import { finishLookup, wantedLookup } from '../store/transactions/due.ts';
import { pruneKeys } from '../store/transactions/idempotency.ts';
import { Alarm, createAlarm, createFaults, listed, type Report } from './alarm.ts';
import { auditJobs } from './audit-jobs.ts';
import type { ChainWatcher } from './chain/watcher.ts';
import { createDueJob, DUE_JOB } from './due-job.ts';
import { createJudgeDue } from './judge-due.ts';
import { type Lightning, lightningJobs } from './lightning/jobs.ts';
import { createPaymentComparison, type SentPayments } from './lightning/sent-comparison.ts';
import type { Job } from './loop.ts';
import { type AchOptions, achJob } from './payouts/ach/driver.ts';
import { announceAutomatic, CREDITED_JOB, createCredited } from './payouts/announce-automatic.ts';
import type { Telling } from './payouts/driver-options.ts';
import { createHeldPayouts } from './payouts/held-payouts.ts';
import { type PayoutJobOptions, payoutJobs } from './payouts/job.ts';
import { lightningPayoutJob } from './payouts/lightning/driver.ts';
import type { LightningPaying } from './payouts/lightning/steps.ts';
import { pollRates } from './rate-poller.ts';
import { type BlockMemory, createBlockMemory } from './rescan/block-script-fingerprints.ts';
import { reconcile } from './rescan/reconciler.ts';
import { deepScan, lookUpAgain } from './rescan/rescan.ts';
import { type Scheduled, scheduled } from './scheduled-job.ts';

type Reading = { readonly report: Report; readonly memory: BlockMemory };

const SECOND_MS = 1_000;
const ROLL_UP_BATCH = 5_000;
const PRUNE_BATCH = 1_000;
const LOOKUP_SHARE = 10;
/** Transactions that the judge cannot decide delay the look-ups of others for at most this long. */
const JUDGE_WITHIN_MS = 5 * SECOND_MS;
const SECOND_READING_BATCH = 50;

export type Payouts = Pick<PayoutJobOptions, 'signing' | 'owner' | 'isGone' | 'intents'> & {
  /** Called with each step that was reached: tests stop a process there (main/sandbox/failpoints). */
  readonly reached?: (step: string) => Promise<void>;
  /** Null: nothing is paid over Lightning. */
  readonly overLightning?: OverLightning | null;
};
export type OverLightning = LightningPaying & SentPayments;

/** Our bank, and what its files need. */
export type Ach = Omit<AchOptions, keyof Telling | 'owner'>;

/**
 * @param payouts absent: this worker drives no payouts
 * @param ach null: no bank is configured; `lightning`: no node of it
 */
export function workerJobs(
  ctx: Context,
  watchers: ReadonlyMap<CurrencyCode, ChainWatcher>,
  report: Report,
  payouts?: Payouts & { readonly ach: Ach | null },
  lightning: Lightning | null = null,
): Job[] {
  const memories = new Map([...watchers.keys()].map((currency) => [currency, createBlockMemory()]));
  const memoryOf = (currency: CurrencyCode): BlockMemory => memories.get(currency) as BlockMemory;
  const faults = createFaults(report);
  return [
    ...[...watchers].map(
      ([currency, watcher]): Job => ({
        name: `chain ${currency}`,
        everyMs: (chance) => watcher.restMs(chance),
        urgent: true,
        isFirst: true,
        run: watched(ctx, currency, watcher, report),
      }),
    ),
    ...(lightning === null
      ? []
      : lightningJobs(ctx, { ...lightning, sent: payouts?.overLightning ?? null }, report, (name, work) =>
          scheduled(ctx, name, 60 * SECOND_MS, { urgent: true, work }),
        )),
    { name: 'rates', everyMs: 10 * SECOND_MS, urgent: false, isFirst: true, run: priced(ctx, report) },
    createDueJob(ctx, lightning === null ? watchers : new Map([...watchers, [LIGHTNING.code, lightning.watcher] as const])),
    judging(ctx, report),
    ...(payouts === undefined ? [] : payoutJobs(ctx, [...watchers.keys()], payouts, (made) => paying(report, made))),
    ...(payouts?.ach ? [paying(report, (telling) => achJob(ctx, { ...payouts, ...(payouts.ach as Ach), ...telling }))] : []),
    ...(payouts?.overLightning ? overLightning(ctx, payouts, payouts.overLightning, report) : []),
    createCredited(ctx),
    scheduled(ctx, 'automatic payouts', 600 * SECOND_MS, { urgent: true, work: () => announceAutomatic(ctx) }),
    createHeldPayouts(ctx, (id, error) => faults(`payout ${id}`, error)),
    ...[...watchers].map(([currency, { firstSeen }]) =>
      lookUps(ctx, currency, { report, memory: memoryOf(currency), firstSeen }),
    ),
    {
      name: 'roll-up',
      everyMs: 30 * SECOND_MS,
      urgent: false,
      run: async () => (await rollUp(ctx.db, ROLL_UP_BATCH)) === ROLL_UP_BATCH,
    },
    {
      name: 'forget keys',
      everyMs: 60 * SECOND_MS,
      urgent: false,
      run: async () => (await pruneKeys(ctx.db, ctx.ports.clock.now(), PRUNE_BATCH)) === PRUNE_BATCH,
    },
    scheduled(ctx, 'forget attempts', 3_600 * SECOND_MS, {
      urgent: false,
      work: async () => (await pruneAttempts(ctx.db, ctx.ports.clock.now() - ATTEMPTS_KEPT_MS, PRUNE_BATCH)) === PRUNE_BATCH,
    }),
    ...[...watchers.keys()].flatMap((currency) => [
      scheduled(ctx, `deep scan ${currency}`, (ctx.ports.chains.get(currency)?.readByAll === undefined ? 600 : 60) * SECOND_MS, {
        urgent: true,
        work: deepReading(ctx, currency, { report, memory: memoryOf(currency) }),
      }),
      scheduled(ctx, `reconcile ${currency}`, 60 * SECOND_MS, { urgent: true, ...secondReading(ctx, currency, report) }),
    ]),
    ...auditJobs(ctx, [...watchers.keys()], report),
  ];
}

/** A pass, what is wrong with the nodes, and (once each) the outputs at our scripts that are not ours. */
function watched(ctx: Context, currency: CurrencyCode, watcher: ChainWatcher, report: Report): Job['run'] {
  const alarm = createAlarm(`chain ${currency}`, report);
  return async (hurried = false) => {
    const { state, reason, alarms, more, blocksRead } = await watcher.pass({ quiet: !hurried });
    if (blocksRead > 0) {
      for (const payment of await takeUnreported(ctx.db, currency, ctx.ports.clock.now()))
        report(`chain ${currency}`, new Alarm(describeUnprotected(payment)));
    }
    alarm([...(reason === null ? [] : [`the node is ${state}: ${reason}`]), ...alarms].join('; '));
    return more;
  };
}

/** The prices, and which currencies have none. */
function priced(ctx: Context, report: Report): () => Promise<boolean> {
  const alarm = createAlarm('rates', report);
  return async () => {
    alarm(await pollRates(ctx));
    return false;
  };
}

/** The judge; a decision may soon make something else due, and transactions that another session holds are tried again. */
function judging(ctx: Context, report: Report): Job {
  let isLeft = false;
  let isAll = false;
  let decided = false;
  const judgeDue = createJudgeDue(ctx, (id, error) => report(`judge ${id}`, error), {
    onLeft() {
      isLeft = true;
    },
    onAll() {
      isAll = true;
    },
  });
  return {
    name: 'judge',
    everyMs: () => (isLeft ? SECOND_MS / 4 : Number.POSITIVE_INFINITY),
    urgent: true,
    async run(_hurried, wake) {
      isLeft = false;
      isAll = false;
      const isDecided = await judgeDue();
      const more = isDecided && !isAll;
      if (!more && (decided || isDecided)) for (const job of [DUE_JOB, CREDITED_JOB, HELD_JOB]) wake?.(job);
      decided = more;
      return more;
    },
  };
}

/** The second reading of a chain; reports trouble that the watcher does not have too. */
function secondReading(ctx: Context, currency: CurrencyCode, report: Report): Pick<Scheduled, 'work' | 'isAtRest'> {
  const alarm = createAlarm(`reconcile ${currency}`, report);
  let isAtRest = false;
  return {
    // no block has become final since the last look
    isAtRest: () => isAtRest,
    async work() {
      isAtRest = false;
      const { more, trouble, unread, blocksRead } = await reconcile(ctx, currency, { limit: SECOND_READING_BATCH });
      isAtRest = trouble === null && blocksRead === 0;
      alarm(unread ? (trouble ?? '') : '');
      return more;
    },
  };
}

/** The deep scan, which blocks it read, and trouble that only it has. */
function deepReading(ctx: Context, currency: CurrencyCode, { report, memory }: Reading): () => Promise<boolean> {
  const alarm = createAlarm(`deep scan ${currency}`, report);
  return async () => {
    let trouble = '';
    const onTrouble = (reason: string): void => {
      trouble = reason;
    };
    const blocks = await deepScan(ctx, currency, { onTrouble, memory });
    alarm(trouble);
    return blocks > 0;
  };
}

/** Pays over Lightning, and compares what the node has paid with what was asked for. */
function overLightning(ctx: Context, payouts: Payouts, lightning: OverLightning, report: Report): Job[] {
  const compares = 'reconcile Lightning payouts';
  const told = createFaults(report);
  return [
    paying(report, (telling) => lightningPayoutJob(ctx, { ...payouts, paying: lightning, ...telling })),
    scheduled(ctx, compares, 60 * SECOND_MS, {
      urgent: true,
      work: createPaymentComparison(ctx, lightning, (what) => told(compares, new Alarm(what))),
    }),
  ];
}

/** A job that pays: what holds it up, and what fails in it, is logged once, not with every pass. */
function paying(report: Report, made: (telling: Telling) => Job): Job {
  let trouble: string[] = [];
  const job = made({ onTrouble: (what) => void trouble.push(what), onFault: createFaults(report) });
  const alarm = createAlarm(job.name, report);
  return {
    ...job,
    async run(hurried, wake) {
      trouble = [];
      const more = await job.run(hurried, wake);
      // many addresses may wait for one thing
      alarm(listed([...new Set(trouble)], '; '));
      return more;
    },
  };
}
/**
 * Rule 8's last look-up, for all transactions of a chain in one reading: it begins when the judge has decided everything that may need it.
 * Then it rests for ten times as long as it took, unless a caller waits for it.
 */
function lookUps(
  ctx: Context,
  currency: CurrencyCode,
  { report, memory, firstSeen }: Reading & Pick<ChainWatcher, 'firstSeen'>,
): Job {
  const alarm = createAlarm(`look-up ${currency}`, report);
  let restUntil = 0;
  let wantedSince: number | null = null;
  return {
    name: `look-up ${currency}`,
    everyMs: null,
    urgent: true,
    run: async (hurried = false, wake = () => undefined) => {
      if (!hurried && performance.now() < restUntil) return false;
      const beganMs = ctx.ports.clock.now();
      const began = performance.now();
      const wanted = await wantedLookup(ctx.db, currency);
      if (wanted === null) return false;
      wantedSince ??= began;
      if (wanted.isJudging && began - wantedSince < JUDGE_WITHIN_MS) return false;
      wantedSince = null;
      let trouble = '';
      const complete = await lookUpAgain(ctx, currency, {
        fromHeight: wanted.fromHeight,
        scripts: wanted.scripts,
        memory,
        firstSeen,
        onTrouble: (reason) => {
          trouble = reason;
        },
      });
      if (complete) {
        await finishLookup(ctx.db, wanted.ids, beganMs);
        wake('judge');
      }
      alarm(trouble);
      const took = performance.now() - began;
      restUntil = took < SECOND_MS ? 0 : performance.now() + took * LOOKUP_SHARE;
      return false;
    },
  };
}
