// The job that drives payouts: books capital that has become final, then each chain's batches. It is woken by requests and by blocks; while
// something waits it looks every second.
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import type { AskTrust } from '../../core/payouts/intent.ts';
import type { SignedTransaction } from '../../core/signer-wire.ts';
import type { Context } from '../../flow/context.ts';
import { bookInternalPayouts } from '../../flow/payouts/internal-payouts.ts';
import { bookCapital } from '../../flow/payouts/own-outputs.ts';
import { restoreSignature } from '../../flow/payouts/restored-signatures.ts';
import { lastSignature } from '../../store/payouts/attempts.ts';
import { readWork } from '../../store/payouts/batches.ts';
import { PAYOUT_JOB } from '../../store/payouts/outgoing-facts.ts';
import { notComparedSince } from '../../store/payouts/unknown-movements.ts';
import { sendingPortOf } from '../chain/context.ts';
import { troubleOf } from '../chain/pass-result.ts';
import type { Job } from '../loop.ts';
import { createPayoutDriver } from './driver.ts';
import type { DriverOptions, PayoutDriver, Signing } from './driver-options.ts';
import { createEvmDriver } from './evm-driver.ts';
import { createLane, createNonceCheck } from './evm-lane.ts';
import { createOutputCheck, type OutputCheck } from './output-check.ts';

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
  readonly reached?: NonNullable<DriverOptions['reached']>;
  /** Who may have signed a payout that is booked here. */
  readonly intents: AskTrust;
  readonly onTrouble: (what: string) => void;
};

/** What pays payouts in a currency, and what compares it with the chain before anything is signed. */
function railOf(
  ctx: Context,
  currency: CurrencyCode,
  options: PayoutJobOptions,
): { readonly driver: PayoutDriver; readonly check: OutputCheck } {
  if (isUtxo(currency)) return { driver: createPayoutDriver(ctx, currency, options), check: createOutputCheck(ctx, currency) };
  const lane = createLane(ctx, currency);
  return { driver: createEvmDriver(ctx, lane, options), check: createNonceCheck(ctx, lane) };
}

/** @param currencies those whose chain pays payouts */
export function payoutJob(ctx: Context, currencies: readonly CurrencyCode[], options: PayoutJobOptions): Job {
  const rails = currencies.map((currency) => [currency, railOf(ctx, currency, options)] as const);
  const drivers = new Map(rails.map(([currency, { driver }]) => [currency, driver]));
  const checks = new Map(rails.map(([currency, { check }]) => [currency, check]));
  let isWaiting = false;
  let workedMs = Number.NEGATIVE_INFINITY;
  /** The database whose signatures are complete; null = not compared yet. */
  let complete: number | null = null;
  /** The newest signature here when the signer did not have it: its journal is an older copy, which numbers anew what it signs. */
  let lost: string | null = null;

  /** Whether every signature of the signer is in this database: before that, nothing new is signed. */
  async function isComplete(signsSoon: boolean): Promise<boolean> {
    const { generation } = ctx.db.identity;
    if (complete !== null && complete !== generation) forget();
    if (complete === generation && !signsSoon) return true;
    try {
      const last = await lastSignature(ctx.db);
      const isSame = await knows(last);
      if (!isSame && last.txid !== lost) {
        forget();
        lost = last.txid;
      }
      if (complete === generation) return true;
      for (let after = isSame ? last.sequence : 0, more = true; more; ) {
        const page = await options.signing.signed({ after });
        for (const signed of page.transactions) {
          after = signed.sequence;
          const outcome = await restoreSignature(ctx, signed);
          if (outcome === 'unknown_payout') await sendUnknown(signed);
        }
        more = page.more && page.transactions.length > 0;
      }
    } catch (error) {
      if ((error as { fault?: string }).fault === undefined) throw error;
      options.onTrouble(`the signer cannot be asked what it has signed: ${(error as Error).message}`);
      return false;
    }
    complete = generation;
    return true;
  }

  /**
   * Nobody can take a signature back, and it may have been sent: it is sent again, like every other, so that a block shows how it ends.
   * Nothing new is signed until an operator has it booked.
   */
  async function sendUnknown({ txid, raw, request }: SignedTransaction): Promise<void> {
    options.onTrouble(
      `the signer has signed ${txid} for payouts that this database does not know (bursar payout recover): payouts are stopped`,
    );
    const currency = currencies.find((code) => code === request.currency);
    if (currency === undefined) return;
    try {
      await sendingPortOf(ctx, currency).send(Buffer.from(raw, 'hex'));
    } catch (error) {
      if (troubleOf(error) === null) throw error;
    }
  }

  /** Whether the signer's journal holds the newest signature that is stored here. */
  async function knows({ sequence, txid }: { readonly sequence: number; readonly txid: string | null }): Promise<boolean> {
    if (txid === null) return true;
    const { transactions } = await options.signing.signed({ after: sequence - 1 });
    return transactions[0]?.txid === txid;
  }

  /** Whether everything that has left is known; after a start nobody waits for the first payout with that. */
  async function isKnown(currency: CurrencyCode, isWanted: boolean): Promise<boolean> {
    const check = checks.get(currency) as OutputCheck;
    if (!isWanted && check.hasPassed()) return false;
    const trouble = await check.trouble();
    if (trouble !== null && (isWanted || trouble.isFound))
      options.onTrouble(`nothing new is paid in ${currency}: ${trouble.what}`);
    isWaiting ||= !check.hasPassed();
    return trouble === null;
  }

  function forget(): void {
    complete = null;
    for (const check of checks.values()) check.forget();
  }
  return {
    name: PAYOUT_JOB,
    everyMs: () => (isWaiting ? WAITING_MS : performance.now() - workedMs < AT_REST_AFTER_MS ? QUIET_MS : REST_MS),
    urgent: true,
    async run() {
      const hasFailed = await bookInternalPayouts(ctx, options);
      await Promise.all([...drivers.values()].map((driver) => driver.askFee()));
      const work = await readWork(ctx.db, ctx.ports.clock.now());
      isWaiting = hasFailed || work.some(({ queued, soon }) => queued || soon);
      if (work.length > 0) workedMs = performance.now();
      if (!(await isComplete(work.some(({ queued, reserved }) => queued || reserved)))) return false;
      // a database that was started again may be another copy
      const older = await notComparedSince(ctx.db);
      // it was replaced meanwhile: the signer is asked first what that copy has forgotten
      if (complete !== ctx.db.identity.generation) return false;
      for (const [currency, check] of checks) if (older.has(currency) && check.hasPassed()) check.forget();
      for (const [currency, driver] of drivers) {
        const due = work.find((one) => one.currency === currency);
        const moves = (await driver.wantsToMove?.()) === true;
        const signsNew = await isKnown(currency, moves || due?.queued === true || due?.reserved === true);
        if (due?.unbooked === true) await bookCapital(ctx, currency);
        if (due !== undefined || moves) await driver.pass({ isQueued: due?.queued === true, signsNew, moves });
      }
      return false;
    },
  };
}
