// The rows of idempotency keys.
import type { Sql } from '../postgres/connect.ts';

/** What a key is unique within: merchant and operation (its path without /v1). */
export type KeyOf = { readonly merchantId: bigint; readonly operation: string; readonly key: string };
export type StoredAnswer = { readonly bodyHash: Buffer; readonly httpStatus: number; readonly answer: string };

/** Locks the key until the transaction ends; false when another transaction holds it (its first request is still running). */
export async function tryLockKey(sql: Sql, { merchantId, operation, key }: KeyOf): Promise<boolean> {
  const { rows } = await sql.query<{ locked: boolean }>({
    name: 'idempotency_lock',
    text: `select pg_try_advisory_xact_lock(hashtextextended($1, 10)) as locked`,
    values: [`${merchantId} ${operation} ${key}`],
  });
  return rows[0]?.locked === true;
}

/** The HTTP status of a key that has no answer yet. */
const CLAIMED = 0;
/** Whether a key has no answer yet, and is claimed for one body ({@link claimKey}). */
export const isClaim = ({ httpStatus }: StoredAnswer): boolean => httpStatus === CLAIMED;
/** A claim that was made later than this was made by a clock that has been set back since, and holds nobody up. */
const LONGEST_CLAIM_MS = 30_000;

/**
 * Claims a key that has no answer for one body, until its answer is stored, 30 seconds long at most. False when it is claimed for another body, or
 * has an answer. What is done outside for a call comes before the lock of its key, and another process does not see it there.
 */
export async function claimKey(
  sql: Sql,
  { merchantId, operation, key, bodyHash }: KeyOf & Pick<StoredAnswer, 'bodyHash'>,
  nowMs: number,
): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'idempotency_claim',
    text: `insert into idempotency_keys as k (merchant_id, operation, key, body_hash, http_status, answer, created_at, expires_at)
           values ($1, $2, $3, $4, ${CLAIMED}, '', $5, $6)
           on conflict (merchant_id, operation, key) do update
             set body_hash = excluded.body_hash, http_status = excluded.http_status, answer = excluded.answer,
                 created_at = excluded.created_at, expires_at = excluded.expires_at
           where k.expires_at <= $5 or (k.http_status = ${CLAIMED} and (k.body_hash = excluded.body_hash or k.created_at > $6))`,
    values: [merchantId, operation, key, bodyHash, new Date(nowMs), new Date(nowMs + LONGEST_CLAIM_MS)],
  });
  return rowCount === 1;
}

/** The stored answer, or for which body the key is claimed ({@link isClaim}); null when there is neither or it has expired. */
export async function findKey(sql: Sql, { merchantId, operation, key }: KeyOf, nowMs: number): Promise<StoredAnswer | null> {
  const { rows } = await sql.query<StoredAnswer>({
    name: 'idempotency_find',
    text: `select body_hash as "bodyHash", http_status as "httpStatus", answer from idempotency_keys
           where merchant_id = $1 and operation = $2 and key = $3 and (expires_at is null or expires_at > $4)
             and (http_status <> ${CLAIMED} or created_at <= $5)`,
    values: [merchantId, operation, key, new Date(nowMs), new Date(nowMs + LONGEST_CLAIM_MS)],
  });
  return rows[0] ?? null;
}

/** Stores an answer; it replaces an expired one. */
export async function saveAnswer(
  sql: Sql,
  of: KeyOf,
  stored: StoredAnswer,
  nowMs: number,
  expiresAtMs: number | null,
): Promise<void> {
  await sql.query({
    name: 'idempotency_save',
    text: `insert into idempotency_keys (merchant_id, operation, key, body_hash, http_status, answer, created_at, expires_at)
           values ($1, $2, $3, $4, $5, $6, $7, $8)
           on conflict (merchant_id, operation, key) do update
             set body_hash = excluded.body_hash, http_status = excluded.http_status, answer = excluded.answer,
                 created_at = excluded.created_at, expires_at = excluded.expires_at`,
    values: [
      of.merchantId,
      of.operation,
      of.key,
      stored.bodyHash,
      stored.httpStatus,
      stored.answer,
      new Date(nowMs),
      expiresAtMs === null ? null : new Date(expiresAtMs),
    ],
  });
}

/** Deletes at most `limit` expired keys; returns how many. */
export async function pruneKeys(sql: Sql, nowMs: number, limit: number): Promise<number> {
  const { rowCount } = await sql.query({
    name: 'idempotency_prune',
    text: `delete from idempotency_keys where ctid = any (array(
             select ctid from idempotency_keys where expires_at <= $1 order by expires_at limit $2 for update skip locked))`,
    values: [new Date(nowMs), limit],
  });
  return rowCount ?? 0;
}
