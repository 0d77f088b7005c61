// The fields that are amounts in USD and names of currencies.
import {
  balanceOf,
  type CurrencyCode,
  PAYMENT_METHOD_NAMES,
  PAYMENT_METHODS,
  type PaymentMethod,
  paymentMethod,
} from '../core/currency.ts';
import { amountForm, parseAmount } from '../core/money.ts';
import { type Field, outcome, wrong } from './fields.ts';

/** Reads an amount of a unit into minor units; refused with invalid_amount (behaviour §1). */
export function readAmount(value: unknown, name: string, decimals: number): bigint {
  const parsed = typeof value === 'string' ? parseAmount(value, decimals) : null;
  if (parsed === null || !('minor' in parsed)) throw wrong('invalid_amount', name, amountForm(decimals).accepted);
  return parsed.minor;
}

/** An amount in USD; the result is in cents. */
export function usdAmount(about: string): Field<bigint, true> {
  return {
    required: true,
    about,
    refusal: 'invalid_amount',
    schema: { type: 'string', pattern: amountForm(2).pattern, examples: ['25.00'] },
    read: (value, name) => readAmount(value, name, 2),
  };
}

const anyCase = (word: string): string => word.replace(/[A-Z]/g, (letter) => `[${letter}${letter.toLowerCase()}]`);

/** What a customer pays with: a code in any case, or an alias. */
export function payWith(about: string): Field<PaymentMethod, true> {
  return {
    required: true,
    about,
    refusal: 'unsupported_currency',
    // the codes as a list, and a pattern for every other spelling: in most languages two names that differ only in a hyphen cannot be
    // members of one enum
    schema: {
      anyOf: [
        { type: 'string', enum: [...PAYMENT_METHODS] },
        { type: 'string', pattern: `^(${PAYMENT_METHOD_NAMES.map(anyCase).join('|')})$` },
      ],
      examples: [PAYMENT_METHODS[0]],
    },
    read(value, name) {
      const method = typeof value === 'string' && value.length <= 32 ? paymentMethod(value) : null;
      if (method === null) throw wrong('unsupported_currency', name, `one of ${PAYMENT_METHODS.join(', ')}`);
      return method;
    },
  };
}

/** A currency of a balance; Lightning's balance is BTC. */
export function balanceCurrency(about: string): Field<CurrencyCode, true> {
  return outcome(payWith(about), balanceOf);
}
