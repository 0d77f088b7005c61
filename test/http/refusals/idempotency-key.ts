// Idempotency keys that are malformed, in two places, or still in use. Fourth section of refusals.test.ts.
import { expect, test } from 'vitest';
import { MERCHANT_API } from '../../../src/contract/merchant-api.ts';
import { KEYED, type RefusedCalls } from './refused-calls.ts';

export function refusesKeys(calls: RefusedCalls): void {
  const { good, refused } = calls;

  test.each(KEYED)('%s takes 1 to 255 printable characters, from one place', async (name) => {
    for (const idempotency_key of [5, {}, '', 'x'.repeat(256), 'a\u0000', 'a\nb', 'a\u0085', 'a\u2028', '\ud800']) {
      expect((await refused(name, 'invalid_request', { ...good(name), idempotency_key })).json.param).toBe('idempotency_key');
    }
    await refused(name, 'invalid_request', { ...good(name), idempotency_key: 'a' }, { 'idempotency-key': 'b' });
    await refused(name, 'invalid_request', good(name), { 'idempotency-key': '' });
  });
  test.each(KEYED)('%s refuses a key whose first request is still running', async (name) => {
    const [{ id }] = (await calls.api.sql('select id from merchants where affiliate_id = $1', [calls.api.affiliateId])) as [
      { id: bigint },
    ];
    const lock = `hashtextextended('${id} ${MERCHANT_API[name].path} held', 10)`;
    await calls.api.sql(`select pg_advisory_lock(${lock})`);
    await refused(name, 'request_in_progress', good(name), { 'idempotency-key': 'held' });
    await calls.api.sql(`select pg_advisory_unlock(${lock})`);
  });
}
