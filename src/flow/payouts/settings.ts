// Settings > Payouts: what a merchant has paid out by itself. The API signs what it took, so that nobody who can only write to the database
// decides where money goes.
import type { CurrencyCode } from '../../core/currency.ts';
import { formatMinor } from '../../core/money.ts';
import type { PayoutMethod } from '../../core/payouts/units.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkDestination, checkMinimum, isInvoice, payoutAmount, refuseUnbuilt } from '../../core/payouts/validation.ts';
import { Refusal } from '../../core/refusal.ts';
import { openText, sealDestination } from '../../core/sealed-text.ts';
import {
  lockPayoutSettings,
  nextSettingsVersion,
  type PayoutSettingsRow,
  readPayoutSettings,
  type Signed,
  writePayoutSettings,
} from '../../store/payouts/settings.ts';
import type { Context } from '../context.ts';
import { unpayable } from '../evm/request.ts';
import { canPayLightning } from '../lightning/payout-request.ts';
import { getPayoutGuards } from '../merchants/settings.ts';
import { refuseOurAddress, refuseUnlisted } from './request.ts';

export type PayoutSettings = {
  readonly enabled: boolean;
  readonly method: PayoutMethod | null;
  readonly destination: string | null;
  /** With all decimals of the method's unit. */
  readonly threshold: string | null;
  readonly leave: string | null;
  readonly sourceCurrency: CurrencyCode | null;
  readonly paused: boolean;
  readonly pausedReason: string | null;
  readonly destinationUsableAtMs: number | null;
};

/** The fields that were sent; null keeps the present value. */
export type PayoutSettingsChange = {
  readonly enabled: boolean | null;
  readonly method: PayoutMethod | null;
  readonly destination: string | null;
  readonly threshold: string | null;
  readonly leave: string | null;
  readonly sourceCurrency: CurrencyCode | null;
  readonly paused: boolean | null;
};

export const DESTINATION_WAITS_MS = 86_400_000;
const NONE: Omit<PayoutSettingsRow, 'changedAtMs'> = {
  enabled: true,
  method: null,
  destination: null,
  threshold: null,
  leave: '0',
  sourceCurrency: null,
  usableAtMs: null,
  refused: 0,
  pausedAtMs: null,
  pausedReason: null,
  version: 0n,
};

/** A merchant's settings of automatic payouts, the account number opened; before any were sent, settings that are off. */
export async function getPayoutSettings(ctx: Context, of: { readonly merchantId: bigint }): Promise<PayoutSettings> {
  const row = opened(ctx, of.merchantId, await readPayoutSettings(ctx.db, of.merchantId));
  return shown(row ?? { ...NONE, enabled: false, changedAtMs: 0 });
}

/**
 * Changes the fields that were sent; a new or changed method or destination is used after 24 hours. Every change ends a pause unless it asks
 * for one.
 * @throws Refusal missing_field, invalid_amount, invalid_destination, lightning_unavailable, currency_unavailable, destination_not_allowed,
 *   payout_below_minimum; nothing is changed then
 */
export async function setPayoutSettings(
  ctx: Context,
  request: { readonly merchantId: bigint; readonly change: PayoutSettingsChange },
): Promise<PayoutSettings> {
  const { merchantId, change } = request;
  const hasLightning = await canPayLightning(ctx);
  return ctx.db.transaction(async (sql) => {
    await lockPayoutSettings(sql, merchantId);
    const nowMs = ctx.ports.clock.now();
    const before = opened(ctx, merchantId, asTaken(ctx, merchantId, await readPayoutSettings(sql, merchantId))) ?? {
      ...NONE,
      changedAtMs: nowMs,
    };
    const version = await nextSettingsVersion(sql, merchantId);
    const next = checked(ctx, { ...changed(before, change, nowMs), version }, hasLightning);
    if (next.destination !== null && next.enabled) {
      if (next.method === 'bitcoin' || next.method === 'usdt') {
        const { code } = PAYOUT_UNITS[next.method];
        await refuseOurAddress(sql, ctx.ports.destinations.outputScript(code, next.destination), merchantId);
      }
      refuseUnlisted((await getPayoutGuards({ db: sql, ports: ctx.ports }, { merchantId })).allowed, next.destination);
    }
    if (next.method !== null && next.threshold !== null) checkMinimum(next.method, next.threshold, 'threshold');
    const stored = sealed(ctx, merchantId, next);
    await writePayoutSettings(sql, merchantId, stored, signSettings(ctx, merchantId, stored));
    return shown(next);
  });
}

/**
 * A destination that this API has not signed is not taken over into what it signs next: somebody may have written it into the database. The
 * merchant sends it again then, and it waits like every new one.
 */
function asTaken(
  ctx: Context,
  merchantId: bigint,
  stored: Awaited<ReturnType<typeof readPayoutSettings>>,
): PayoutSettingsRow | null {
  if (stored === null || (stored.isNewest && isSigned(ctx, merchantId, stored))) return stored;
  return { ...stored, destination: null, usableAtMs: null };
}

/** The same signature again: the row is as this API took it. Settings that another API took are that API's to act on. */
export function isSigned(ctx: Context, merchantId: bigint, row: PayoutSettingsRow & Signed): boolean {
  const signed = signSettings(ctx, merchantId, row);
  return signed.keyId === row.keyId && Buffer.from(signed.signature).equals(row.signature);
}

function changed(before: PayoutSettingsRow, change: PayoutSettingsChange, nowMs: number): Omit<PayoutSettingsRow, 'version'> {
  const method = change.method ?? before.method;
  const destination = change.destination ?? before.destination;
  const isSame = destination === before.destination && method === before.method;
  const amounts = inUnitOf(method, before);
  // an echo of what was answered keeps a pause
  const staysPaused = change.paused === true;
  return {
    enabled: change.enabled ?? before.enabled,
    method,
    destination,
    threshold: change.threshold ?? amounts.threshold,
    leave: change.leave ?? amounts.leave ?? missingLeave(method, before),
    sourceCurrency: method === 'ach' ? (change.sourceCurrency ?? before.sourceCurrency) : null,
    usableAtMs: destination === null ? null : isSame ? before.usableAtMs : nowMs + DESTINATION_WAITS_MS,
    changedAtMs: nowMs,
    refused: 0,
    pausedAtMs: staysPaused ? (before.pausedAtMs ?? nowMs) : null,
    pausedReason: staysPaused ? (before.pausedReason ?? 'paused by the merchant') : null,
  };
}

/** The amounts so far, as far as they mean the same to this method: 0.5 BTC is not 0.5 USD. Null: it has to be sent. */
function inUnitOf(
  method: PayoutMethod | null,
  before: PayoutSettingsRow,
): { readonly threshold: string | null; readonly leave: string | null } {
  if (method === null || before.method === null || PAYOUT_UNITS[method].code === PAYOUT_UNITS[before.method].code) return before;
  const leavesNothing = payoutAmount(before.method, before.leave, 'leave') === 0n;
  return { threshold: null, leave: leavesNothing ? '0' : null };
}

/** @throws Refusal missing_field */
function missingLeave(method: PayoutMethod | null, before: PayoutSettingsRow): never {
  const unitOf = (one: PayoutMethod | null): string => (one === null ? '' : PAYOUT_UNITS[one].code);
  const message = `leave is required: it was ${before.leave} ${unitOf(before.method)}, and the unit is ${unitOf(method)} now.`;
  throw new Refusal('missing_field', { param: 'leave', message });
}

/** Whether the fields fit each other. */
function checked(ctx: Context, next: PayoutSettingsRow, hasLightning: boolean): PayoutSettingsRow {
  const { method, destination, threshold, leave, enabled } = next;
  if (enabled || method !== null) {
    for (const [name, value] of Object.entries({ method, destination, threshold })) {
      if (value === null && (enabled || name === 'method'))
        throw new Refusal('missing_field', { param: name, message: `${name} is required.` });
    }
  }
  if (method === null) {
    const sent = destination !== null ? 'destination' : threshold !== null || leave !== '0' ? 'threshold' : null;
    if (sent !== null)
      throw new Refusal('missing_field', { param: 'method', message: `method is required: ${sent} depends on it.` });
    return next;
  }
  if (threshold !== null) payoutAmount(method, threshold, 'threshold');
  payoutAmount(method, leave, 'leave');
  if (destination !== null) {
    checkDestination(method, destination, ctx.ports.destinations);
    refuseNobodys(ctx, method, destination);
    if (isInvoice(destination)) {
      const message = 'destination must be one that can be paid again and again: an invoice can be paid once.';
      throw new Refusal('invalid_destination', { param: 'destination', message });
    }
  }
  refuseUnbuilt(method, { ...ctx, hasLightning });
  return next;
}

/** @throws Refusal invalid_destination */
function refuseNobodys(ctx: Context, method: string, destination: string): void {
  const problem = method === 'usdt' ? unpayable(ctx.tokenContract, PAYOUT_UNITS.usdt.code, destination) : null;
  if (problem === null) return;
  throw new Refusal('invalid_destination', { param: 'destination', message: `destination does not fit usdt: ${problem}.` });
}

const aboutSettings = (merchantId: bigint): string => `payout settings ${merchantId}`;

/** A row as it is stored: an account number is sealed. */
function sealed(ctx: Context, merchantId: bigint, row: PayoutSettingsRow): PayoutSettingsRow {
  const { destination } = row;
  if (destination === null) return row;
  return { ...row, destination: sealDestination(ctx.ports.sealing, destination, aboutSettings(merchantId)) };
}

/** A stored row with the destination as it was sent. */
export function opened<Row extends PayoutSettingsRow | null>(ctx: Context, merchantId: bigint, row: Row): Row {
  if (row === null || row.destination === null) return row;
  return { ...row, destination: openText(ctx.ports.sealing, row.destination, aboutSettings(merchantId)) };
}

/** What was taken, as it is stored, signed by this process's key: one spelling for one row. */
export function signSettings(ctx: Context, merchantId: bigint, row: PayoutSettingsRow): Signed {
  const fields = [
    'bursar automatic payouts 1',
    ctx.network,
    merchantId.toString(),
    row.enabled,
    row.method,
    row.destination,
    row.threshold,
    row.leave,
    row.sourceCurrency,
    row.usableAtMs,
    // one from before they were counted was signed without
    ...(row.version === 0n ? [] : [row.version.toString()]),
  ];
  return ctx.ports.intentKey.sign(new TextEncoder().encode(JSON.stringify(fields)));
}

function shown(row: PayoutSettingsRow): PayoutSettings {
  const { method } = row;
  const full = (text: string | null, name: string): string | null =>
    method === null || text === null ? null : formatMinor(payoutAmount(method, text, name), PAYOUT_UNITS[method].decimals);
  return {
    enabled: row.enabled,
    method,
    destination: row.destination,
    threshold: full(row.threshold, 'threshold'),
    leave: full(row.leave, 'leave'),
    sourceCurrency: row.sourceCurrency,
    paused: row.pausedAtMs !== null,
    pausedReason: row.pausedReason,
    destinationUsableAtMs: row.usableAtMs,
  };
}
