// The fields of payouts and of the settings that guard them.
import { parseAmount } from '../core/money.ts';
import { PAYOUT_UNITS } from '../core/payouts/payout-units.ts';
import type { Destinations, PayoutMethod } from '../core/ports.ts';
import { Refusal } from '../core/refusal.ts';
import { type Field, outcome, wrong } from './fields.ts';
import { readAmount, usdAmount } from './money-fields.ts';

/** A payout's amount as it was sent, its unit still unknown; {@link checkPayout} reads it once the method is known. */
export function payoutAmount(about: string): Field<string, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_amount',
    schema: { type: 'string', pattern: `^(all|(0|[1-9][0-9]{0,17})(\\.[0-9]{1,8})?)$`, examples: ['0.001'] },
    read(value, name) {
      if (value !== 'all') readAmount(value, name, 18);
      return value as string;
    },
  };
}

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

/** Where money goes: an address, an invoice, a bank account. {@link checkPayout} checks it for its method. */
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

/**
 * Checks a payout's fields against each other: the decimals of the amount, the form of the destination, the minimum (inclusive).
 * Refused: invalid_amount, invalid_destination, payout_below_minimum.
 */
export function checkPayout(
  payout: { readonly method: PayoutMethod; readonly amount: string; readonly destination: string },
  destinations: Destinations,
): void {
  const { method, amount, destination } = payout;
  const unit = PAYOUT_UNITS[method];
  const minor = amount === 'all' ? null : readAmount(amount, 'amount', unit.decimals);
  const problem = method === 'ach' ? bankProblem(destination) : destinations.problem(method, destination);
  if (problem !== null) {
    throw new Refusal('invalid_destination', {
      message: `destination does not fit ${method}: ${problem}.`,
      param: 'destination',
    });
  }
  if (minor !== null && minor < unit.minimumMinor) {
    throw new Refusal('payout_below_minimum', {
      message: `The minimum of ${method} is ${unit.minimum} ${unit.code}.`,
      param: 'amount',
    });
  }
}

function bankProblem(destination: string): string | null {
  if (/^ba_[0-9A-Za-z]+$/.test(destination)) return null;
  const routing = /^ach:(\d{9}):[0-9A-Za-z-]{1,17}(?::checking|:savings)?$/.exec(destination)?.[1];
  if (routing === undefined) return 'it takes a saved bank account ba_… or ach:<routing>:<account>[:checking|savings]';
  return isRouting(routing) ? null : 'the check digit of the routing number is wrong';
}

/** The check digit of an ABA routing number. */
function isRouting(digits: string): boolean {
  const weights = [3, 7, 1, 3, 7, 1, 3, 7, 1];
  return weights.reduce((total, weight, index) => total + weight * Number(digits[index]), 0) % 10 === 0;
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
