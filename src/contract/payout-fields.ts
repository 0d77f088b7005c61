// The fields of payouts and of the settings that guard them; beside fields.ts, which has the general ones. Called by the endpoint table and,
// for what depends on two fields (amount and method), by the handler of /request_payout.
import { parseAmount } from '../core/money.ts';
import { Refusal } from '../core/refusal.ts';
import { type Field, wrong } from './fields.ts';
import { readAmount, usdAmount } from './money-fields.ts';

export type PayoutMethod = 'lightning' | 'bitcoin' | 'ach' | 'usdt';

/** The unit of a payout's amount: its decimals, its code, and the minimum in minor units (interface.md §8). */
export const PAYOUT_UNITS: Readonly<
  Record<
    PayoutMethod,
    { readonly code: string; readonly decimals: number; readonly minimumMinor: bigint; readonly minimum: string }
  >
> = {
  lightning: { code: 'BTC', decimals: 8, minimumMinor: 1n, minimum: '0.00000001' },
  bitcoin: { code: 'BTC', decimals: 8, minimumMinor: 100_000n, minimum: '0.001' },
  ach: { code: 'USD', decimals: 2, minimumMinor: 100_00n, minimum: '100' },
  usdt: { code: 'USDT', decimals: 6, minimumMinor: 50_000_000n, minimum: '50' },
};

/** A payout's amount as it was sent, of any unit so far; {@link payoutMinor} reads it once the method is known. */
export function payoutAmount(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_amount',
    schema: { type: 'string', pattern: `^(all|(0|[1-9][0-9]{0,17})(\\.[0-9]{1,8})?)$`, examples: ['150'] },
    read(value, name) {
      if (value !== 'all') readAmount(value, name, 18);
      return value as string;
    },
  };
}

/**
 * The amount in minor units of the method's unit; null for `all`.
 * Refused: invalid_amount (more decimals than the unit has), payout_below_minimum (minimums are inclusive).
 */
export function payoutMinor(method: PayoutMethod, amount: string): bigint | null {
  if (amount === 'all') return null;
  const unit = PAYOUT_UNITS[method];
  const minor = readAmount(amount, 'amount', unit.decimals);
  if (minor < unit.minimumMinor) {
    throw new Refusal('payout_below_minimum', {
      message: `The minimum of ${method} is ${unit.minimum} ${unit.code}.`,
      param: 'amount',
    });
  }
  return minor;
}

const LONGEST_DESTINATION = 2048;
const PRINTABLE = /^[\x21-\x7e]+$/;
const isDestination = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LONGEST_DESTINATION && PRINTABLE.test(value);
const destinationSchema = { type: 'string', minLength: 1, maxLength: LONGEST_DESTINATION, pattern: '^[!-~]+$' };

/** Where money goes: an address, an invoice, a bank account. What it must be for its method is the rail's to check. */
export function destination(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_destination',
    schema: destinationSchema,
    read(value, name) {
      if (!isDestination(value)) {
        throw wrong(
          'invalid_destination',
          name,
          `a string of 1 to ${LONGEST_DESTINATION} printable ASCII characters without spaces`,
        );
      }
      return value;
    },
  };
}

const LONGEST_LIST = 100;

/** A list of at most 100 different destinations. */
export function destinations(about: string): Field<readonly string[], true> {
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'array', maxItems: LONGEST_LIST, items: destinationSchema },
    read(value, name) {
      if (!Array.isArray(value) || value.length > LONGEST_LIST || !value.every(isDestination)) {
        throw wrong('invalid_request', name, `a list of at most ${LONGEST_LIST} destinations`);
      }
      return [...new Set(value)];
    },
  };
}

const MAX_TOLERANCE_BPS = 500n;

/** A percentage from 0 to 5 with at most 2 decimals, as it was sent. */
export function percent(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_request',
    schema: { type: 'string', pattern: '^([0-4](\\.[0-9]{1,2})?|5(\\.0{1,2})?)$', examples: ['1.00'] },
    read(value, name) {
      const parsed = typeof value === 'string' ? parseAmount(value, 2) : null;
      if (parsed === null || !('minor' in parsed) || parsed.minor > MAX_TOLERANCE_BPS) {
        throw wrong('invalid_request', name, 'a decimal string from "0" to "5" with at most 2 decimals');
      }
      return value as string;
    },
  };
}

/** An amount in USD, as it was sent. */
export function usdText(about: string): Field<string, true> {
  const { read, schema, refusal } = usdAmount(about);
  return {
    required: true,
    about,
    refusal,
    schema,
    read(value, name) {
      read(value, name);
      return value as string;
    },
  };
}
