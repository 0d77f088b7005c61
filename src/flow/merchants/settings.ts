// What a merchant has set (behaviour §8), and when it takes effect: the two guards of payouts tighten at once and loosen after 24 h, so
// that a thief with a stolen sign-in cannot empty the account before the merchant notices.
import type { Scope } from '../../core/credentials.ts';
import { formatMinor, parseAmount } from '../../core/money.ts';
import type { Clock, Sealing } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { type RowSeals, type SealFields, settingsSubject } from '../../core/row-seals.ts';
import { openText, sealDestination } from '../../core/sealed-text.ts';
import { nextVersion, takeVersion } from '../../store/merchants/seals.ts';
import {
  type Guarded,
  type LatePolicy,
  lockSettings,
  readSettings,
  type SettingsRow,
  type StoredSettings,
  writeSettings,
} from '../../store/merchants/settings.ts';
import type { Database, Sql } from '../../store/postgres/connect.ts';

type SettingsPorts = { readonly clock: Clock; readonly sealing: Sealing; readonly seals: RowSeals };
type SettingsContext = { readonly db: Database; readonly ports: SettingsPorts };

/** The settings as last sent. The two times are present while a loosening waits: it takes effect then. */
export type Settings = {
  /** Percent with 2 decimals, `"0.00"` to `"5.00"`. */
  readonly tolerancePercent: string;
  readonly latePayments: LatePolicy;
  /** Empty = off. */
  readonly payoutAllowList: readonly string[];
  /** USD with 2 decimals; null = no payout waits for approval. */
  readonly payoutApprovalAbove: string | null;
  readonly payoutAllowListFromMs?: number;
  readonly payoutApprovalAboveFromMs?: number;
};

/** The fields that were sent; undefined keeps the present value. For the approval limit null means off. */
export type SettingsChange = {
  readonly tolerancePercent?: string | undefined;
  readonly latePayments?: string | undefined;
  readonly payoutAllowList?: readonly string[] | undefined;
  readonly payoutApprovalAbove?: string | null | undefined;
};

/** The guards in force for a payout now. */
export type PayoutGuards = {
  /** null = every destination. */
  readonly allowed: ReadonlySet<string> | null;
  /** Cents above which a payout waits for approval; null = none does. */
  readonly approvalAbove: bigint | null;
};

export const LOOSENING_WAITS_MS = 86_400_000;
export const MAX_TOLERANCE_BPS = 500n;
const MAX_DESTINATIONS = 100;
const MAX_DESTINATION_LENGTH = 2048;

/** A merchant's settings as they are shown: what was sent, and from when it holds where it does not yet. Account numbers are opened. */
export async function getSettings(ctx: SettingsContext, of: { readonly merchantId: bigint }): Promise<Settings> {
  return shown(opened(ctx.ports, of.merchantId, await readSettings(ctx.db, of.merchantId)), ctx.ports.clock.now());
}

/** The guards in force for a payout of this merchant at this moment, whatever change is waiting. */
export async function getPayoutGuards(
  ctx: { readonly db: Sql; readonly ports: SettingsPorts },
  of: { readonly merchantId: bigint },
): Promise<PayoutGuards> {
  return guardsOf(ctx.ports, of.merchantId, await readSettings(ctx.db, of.merchantId));
}

/** A limit that every payout is above. */
const NOTHING_PASSES = -1n;

/** The guards of a row of settings that are in force now; while the row is not what was sealed, every payout waits for approval. */
export function guardsOf(ports: SettingsPorts, merchantId: bigint, stored: StoredSettings): PayoutGuards {
  const now = ports.clock.now();
  const isOurs = isSealedSettings(ports, merchantId, stored);
  const row = opened(ports, merchantId, stored);
  const list = settled(row.allowList, now);
  const off = list.waiting === null && list.sent.length === 0;
  return {
    allowed: off ? null : new Set(list.waiting?.inForce ?? list.sent),
    approvalAbove: isOurs ? inForce(settled(row.approvalAbove, now)) : NOTHING_PASSES,
  };
}

const foreignSettings = (merchantId: bigint): string =>
  `the settings of merchant ${merchantId} are not what was sealed: somebody has changed them in the database, and its payouts wait for approval (bursar merchant seal)`;

function isSealedSettings({ seals }: SettingsPorts, merchantId: bigint, row: StoredSettings): boolean {
  const isOurs = fitsSettings(seals, merchantId, row);
  if (!isOurs) seals.report(foreignSettings(merchantId));
  return isOurs;
}

/** Whether a row of settings, as it is stored, is what was sealed last. */
export function fitsSettings(seals: RowSeals, merchantId: bigint, row: StoredSettings): boolean {
  return row.isNewest && seals.fits(settingsFields(merchantId, row, row.version), row.seal);
}

/** One spelling for one row, as it is stored. */
function settingsFields(merchantId: bigint, row: SettingsRow, version: bigint): SealFields {
  const { allowList, approvalAbove } = row;
  const at = (date: Date | undefined): string | null => date?.getTime().toString() ?? null;
  return [
    'settings',
    merchantId.toString(),
    row.toleranceBps.toString(),
    row.latePayments,
    allowList.sent,
    allowList.waiting?.inForce ?? null,
    at(allowList.waiting?.from),
    approvalAbove.sent?.toString() ?? null,
    approvalAbove.waiting?.inForce?.toString() ?? null,
    at(approvalAbove.waiting?.from),
    version.toString(),
  ];
}

/** Writes settings, as they are stored, with a new seal; their row is locked. */
export async function sealSettings(
  { seals }: Pick<SettingsPorts, 'seals'>,
  sql: Sql,
  merchantId: bigint,
  row: SettingsRow,
): Promise<void> {
  const version = await nextVersion(sql, settingsSubject(merchantId));
  await takeVersion(sql, settingsSubject(merchantId), version);
  await writeSettings(sql, merchantId, row, { version, seal: seals.seal(settingsFields(merchantId, row, version)) });
}

/**
 * Changes the fields that were sent. The two payout fields need the scope `payouts`, the others (and an empty change) `payments`, both
 * kinds both. Refused: `insufficient_permissions`, then `invalid_request` or `invalid_amount` naming the field; nothing is changed then.
 */
export async function setSettings(
  ctx: SettingsContext,
  request: { readonly merchantId: bigint; readonly scopes: ReadonlySet<Scope>; readonly change: SettingsChange },
): Promise<Settings> {
  const { merchantId, change } = request;
  checkScopes(request.scopes, change);
  const sent = {
    toleranceBps: change.tolerancePercent === undefined ? undefined : toleranceBps(change.tolerancePercent),
    latePayments: change.latePayments === undefined ? undefined : latePolicy(change.latePayments),
    allowList: change.payoutAllowList === undefined ? undefined : destinations(change.payoutAllowList),
    approvalAbove: change.payoutApprovalAbove === undefined ? undefined : approvalLimit(change.payoutApprovalAbove),
  };
  return ctx.db.transaction(async (sql) => {
    const stored = await lockSettings(sql, merchantId);
    // what somebody else has written would be sealed along
    if (!isSealedSettings(ctx.ports, merchantId, stored))
      throw new Refusal('internal_error', { message: 'The settings of this account must be checked by the operator first.' });
    const row = opened(ctx.ports, merchantId, stored);
    const now = ctx.ports.clock.now();
    const allowList = settled(row.allowList, now);
    const approvalAbove = settled(row.approvalAbove, now);
    const next: SettingsRow = {
      toleranceBps: sent.toleranceBps ?? row.toleranceBps,
      latePayments: sent.latePayments ?? row.latePayments,
      allowList: sent.allowList === undefined ? allowList : nextAllowList(allowList, sent.allowList, now),
      approvalAbove: sent.approvalAbove === undefined ? approvalAbove : nextApproval(approvalAbove, sent.approvalAbove, now),
    };
    const after = sealed(ctx.ports, merchantId, next);
    const isSame =
      JSON.stringify(settingsFields(merchantId, after, 0n)) === JSON.stringify(settingsFields(merchantId, stored, 0n));
    if (!isSame) await sealSettings(ctx.ports, sql, merchantId, after);
    return shown(next, now);
  });
}

/** A stored row with the destinations of its allow-list as they were sent. */
function opened({ sealing }: SettingsPorts, merchantId: bigint, row: SettingsRow): SettingsRow {
  return withDestinations(row, (one) => openText(sealing, one, aboutList(merchantId)));
}

/** A row as it is stored: account numbers are sealed. */
function sealed({ sealing }: SettingsPorts, merchantId: bigint, row: SettingsRow): SettingsRow {
  return withDestinations(row, (one) => sealDestination(sealing, one, aboutList(merchantId)));
}

const aboutList = (merchantId: bigint): string => `allow-list ${merchantId}`;

function withDestinations(row: SettingsRow, change: (destination: string) => string): SettingsRow {
  const { sent, waiting } = row.allowList;
  const allowList = {
    sent: sent.map(change),
    waiting: waiting === null ? null : { ...waiting, inForce: waiting.inForce.map(change) },
  };
  return { ...row, allowList };
}

/** A loosening that has taken effect no longer waits. */
function settled<T>(guard: Guarded<T>, now: number): Guarded<T> {
  return guard.waiting !== null && now >= guard.waiting.from.getTime() ? { sent: guard.sent, waiting: null } : guard;
}

function inForce<T>(guard: Guarded<T>): T {
  return guard.waiting === null ? guard.sent : guard.waiting.inForce;
}

/** Whether `next` allows something that `list` (a list as sent: empty = everything) does not. */
function allowsMore(next: readonly string[], list: readonly string[]): boolean {
  return list.length > 0 && (next.length === 0 || next.some((destination) => !list.includes(destination)));
}

/** Whether `next` would let more through without approval than `limit` does (null = no limit). */
function letsPassMore(next: bigint | null, limit: bigint | null): boolean {
  return limit !== null && (next === null || next > limit);
}

/**
 * @param guard settled What a change removes is gone at once; what it adds waits. What already waits keeps its time when the change adds
 * nothing to it.
 */
function nextAllowList(guard: Guarded<readonly string[]>, sent: readonly string[], now: number): Guarded<readonly string[]> {
  const { waiting } = guard;
  // while something waits the allow-list is on, even if it is empty
  const loosens =
    waiting === null ? allowsMore(sent, guard.sent) : sent.length === 0 || sent.some((to) => !waiting.inForce.includes(to));
  if (!loosens) return { sent, waiting: null };
  const holds = inForce(guard);
  return {
    sent,
    waiting: {
      inForce: sent.length === 0 ? holds : holds.filter((destination) => sent.includes(destination)),
      from: waiting !== null && !allowsMore(sent, guard.sent) ? waiting.from : new Date(now + LOOSENING_WAITS_MS),
    },
  };
}

/** The same for the approval limit: a lower one takes effect at once, a higher one or none later. */
function nextApproval(guard: Guarded<bigint | null>, sent: bigint | null, now: number): Guarded<bigint | null> {
  const holds = inForce(guard);
  if (!letsPassMore(sent, holds)) return { sent, waiting: null };
  const keepsTime = guard.waiting !== null && !letsPassMore(sent, guard.sent);
  return { sent, waiting: { inForce: holds, from: keepsTime ? guard.waiting.from : new Date(now + LOOSENING_WAITS_MS) } };
}

function shown(row: SettingsRow, now: number): Settings {
  const allowList = settled(row.allowList, now);
  const approvalAbove = settled(row.approvalAbove, now);
  return {
    tolerancePercent: formatMinor(BigInt(row.toleranceBps), 2),
    latePayments: row.latePayments,
    payoutAllowList: allowList.sent,
    payoutApprovalAbove: approvalAbove.sent === null ? null : formatMinor(approvalAbove.sent, 2),
    ...(allowList.waiting === null ? {} : { payoutAllowListFromMs: allowList.waiting.from.getTime() }),
    ...(approvalAbove.waiting === null ? {} : { payoutApprovalAboveFromMs: approvalAbove.waiting.from.getTime() }),
  };
}

function checkScopes(scopes: ReadonlySet<Scope>, change: SettingsChange): void {
  const guards = change.payoutAllowList !== undefined || change.payoutApprovalAbove !== undefined;
  const plain = change.tolerancePercent !== undefined || change.latePayments !== undefined;
  const missing = (scope: Scope): Refusal =>
    new Refusal('insufficient_permissions', { message: `This change needs the scope ${scope}, which this user lacks.` });
  if (guards && !scopes.has('payouts')) throw missing('payouts');
  if ((plain || !guards) && !scopes.has('payments')) throw missing('payments');
}

function toleranceBps(text: string): number {
  const parsed = parseAmount(text, 2);
  if ('minor' in parsed && parsed.minor <= MAX_TOLERANCE_BPS) return Number(parsed.minor);
  const message = 'tolerance_percent must be a decimal string from "0" to "5" with at most 2 decimals.';
  throw new Refusal('invalid_request', { message, param: 'tolerance_percent' });
}

function latePolicy(text: string): LatePolicy {
  if (text === 'accept' || text === 'review') return text;
  throw new Refusal('invalid_request', { message: 'late_payments must be "accept" or "review".', param: 'late_payments' });
}

function destinations(list: readonly string[]): readonly string[] {
  const plain = list.every((to) => typeof to === 'string' && to.length <= MAX_DESTINATION_LENGTH && /^[\x21-\x7e]+$/.test(to));
  if (plain && list.length <= MAX_DESTINATIONS) return [...new Set(list)];
  const message = `payout_allow_list must be a list of at most ${MAX_DESTINATIONS} destinations: addresses, Lightning addresses or bank accounts, without white space.`;
  throw new Refusal('invalid_request', { message, param: 'payout_allow_list' });
}

function approvalLimit(text: string | null): bigint | null {
  if (text === null) return null;
  const parsed = parseAmount(text, 2);
  if ('minor' in parsed) return parsed.minor;
  const message = 'payout_approval_above must be null or an amount in USD such as "250.00", with at most 2 decimals.';
  throw new Refusal('invalid_amount', { message, param: 'payout_approval_above' });
}
