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

/** The stored answer; null when there is none or it has expired. */
export async function findAnswer(sql: Sql, { merchantId, operation, key }: KeyOf, nowMs: number): Promise<StoredAnswer | null> {
  const { rows } = await sql.query<StoredAnswer>({
    name: 'idempotency_find',
    text: `select body_hash as "bodyHash", http_status as "httpStatus", answer from idempotency_keys
           where merchant_id = $1 and operation = $2 and key = $3 and (expires_at is null or expires_at > $4)`,
    values: [merchantId, operation, key, new Date(nowMs)],
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
