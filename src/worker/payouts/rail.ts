// The job that pays payouts in one currency. It has nothing in common with those of the others but the signer and the database, so that a node
// that hangs or fails delays its own currency only. What there is to do it is told by the job that looks (job.ts).
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import type { Context } from '../../flow/context.ts';
import { bookCapital } from '../../flow/payouts/own-outputs.ts';
import type { PayoutWork } from '../../store/payouts/batches.ts';
import { sendingPortOf } from '../chain/context.ts';
import { reachable } from '../chain/pass-result.ts';
import type { Job } from '../loop.ts';
import type { DriverOptions, PayoutDriver } from './driver-options.ts';
import { createEvmDriver } from './evm/driver.ts';
import { createLane, createNonceCheck } from './evm/lane.ts';
import { createOutputCheck, type OutputCheck } from './output-check.ts';
import type { SignatureCheck } from './signature-check.ts';
import { tried } from './tried.ts';
import { createUnstored, type Unstored, type UnstoredParts } from './unstored.ts';
import { createPayoutDriver } from './utxo/driver.ts';

/** What a look has found of a currency. */
export type Look = {
  /** Undefined: nothing of payouts. */
  readonly due: PayoutWork | undefined;
  /** Payments may be moved. */
  readonly moves: boolean;
  /** Its outputs were compared before PostgreSQL was started, and not since: the database may be another copy. */
  readonly isOlder: boolean;
};

export type Rail = {
  readonly currency: CurrencyCode;
  readonly job: Job;
  /** What its next run goes by; null = it must not do anything but ask what a transaction costs. */
  tell(look: Look | null): void;
  /** Whether payments may be moved to the address that payouts leave from. */
  wantsToMove(): Promise<boolean>;
  /** Whether everything that has left was known since the start. */
  hasPassed(): boolean;
};

/** What pays payouts in a currency, and what compares it with the chain before anything is signed. */
function partsOf(
  ctx: Context,
  currency: CurrencyCode,
  parts: UnstoredParts,
): { readonly driver: PayoutDriver; readonly check: OutputCheck; readonly unstored: Unstored | null } {
  const { options } = parts;
  if (isUtxo(currency)) {
    const unstored = createUnstored(ctx, currency, parts);
    const check = createOutputCheck(ctx, currency, unstored);
    return { driver: createPayoutDriver(ctx, currency, options), check, unstored };
  }
  const lane = createLane(ctx, currency);
  return { driver: createEvmDriver(ctx, lane, options), check: createNonceCheck(ctx, lane), unstored: null };
}

/**
 * The job of one currency. It runs when it is woken, and signs nothing unless the signatures were complete at the last look and still are.
 * @throws when no node is configured for the currency
 */
export function createRail(ctx: Context, currency: CurrencyCode, signatures: SignatureCheck, options: DriverOptions): Rail {
  let look: Look | null = null;
  let version = signatures.version();
  const goesOn = (): boolean => signatures.holds() && signatures.version() === version;
  const { driver, check, unstored } = partsOf(ctx, currency, { signatures, options, goesOn });

  /** Whether everything that has left is known; after a start nobody waits for the first payout with that. */
  async function isKnown(isWanted: boolean, anew: boolean): Promise<boolean> {
    if (!isWanted && check.hasPassed() && !check.isOld()) return false;
    await unstored?.writeSeen();
    const trouble = await check.trouble(anew);
    if (trouble !== null && trouble.isShort !== true && (isWanted || trouble.isFound))
      options.onTrouble(`nothing new is paid in ${currency}: ${trouble.what}`);
    return trouble === null && goesOn();
  }

  async function sendUnknown(): Promise<void> {
    const unknown = signatures.unknown(currency);
    for (const [txid, raw] of unknown)
      if ((await reachable(() => sendingPortOf(ctx, currency).send(raw))) !== null) unknown.delete(txid);
  }

  async function run(): Promise<boolean> {
    await tried(options, `the fee of ${currency}`, () => driver.askFee(), undefined);
    // the newest: asking the node may have taken a while
    const seen = look;
    look = null;
    if (signatures.version() !== version) {
      check.forget();
      unstored?.forget();
      version = signatures.version();
    }
    if (seen === null || !goesOn()) return false;
    if (seen.isOlder && check.hasPassed()) check.forget();
    const { due, moves } = seen;
    await tried(options, `what nobody knows in ${currency}`, sendUnknown, undefined);
    const isWanted = moves || due?.queued === true || due?.reserved === true;
    const signsNew = await tried(options, `what has left in ${currency}`, () => isKnown(isWanted, due?.reserved === true), false);
    if (!goesOn()) return false;
    if (due?.unbooked === true) await tried(options, `capital in ${currency}`, () => bookCapital(ctx, currency), undefined);
    if (due !== undefined || moves) await driver.pass({ isQueued: due?.queued === true, signsNew, moves, goesOn });
    return false;
  }

  return {
    currency,
    job: { name: `payouts ${currency}`, everyMs: null, urgent: false, run },
    tell(found) {
      look = found;
    },
    wantsToMove: async () => (await driver.wantsToMove?.()) === true,
    hasPassed: check.hasPassed,
  };
}
