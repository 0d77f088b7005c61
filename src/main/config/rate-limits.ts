// The setting BURSAR_RATE_LIMITS: other numbers than those of the contract, for single operations.
import { type CallLimit, OTHER_LIMITS, type RateLimits } from '../../contract/endpoint.ts';
import { MERCHANT_API } from '../../contract/merchant-api.ts';
import { STREAM_API } from '../../contract/webhook-api.ts';
import type { Reader } from './value-readers.ts';

const NAMES: readonly string[] = [
  ...Object.values({ ...MERCHANT_API, ...STREAM_API }).map(({ path }) => path.slice(1)),
  ...OTHER_LIMITS,
];
const MOST = 1_000_000;

/** `create_transaction=240/120,anonymous=30`: calls a minute, after the slash the burst; each operation at most once. */
export const rateLimits: Reader<RateLimits> = (value) => {
  const accepted = new Error(
    `limits such as create_transaction=240/120,anonymous=30: calls a minute (1 to ${MOST}) and after a slash the burst, for operations by their names, ${OTHER_LIMITS.join(', ')}, each at most once`,
  );
  const limits = value.split(',').map((part): [string, CallLimit] => {
    const [, name = '', calls, burst] = /^\s*([a-z_]+)\s*=\s*(\d{1,7})(?:\/(\d{1,7}))?\s*$/.exec(part) ?? [];
    const [perMinute, most] = [Number(calls), burst === undefined ? undefined : Number(burst)];
    const isPossible = [perMinute, most ?? 1].every((one) => one >= 1 && one <= MOST);
    if (!NAMES.includes(name) || !isPossible) throw accepted;
    return [name, most === undefined ? { perMinute } : { perMinute, burst: most }];
  });
  if (new Set(limits.map(([name]) => name)).size < limits.length) throw accepted;
  return Object.fromEntries(limits);
};
