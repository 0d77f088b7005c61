// JSON (RFC 8259) whose numbers keep the text in which they were written: amounts and prices never go through a double. Used by utxo-rpc.ts
// and rate-http.ts.

type Reviver = (key: string, value: unknown, context: { readonly source?: string }) => unknown;
// the library's types do not know yet that a reviver gets the text of what it revives
const parseWith = JSON.parse as (text: string, reviver: Reviver) => unknown;

/** A number that a double cannot be trusted with: a fraction, an exponent, sixteen digits. */
const DELICATE_NUMBER = /[[:,]\s*-?(?:\d{16}|\d+[.eE])/;
const WHOLE = /^-?\d+$/;

/**
 * Parses; a whole number that a double holds exactly is a number, every other number is its text (`1.0`, `1e3`, `9007199254740993`).
 * Of keys that come twice the last counts. Throws SyntaxError for what is not JSON.
 */
export function parseExact(text: string): unknown {
  if (!DELICATE_NUMBER.test(text)) return JSON.parse(text);
  return parseWith(text, (_key, value, { source }) =>
    typeof value !== 'number' || (Number.isSafeInteger(value) && WHOLE.test(source as string)) ? value : source,
  );
}

/** Parses; every number is its text. Otherwise as `parseExact`. */
export function parseNumbersAsText(text: string): unknown {
  return parseWith(text, (_key, value, { source }) => (typeof value === 'number' ? source : value));
}
