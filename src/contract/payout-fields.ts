// The fields of payouts and of the settings that guard them.
import { parseAmount } from '../core/money.ts';
import { PAYOUT_METHODS, PAYOUT_UNITS } from '../core/payouts/units.ts';
import { type Field, outcome, wrong } from './fields.ts';
import { readAmount, usdAmount } from './money-fields.ts';

/** A payout's amount as it was sent, its unit still unknown; core/payouts/validation reads it once the method is known. */
export function payoutAmount(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_amount',
    schema: { type: 'string', pattern: `^(all|(0|[1-9][0-9]{0,17})(\\.[0-9]{1,8})?)$`, examples: ['0.001'] },
    read(value, name) {
      const isAmount = typeof value === 'string' && 'minor' in parseAmount(value, MOST_DECIMALS);
      if (value !== 'all' && !isAmount) throw wrong('invalid_amount', name, ACCEPTED_AMOUNT);
      return value as string;
    },
  };
}

const MOST_DECIMALS = 18;
const DECIMALS_OF_METHODS = PAYOUT_METHODS.map((method) => `${PAYOUT_UNITS[method].decimals} by ${method}`).join(', ');
const ACCEPTED_AMOUNT = `"all", or a decimal string with at most 18 digits before the point and as many behind it as the unit of the method has (${DECIMALS_OF_METHODS}); no sign, exponent, space or leading zero`;

const LONGEST_DESTINATION = 2048;
const PRINTABLE = /^[\x21-\x7e]+$/;
const isDestination = (value: unknown): value is string =>
  typeof value === 'string' && value.length <= LONGEST_DESTINATION && PRINTABLE.test(value);
const destinationSchema = {
  type: 'string',
  minLength: 1,
  maxLength: LONGEST_DESTINATION,
  pattern: '^[!-~]+$',
  examples: ['bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4'],
};

/** Where money goes: an address, an invoice, a bank account. core/payouts/validation checks it for its method. */
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

/** An amount as it was sent, its unit still unknown. */
export function plainAmount(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_amount',
    schema: { type: 'string', pattern: '^(0|[1-9][0-9]{0,17})(\\.[0-9]{1,8})?$', examples: ['0.01'] },
    read(value, name) {
      readAmount(value, name, 18);
      return value as string;
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
    schema: { type: 'array', maxItems: LONGEST_LIST, items: destinationSchema, examples: [[destinationSchema.examples[0]]] },
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
  return outcome(usdAmount(about), (_cents, sent) => sent as string);
}
