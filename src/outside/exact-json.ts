// JSON (RFC 8259) whose numbers keep the text in which they were written: amounts and prices never go through a double.

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
// TypeScript's library types do not know yet that a reviver gets the source text
const parseWith = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** A number that a double may not hold exactly: a fraction, an exponent, sixteen digits. */
const DELICATE_NUMBER = /[[:,]\s*-?(?:\d{16}|\d+[.eE])/;
const WHOLE = /^-?\d+$/;

/**
 * Parses; a whole number that a double holds exactly becomes a number, every other number its text (`1.0`, `1e3`, `9007199254740993`). Of
 * duplicate keys the last counts. Throws SyntaxError for what is not JSON.
 */
export function parseExact(text: string): unknown {
  if (!DELICATE_NUMBER.test(text)) return JSON.parse(text);
  return parseWith(text, (_key, value, { source }) =>
    typeof value !== 'number' || (Number.isSafeInteger(value) && WHOLE.test(source as string)) ? value : source,
  );
}

/** Parses; every number becomes its text. Otherwise as `parseExact`. */
export function parseNumbersAsText(text: string): unknown {
  return parseWith(text, (_key, value, { source }) => (typeof value === 'number' ? source : value));
}
