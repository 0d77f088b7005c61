// The idempotency key of a write: where it is sent, what it may contain, and which part of the body it covers (behaviour §1). flow/idempotency.ts
// applies it.
import { createHash } from 'node:crypto';
import { KEY_MAX_LENGTH, longerThan, UNPRINTABLE } from '../contract/fields.ts';
import { Refusal } from '../core/refusal.ts';
import type { JsonObject } from './read-body.ts';

const UNPRINTABLE_PATTERN = new RegExp(`[${UNPRINTABLE}]`);

/**
 * The key of the `Idempotency-Key` header or of the field `idempotency_key`; null when there is none.
 * Refused with invalid_request: not 1 to 255 printable characters, or both places with different keys.
 */
export function presentedKey(body: JsonObject, header: string | undefined): string | null {
  const inHeader = header === undefined ? null : checked(fromHeader(header));
  const inBody = body.idempotency_key === undefined || body.idempotency_key === null ? null : checked(body.idempotency_key);
  if (inHeader !== null && inBody !== null && inHeader !== inBody) {
    throw new Refusal('invalid_request', {
      message: 'idempotency_key and the Idempotency-Key header differ.',
      param: 'idempotency_key',
    });
  }
  return inHeader ?? inBody;
}

function checked(key: unknown): string {
  if (
    typeof key !== 'string' ||
    key === '' ||
    longerThan(key, KEY_MAX_LENGTH) ||
    !key.isWellFormed() ||
    UNPRINTABLE_PATTERN.test(key)
  ) {
    throw new Refusal('invalid_request', {
      message: `The idempotency key must have 1 to ${KEY_MAX_LENGTH} printable characters.`,
      param: 'idempotency_key',
    });
  }
  return key;
}

/** Header bytes arrive as Latin-1; a key sent as UTF-8 is decoded as such, so that the same key is equal in both places. */
function fromHeader(latin1: string): string {
  if (!/[\x80-\xff]/.test(latin1)) return latin1;
  const utf8 = Buffer.from(latin1, 'latin1').toString('utf8');
  return utf8.includes('\ufffd') ? latin1 : utf8;
}

/** sha256 of the body without its token and its key, whatever the order of its fields. */
export function bodyHash(body: JsonObject): Buffer {
  const { access_token: _token, idempotency_key: _key, ...rest } = body;
  return createHash('sha256').update(canonical(rest)).digest();
}

function canonical(value: unknown): string {
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  const fields = Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1));
  return `{${fields.map(([name, item]) => `${JSON.stringify(name)}:${canonical(item)}`).join(',')}}`;
}
