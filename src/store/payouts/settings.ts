// The row of a merchant's automatic payouts; flow/payouts/settings decides what a change means.
import type { CurrencyCode } from '../../core/currency.ts';
import type { PayoutMethod } from '../../core/payouts/units.ts';
import type { Sql } from '../postgres/connect.ts';

export type PayoutSettingsRow = {
  readonly enabled: boolean;
  readonly method: PayoutMethod | null;
  readonly destination: string | null;
  /** As sent, in the method's unit. */
  readonly threshold: string | null;
  readonly leave: string;
  readonly sourceCurrency: CurrencyCode | null;
  /** From when on the destination is used. */
  readonly usableAtMs: number | null;
  readonly changedAtMs: number;
  /** Requests in a row that were refused for a reason that lasts. */
  readonly refused: number;
  readonly pausedAtMs: number | null;
  readonly pausedReason: string | null;
  /** Counts the changes of this merchant's settings; 0: before they were counted. */
  readonly version: bigint;
};
/** The settings as the API took them, signed by its key. */
export type Signed = { readonly keyId: string; readonly signature: Uint8Array };

type Raw = {
  enabled: boolean;
  method: PayoutMethod | null;
  destination: string | null;
  threshold: string | null;
  leave: string;
  source_currency: CurrencyCode | null;
  usable_at: Date | null;
  changed_at: Date;
  refused: number;
  paused_at: Date | null;
  paused_reason: string | null;
  version: bigint;
  newest: bigint;
  intent_key: string;
  intent: Buffer;
};

/** `isNewest`: no later version was ever written. */
export async function readPayoutSettings(
  sql: Sql,
  merchantId: bigint,
): Promise<(PayoutSettingsRow & Signed & { readonly isNewest: boolean }) | null> {
  const { rows } = await sql.query<Raw>({
    name: 'read_payout_settings',
    text: `select s.*, coalesce((select max(v.version) from payout_settings_versions v where v.merchant_id = s.merchant_id), 0) as newest
             from payout_settings s where s.merchant_id = $1`,
    values: [merchantId],
  });
  const [raw] = rows;
  if (raw === undefined) return null;
  return {
    enabled: raw.enabled,
    method: raw.method,
    destination: raw.destination,
    threshold: raw.threshold,
    leave: raw.leave,
    sourceCurrency: raw.source_currency,
    usableAtMs: raw.usable_at?.getTime() ?? null,
    changedAtMs: raw.changed_at.getTime(),
    refused: raw.refused,
    pausedAtMs: raw.paused_at?.getTime() ?? null,
    pausedReason: raw.paused_reason,
    version: raw.version,
    isNewest: raw.version === raw.newest,
    keyId: raw.intent_key,
    signature: raw.intent,
  };
}

/** Only one change of a merchant's payout settings, and one automatic payout of it, at a time; until the transaction ends. */
export async function lockPayoutSettings(sql: Sql, merchantId: bigint): Promise<void> {
  await sql.query({
    name: 'lock_payout_settings',
    text: `select pg_advisory_xact_lock(hashtextextended('payout settings ' || $1::text, 0))`,
    values: [merchantId],
  });
}

/** The number of the next change; the lock above is held. It is taken for good when it is written. */
export async function nextSettingsVersion(sql: Sql, merchantId: bigint): Promise<bigint> {
  const { rows } = await sql.query<{ next: bigint }>({
    name: 'next_payout_settings_version',
    text: 'select coalesce(max(version), 0) + 1 as next from payout_settings_versions where merchant_id = $1',
    values: [merchantId],
  });
  return rows[0]?.next as bigint;
}

/** Writes settings under a version of their own. */
export async function writePayoutSettings(sql: Sql, merchantId: bigint, row: PayoutSettingsRow, signed: Signed): Promise<void> {
  const at = (ms: number | null): Date | null => (ms === null ? null : new Date(ms));
  await sql.query({
    name: 'write_payout_settings',
    text: `with taken as (insert into payout_settings_versions (merchant_id, version) values ($1, $15))
           insert into payout_settings (merchant_id, enabled, method, destination, threshold, leave, source_currency, usable_at, changed_at, refused,
                                        paused_at, paused_reason, intent_key, intent, version)
             values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
           on conflict (merchant_id) do update set enabled = excluded.enabled, method = excluded.method, destination = excluded.destination,
             threshold = excluded.threshold, leave = excluded.leave, source_currency = excluded.source_currency, usable_at = excluded.usable_at,
             changed_at = excluded.changed_at, refused = excluded.refused, paused_at = excluded.paused_at, paused_reason = excluded.paused_reason,
             intent_key = excluded.intent_key, intent = excluded.intent, version = excluded.version`,
    values: [
      merchantId,
      row.enabled,
      row.method,
      row.destination,
      row.threshold,
      row.leave,
      row.sourceCurrency,
      at(row.usableAtMs),
      at(row.changedAtMs),
      row.refused,
      at(row.pausedAtMs),
      row.pausedReason,
      signed.keyId,
      signed.signature,
      row.version,
    ],
  });
}

/** Counts a refused request, or none since the last that was taken; `reason` begins a pause. */
export async function noteRefused(
  sql: Sql,
  merchantId: bigint,
  note: { readonly refused: number; readonly reason: string | null; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'note_automatic_refused',
    text: `update payout_settings set refused = $2, paused_reason = $3::text, paused_at = case when $3::text is not null then $4::timestamptz end
            where merchant_id = $1`,
    values: [merchantId, note.refused, note.reason, new Date(note.atMs)],
  });
}

/**
 * Merchants whose automatic payouts may be due: on, not paused, the destination is old enough, none of them is open, and something is available.
 * Suspended merchants are left out.
 */
export async function dueMerchants(
  sql: Sql,
  due: {
    readonly nowMs: number;
    readonly after: bigint;
    readonly limit: number;
    /** Only those, or only the others; absent: all. */
    readonly overLightning?: boolean;
  },
): Promise<readonly bigint[]> {
  const { rows } = await sql.query<{ merchant_id: bigint }>({
    name: 'automatic_payouts_due',
    text: `select s.merchant_id from payout_settings s join merchants m on m.id = s.merchant_id
            where s.enabled and s.paused_at is null and s.usable_at <= $1 and s.merchant_id > $2 and m.suspended_at is null
              and ($4::boolean is null or (s.method = 'lightning') = $4)
              and not exists (select from payouts p where p.merchant_id = s.merchant_id and p.automatic and p.step <> 'ended' and p.method = s.method)
              and exists (select from ledger.account a join ledger.balance b on b.account_id = a.id
                           where a.merchant_id = s.merchant_id and a.kind = 'available' and b.amount > 0)
            order by s.merchant_id limit $3`,
    values: [new Date(due.nowMs), due.after, due.limit, due.overLightning ?? null],
  });
  return rows.map((row) => row.merchant_id);
}

/** Whether an automatic payout of a merchant by this method has not ended yet. */
export async function isAutomaticOpen(sql: Sql, merchantId: bigint, method: PayoutMethod): Promise<boolean> {
  const { rows } = await sql.query<{ open: boolean }>({
    name: 'is_automatic_open',
    text: `select exists (select from payouts where merchant_id = $1 and method = $2 and automatic and step <> 'ended') as open`,
    values: [merchantId, method],
  });
  return rows[0]?.open === true;
}

/** On which API processes hear that automatic payouts may be due. */
export const AUTOMATIC_CHANNEL = 'automatic_payouts';

/** Tells the API processes when any are. */
export async function announceDue(sql: Sql, nowMs: number): Promise<void> {
  const [first] = await dueMerchants(sql, { nowMs, after: 0n, limit: 1 });
  if (first === undefined) return;
  await sql.query({ name: 'announce_automatic_payouts', text: `select pg_notify('${AUTOMATIC_CHANNEL}', '')`, values: [] });
}

/** The results of a merchant's newest automatic payouts since a moment, the newest first: whether it failed, and why. */
export async function lastAutomatic(
  sql: Sql,
  merchantId: bigint,
  since: { readonly ms: number; readonly limit: number },
): Promise<readonly { readonly failed: boolean; readonly error: string | null }[]> {
  const { rows } = await sql.query<{ failed: boolean; error: string | null }>({
    name: 'last_automatic_payouts',
    text: `select status = 'failed' as failed, error from payouts
            where merchant_id = $1 and automatic and created_at >= $2 and step = 'ended' and error is distinct from 'cancelled'
            order by created_at desc limit $3`,
    values: [merchantId, new Date(since.ms), since.limit],
  });
  return rows;
}
