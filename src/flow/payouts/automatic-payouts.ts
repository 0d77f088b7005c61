// Automatic payouts (behaviour §5): what a merchant's settings ask for, requested in its name by the API, which alone can sign a request. At
// most one is open per merchant and method; three failures in a row pause them.
import { PAYOUT_UNITS, type PayoutMethod } from '../../core/payouts/units.ts';
import { payoutAmount } from '../../core/payouts/validation.ts';
import { Refusal, type RefusalCode } from '../../core/refusal.ts';
import { lockBalances, readAvailable } from '../../store/ledger/ledger.ts';
import {
  dueMerchants,
  isAutomaticOpen,
  lastAutomatic,
  lockPayoutSettings,
  noteRefused,
  type PayoutSettingsRow,
  readPayoutSettings,
  type Signed,
} from '../../store/payouts/settings.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { requestAchPayout } from '../ach/request.ts';
import { type Context, within } from '../context.ts';
import { requestTokenPayout } from '../evm/request.ts';
import { invoiceOfDestination, requestLightningPayout } from '../lightning/payout-request.ts';
import { requestPayout } from './bitcoin-request.ts';
import { isSigned, opened } from './settings.ts';

const MERCHANTS_AT_ONCE = 100;
/** How many Lightning destinations are asked at once: each that is silent takes 10 seconds. */
const ASKED_AT_ONCE = 8;
/** Who was silent is asked again with the looks of every ten minutes, not with every credit that anybody gets. */
const SILENT_MS = 590_000;
const FAILURES_IN_A_ROW = 3;
/** Small corrections are no fast clock. */
const FAST_MS = 3_600_000;
/** Refusals that no waiting ends: an address that gives expired invoices gives others when it is put right. */
const LASTING: ReadonlySet<RefusalCode> = new Set(['invalid_destination', 'destination_not_allowed', 'invoice_expired']);

/** Those over Lightning, for which a stranger's server is asked first, are requested apart from all others. */
export type AutomaticPayouts = {
  readonly overLightning: boolean;
  /** Merchants whose destination was silent, and since when; kept from one run to the next. */
  readonly silent: Map<bigint, number>;
};

/**
 * Requests what is due for every merchant; safe to run in any number of processes at once.
 * @param onTrouble called for a merchant whose payout could not be requested; the others go on
 * @returns how many were requested
 */
export async function requestAutomaticPayouts(
  ctx: Context,
  which: AutomaticPayouts,
  onTrouble: (merchantId: bigint, error: unknown) => void,
): Promise<number> {
  const { overLightning } = which;
  let requested = 0;
  async function request(merchantId: bigint): Promise<void> {
    try {
      if (await requestDue(ctx, merchantId, which)) requested += 1;
    } catch (error) {
      onTrouble(merchantId, error);
    }
  }
  for (let after = 0n; ; ) {
    const due = await dueMerchants(ctx.db, { nowMs: ctx.ports.clock.now(), after, limit: MERCHANTS_AT_ONCE, overLightning });
    const waiting = due.values();
    await Promise.all(
      Array.from({ length: overLightning ? ASKED_AT_ONCE : 1 }, async () => {
        for (const merchantId of waiting) await request(merchantId);
      }),
    );
    after = due.at(-1) ?? after;
    if (due.length < MERCHANTS_AT_ONCE) return requested;
  }
}

function isSilent(ctx: Context, { silent }: AutomaticPayouts, merchantId: bigint): boolean {
  const sinceMs = silent.get(merchantId);
  if (sinceMs === undefined) return false;
  const forMs = ctx.ports.clock.now() - sinceMs;
  // a clock that was set back is no reason to ask nobody
  if (forMs >= 0 && forMs < SILENT_MS) return true;
  silent.delete(merchantId);
  return false;
}

/** What a Lightning address or an LNURL has answered, before the database transaction of the request: its invoice, or a refusal. */
type Asked = { readonly destination: string; readonly paymentRequest: string } | { readonly refusal: Refusal };

/** Null where nobody is asked: by another method, or because nothing is due. */
async function askedBefore(ctx: Context, merchantId: bigint, { silent }: AutomaticPayouts): Promise<Asked | null> {
  const stored = await readPayoutSettings(ctx.db, merchantId);
  if (stored === null || stored.method !== 'lightning' || !isUsable(stored, ctx.ports.clock.now())) return null;
  if (!stored.isNewest || !isSigned(ctx, merchantId, stored)) return null;
  const { destination, leave, threshold } = opened(ctx, merchantId, stored);
  const available = (await readAvailable(ctx.db, merchantId)).get(PAYOUT_UNITS.lightning.code) ?? 0n;
  const isDue = available >= payoutAmount('lightning', threshold, 'threshold');
  if (!isDue || (await isAutomaticOpen(ctx.db, merchantId, 'lightning'))) return null;
  try {
    const automatic = { leave: payoutAmount('lightning', leave, 'leave') };
    const paymentRequest = await invoiceOfDestination(ctx, { merchantId, amount: 'all', destination, automatic });
    return paymentRequest === null ? null : { destination, paymentRequest };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    if (error.code === 'lightning_unavailable') silent.set(merchantId, ctx.ports.clock.now());
    return { refusal: error };
  }
}

/** Whether a payout was requested. */
async function requestDue(ctx: Context, merchantId: bigint, which: AutomaticPayouts): Promise<boolean> {
  if (isSilent(ctx, which, merchantId)) return false;
  const asked = await askedBefore(ctx, merchantId, which);
  return ctx.db.transaction(async (sql) => {
    await lockPayoutSettings(sql, merchantId);
    const row = await readPayoutSettings(sql, merchantId);
    if (row === null || !isUsable(row, ctx.ports.clock.now())) return false;
    // older settings, whoever put them back, are no longer what the merchant wants
    if (!row.isNewest || !isSigned(ctx, merchantId, row)) return false;
    if (await isAutomaticOpen(sql, merchantId, row.method)) return false;
    const failures = await failuresInARow(sql, merchantId, row, ctx.ports.clock.now());
    if (failures >= FAILURES_IN_A_ROW) {
      await pause(ctx, sql, merchantId, row.refused, `${FAILURES_IN_A_ROW} payouts in a row failed`);
      return false;
    }
    try {
      if (
        !(await requestFor(
          within(ctx, sql, () => undefined),
          merchantId,
          opened(ctx, merchantId, row),
          asked,
        ))
      )
        return false;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      if (LASTING.has(error.code)) await countRefused(ctx, sql, merchantId, row, error.message);
      return false;
    }
    if (row.refused > 0) await noteRefused(sql, merchantId, { refused: 0, reason: null, atMs: ctx.ports.clock.now() });
    return true;
  });
}

/** Requests what the balance has above what stays; false where it does not reach the threshold. */
async function requestFor(ctx: Context, merchantId: bigint, row: Usable, asked: Asked | null): Promise<boolean> {
  const { method, destination } = row;
  const leave = payoutAmount(method, row.leave, 'leave');
  const threshold = payoutAmount(method, row.threshold, 'threshold');
  if (method === 'ach') {
    const { sourceCurrency } = row;
    const automatic = { threshold, leave };
    await requestAchPayout(ctx, { merchantId, amount: 'all', destination, sourceCurrency, automatic });
    return true;
  }
  if (method === 'lightning') {
    if (asked === null) return false;
    if ('refusal' in asked) throw asked.refusal;
    if (asked.destination !== destination) return false;
    await requestLightningPayout(ctx, { ...asked, merchantId, amount: 'all', automatic: { leave } });
    return true;
  }
  const currency = PAYOUT_UNITS[method].code;
  const available = (await lockBalances(ctx.db, merchantId, [currency])).get(currency)?.available ?? 0n;
  if (available < threshold) return false;
  const request = { merchantId, amount: 'all', destination, automatic: { leave } };
  await (method === 'usdt' ? requestTokenPayout(ctx, request) : requestPayout(ctx, request));
  return true;
}

type Usable = PayoutSettingsRow & {
  readonly method: PayoutMethod;
  readonly destination: string;
  readonly threshold: string;
};

function isUsable(row: PayoutSettingsRow & Signed, nowMs: number): row is Usable & Signed {
  const isWhole = row.method !== null && row.destination !== null && row.threshold !== null;
  return isWhole && row.enabled && row.pausedAtMs === null && row.usableAtMs !== null && row.usableAtMs <= nowMs;
}

/** How many of the newest automatic payouts failed, without one that did not; a cancelled one is no failure. */
async function failuresInARow(sql: Sql, merchantId: bigint, row: PayoutSettingsRow, nowMs: number): Promise<number> {
  // what a fast clock has dated in the future would count none of them
  const sinceMs = row.changedAtMs > nowMs + FAST_MS ? 0 : row.changedAtMs;
  const last = await lastAutomatic(sql, merchantId, { ms: sinceMs, limit: FAILURES_IN_A_ROW });
  const success = last.findIndex(({ failed }) => !failed);
  return success === -1 ? last.length : success;
}

async function countRefused(ctx: Context, sql: Sql, merchantId: bigint, row: PayoutSettingsRow, why: string): Promise<void> {
  const refused = row.refused + 1;
  if (refused < FAILURES_IN_A_ROW) await noteRefused(sql, merchantId, { refused, reason: null, atMs: ctx.ports.clock.now() });
  else await pause(ctx, sql, merchantId, refused, `${FAILURES_IN_A_ROW} requests in a row were refused: ${why}`);
}

async function pause(ctx: Context, sql: Sql, merchantId: bigint, refused: number, reason: string): Promise<void> {
  await noteRefused(sql, merchantId, { refused, reason, atMs: ctx.ports.clock.now() });
}
