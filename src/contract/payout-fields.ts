// The fields of payouts and of the settings that guard them; beside fields.ts, which has the general ones. Called by the endpoint table and,
// for what depends on two fields (amount and method), by the handler of /request_payout.
import { parseAmount } from '../core/money.ts';
import { Refusal } from '../core/refusal.ts';
import { type Field, outcome, wrong } from './fields.ts';
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

/** A payout's amount as it was sent, of any unit so far; {@link checkPayout} reads it once the method is known. */
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

const FORMS: Readonly<Record<PayoutMethod, readonly { readonly form: RegExp; readonly says: string }[]>> = {
  lightning: [
    { form: /^ln(bc|tb|bcrt|tbs)[0-9]*[munp]?1[02-9ac-hj-np-z]+$/i, says: 'a BOLT11 invoice' },
    { form: /^lnurl1[02-9ac-hj-np-z]+$/i, says: 'an LNURL' },
    { form: /^[a-z0-9_.+-]+@[a-z0-9.-]+(:\d{1,5})?$/i, says: 'a Lightning address' },
  ],
  bitcoin: [
    { form: /^(bc|tb|bcrt)1[02-9ac-hj-np-z]{11,87}$|^(BC|TB|BCRT)1[02-9AC-HJ-NP-Z]{11,87}$/, says: 'a bech32 address' },
    { form: /^[123mn][1-9A-HJ-NP-Za-km-z]{25,34}$/, says: 'a base58 address' },
  ],
  ach: [
    { form: /^ba_[0-9A-Za-z]+$/, says: 'a saved bank account ba_…' },
    { form: /^ach:\d{9}:[0-9A-Za-z-]{1,17}(:checking|:savings)?$/, says: 'ach:<routing>:<account>[:checking|savings]' },
  ],
  usdt: [{ form: /^0[xX][0-9a-fA-F]{40}$/, says: 'an Ethereum address' }],
};

/**
 * Checks a payout's fields against each other: the decimals of the amount, the form of the destination, the minimum (inclusive).
 * Refused: invalid_amount, invalid_destination, payout_below_minimum.
 */
export function checkPayout(payout: {
  readonly method: PayoutMethod;
  readonly amount: string;
  readonly destination: string;
}): void {
  const { method, amount } = payout;
  const unit = PAYOUT_UNITS[method];
  const minor = amount === 'all' ? null : readAmount(amount, 'amount', unit.decimals);
  checkDestination(method, payout.destination);
  if (minor !== null && minor < unit.minimumMinor) {
    throw new Refusal('payout_below_minimum', {
      message: `The minimum of ${method} is ${unit.minimum} ${unit.code}.`,
      param: 'amount',
    });
  }
}

function checkDestination(method: PayoutMethod, destination: string): void {
  const forms = FORMS[method];
  const fits =
    forms.some(({ form }) => form.test(destination)) && (!destination.startsWith('ach:') || isRouting(destination.slice(4, 13)));
  if (!fits) throw wrong('invalid_destination', 'destination', `for ${method} ${forms.map(({ says }) => says).join(' or ')}`);
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
  return outcome(usdAmount(about), (_cents, sent) => sent as string);
}
