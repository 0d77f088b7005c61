// The jobs that drive payouts: one looks what there is to do, ends payouts to transactions here, and asks no node; one for each currency pays
// (rail.ts). The look is woken by requests and by blocks; while something waits it looks every second.
import type { CurrencyCode } from '../../core/currency.ts';
import type { AskTrust } from '../../core/payouts/intent.ts';
import type { Context } from '../../flow/context.ts';
import { bookInternalPayouts } from '../../flow/payouts/internal-payouts.ts';
import { type PayoutWork, readWork } from '../../store/payouts/batches.ts';
import { notComparedSince } from '../../store/payouts/comparisons.ts';
import { saveSignerAnswers, saveSignerSilent } from '../../store/payouts/fee-rates.ts';
import { endLeasesOf, leaseOwners } from '../../store/payouts/lease-owners.ts';
import { PAYOUT_JOB } from '../../store/payouts/outgoing-facts.ts';
import type { Job } from '../loop.ts';
import type { DriverOptions, Signing, Telling } from './driver-options.ts';
import { createRail, type Rail } from './rail.ts';
import { createSignatureCheck, type SignatureCheck } from './signature-check.ts';

const WAITING_MS = 1_000;
/** A wake-up may have been missed; and what waits for its time (a retry, a resend) is found by this. */
const QUIET_MS = 15_000;
/** The same when nothing was under way for a while; also how often a node is asked for its fee then. */
const REST_MS = 30_000;
const AT_REST_AFTER_MS = 600_000;

export type PayoutJobOptions = {
  readonly signing: Signing;
  /** Names this process in the leases of batches. */
  readonly owner: string;
  /** Whether the worker that an owner names runs no longer; absent: nobody can tell, and its leases end by their time. */
  readonly isGone?: (owner: string) => boolean;
  readonly reached?: NonNullable<DriverOptions['reached']>;
  /** Who may have signed a payout that is booked here. */
  readonly intents: AskTrust;
};

/**
 * The job that looks, and one for each currency.
 * @param currencies those whose chain pays payouts
 * @param told gives each job somewhere of its own to tell what holds it up
 */
export function payoutJobs(
  ctx: Context,
  currencies: readonly CurrencyCode[],
  options: PayoutJobOptions,
  told: (made: (telling: Telling) => Job) => Job,
): Job[] {
  const rails: Rail[] = [];
  let signatures: SignatureCheck | null = null;
  const look = told((telling) => {
    signatures = createSignatureCheck(ctx, { signing: options.signing, onTrouble: telling.onTrouble });
    return lookJob(ctx, { ...options, ...telling, signatures, rails });
  });
  const paying = currencies.map((currency) =>
    told((telling) => {
      const rail = createRail(ctx, currency, signatures as SignatureCheck, { ...options, ...telling });
      rails.push(rail);
      return rail.job;
    }),
  );
  return [look, ...paying];
}

type Looking = PayoutJobOptions & Telling & { readonly signatures: SignatureCheck; readonly rails: readonly Rail[] };

function lookJob(ctx: Context, { signatures, rails, ...options }: Looking): Job {
  let isWaiting = false;
  let isComplete = false;
  let workedMs = Number.NEGATIVE_INFINITY;
  let hasFreed = false;
  /** Whether the database may say that the signer is silent: an earlier process may have written it. */
  let isToldSilent = true;

  /** What a worker that died was at goes on at once; one that only seems dead loses nothing, as with any lease that has ended. */
  async function freeLeases(): Promise<void> {
    const { isGone } = options;
    if (hasFreed || isGone === undefined) return;
    const gone = (await leaseOwners(ctx.db)).filter((owner) => isGone(owner));
    if (gone.length > 0) await endLeasesOf(ctx.db, gone);
    hasFreed = true;
  }

  async function bookInternal(): Promise<boolean> {
    try {
      return await bookInternalPayouts(ctx, options);
    } catch (error) {
      // a database that is away ends the look too
      options.onFault('payouts to transactions here', error);
      return true;
    }
  }

  /** @returns the currencies that must be compared again; null while signatures may be missing here */
  async function compared(work: readonly PayoutWork[]): Promise<ReadonlySet<string> | null> {
    if (!(await signatures.look(work.some(({ queued, reserved }) => queued || reserved)))) {
      await saveSignerSilent(
        ctx.db,
        work.map(({ currency }) => currency),
      );
      isToldSilent = true;
      return null;
    }
    if (isToldSilent) await saveSignerAnswers(ctx.db);
    isToldSilent = false;
    // a database that was started again may be another copy
    const older = await notComparedSince(ctx.db);
    // it was replaced meanwhile: the signer is asked first what that copy has forgotten
    return signatures.holds() ? older : null;
  }

  return {
    name: PAYOUT_JOB,
    everyMs() {
      if (isWaiting || (isComplete && rails.some((rail) => !rail.hasPassed()))) return WAITING_MS;
      return performance.now() - workedMs < AT_REST_AFTER_MS ? QUIET_MS : REST_MS;
    },
    urgent: true,
    async run(_hurried, wake = () => undefined) {
      const hasFailed = await bookInternal();
      await freeLeases();
      const work = await readWork(ctx.db, ctx.ports.clock.now());
      isWaiting = hasFailed || work.some(({ queued, soon }) => queued || soon);
      if (work.length > 0) workedMs = performance.now();
      const older = await compared(work);
      isComplete = older !== null;
      for (const rail of rails) {
        const due = work.find((one) => one.currency === rail.currency);
        rail.tell(older && { due, moves: await rail.wantsToMove(), isOlder: older.has(rail.currency) });
        wake(rail.job.name);
      }
      return false;
    },
  };
}
