// The row of a merchant's settings; flow/merchants/settings decides what a change means and when it takes effect.
import type { StoredSeal } from '../../core/row-seals.ts';
import type { Sql } from '../postgres/connect.ts';
import { newestOf } from './seals.ts';

export type LatePolicy = 'accept' | 'review';

/** A guard of payouts: what was sent last, and, while a loosening waits, what is in force until `from`. */
export type Guarded<T> = { readonly sent: T; readonly waiting: { readonly inForce: T; readonly from: Date } | null };

export type SettingsRow = {
  readonly toleranceBps: number;
  readonly latePayments: LatePolicy;
  /** Empty in `sent` = off; empty in `waiting.inForce` = nothing is allowed. */
  readonly allowList: Guarded<readonly string[]>;
  /** Cents; null = no approval. */
  readonly approvalAbove: Guarded<bigint | null>;
};
export type StoredSettings = SettingsRow & StoredSeal;

/** The columns of a row, for statements that read other facts with it. */
export type SettingsColumns = {
  tolerance_bps: number;
  late_payments: LatePolicy;
  payout_allow_list: string[];
  payout_allow_list_old: string[];
  payout_allow_list_from: Date | null;
  payout_approval_above: string | null;
  payout_approval_above_old: string | null;
  payout_approval_above_from: Date | null;
  settings_seal: Buffer | null;
  settings_version: bigint;
  newest_settings: bigint;
};
/** Of `merchant_settings`. */
export const SETTINGS_COLUMNS = `tolerance_bps, late_payments, payout_allow_list, payout_allow_list_old, payout_allow_list_from,
  payout_approval_above, payout_approval_above_old, payout_approval_above_from, merchant_settings.seal as settings_seal,
  merchant_settings.seal_version as settings_version, ${newestOf(`'settings ' || merchant_settings.merchant_id`)} as newest_settings`;

/** A merchant's settings with their seal; every merchant has a row. Locks nothing. */
export async function readSettings(sql: Sql, merchantId: bigint): Promise<StoredSettings> {
  const { rows } = await sql.query<SettingsColumns>({
    name: 'settings_read',
    text: `select ${SETTINGS_COLUMNS} from merchant_settings where merchant_id = $1`,
    values: [merchantId],
  });
  return settingsFrom(rows[0] as SettingsColumns);
}

/** The same, locked until the transaction ends. */
export async function lockSettings(sql: Sql, merchantId: bigint): Promise<StoredSettings> {
  const { rows } = await sql.query<SettingsColumns>({
    name: 'settings_lock',
    text: `select ${SETTINGS_COLUMNS} from merchant_settings where merchant_id = $1 for update`,
    values: [merchantId],
  });
  return settingsFrom(rows[0] as SettingsColumns);
}

/** What a new merchant's row says. */
export const DEFAULT_SETTINGS: SettingsRow = {
  toleranceBps: 100,
  latePayments: 'accept',
  allowList: { sent: [], waiting: null },
  approvalAbove: { sent: null, waiting: null },
};

/** @param sealed the seal of exactly this row, and its version, which the caller takes */
export async function writeSettings(
  sql: Sql,
  merchantId: bigint,
  row: SettingsRow,
  sealed: { readonly seal: Uint8Array; readonly version: bigint },
): Promise<void> {
  await sql.query({
    name: 'settings_write',
    text: `update merchant_settings set tolerance_bps = $2, late_payments = $3, payout_allow_list = $4, payout_allow_list_old = $5,
             payout_allow_list_from = $6, payout_approval_above = $7, payout_approval_above_old = $8, payout_approval_above_from = $9, seal = $10, seal_version = $11
           where merchant_id = $1`,
    values: [
      merchantId,
      row.toleranceBps,
      row.latePayments,
      row.allowList.sent,
      row.allowList.waiting?.inForce ?? [],
      row.allowList.waiting?.from ?? null,
      row.approvalAbove.sent,
      row.approvalAbove.waiting?.inForce ?? null,
      row.approvalAbove.waiting?.from ?? null,
      sealed.seal,
      sealed.version,
    ],
  });
}

const amountOf = (text: string | null): bigint | null => (text === null ? null : BigInt(text));

/** The settings in columns that a query has selected by {@link SETTINGS_COLUMNS}; amounts in cents. */
export function settingsFrom(row: SettingsColumns): StoredSettings {
  const listFrom = row.payout_allow_list_from;
  const approvalFrom = row.payout_approval_above_from;
  return {
    seal: row.settings_seal,
    version: row.settings_version,
    isNewest: row.settings_version === row.newest_settings,
    toleranceBps: row.tolerance_bps,
    latePayments: row.late_payments,
    allowList: {
      sent: row.payout_allow_list,
      waiting: listFrom === null ? null : { inForce: row.payout_allow_list_old, from: listFrom },
    },
    approvalAbove: {
      sent: amountOf(row.payout_approval_above),
      waiting: approvalFrom === null ? null : { inForce: amountOf(row.payout_approval_above_old), from: approvalFrom },
    },
  };
}

/** Settings of merchants after one of them, in the order of their ids, with the merchant's public id. */
export async function listSettings(
  sql: Sql,
  after: bigint,
  limit: number,
): Promise<readonly { readonly merchantId: bigint; readonly affiliateId: string; readonly settings: StoredSettings }[]> {
  const { rows } = await sql.query<SettingsColumns & { merchant_id: bigint; affiliate_id: string }>({
    name: 'settings_list',
    text: `select ${SETTINGS_COLUMNS}, merchant_id, (select m.affiliate_id from merchants m where m.id = merchant_id) as affiliate_id
             from merchant_settings where merchant_id > $1 order by merchant_id limit $2`,
    values: [after, limit],
  });
  return rows.map((row) => ({ merchantId: row.merchant_id, affiliateId: row.affiliate_id, settings: settingsFrom(row) }));
}
