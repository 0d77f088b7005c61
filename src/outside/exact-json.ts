// JSON (RFC 8259) whose numbers keep the text in which they were written: amounts and prices never go through a double.

/** A number that a double may not hold exactly: a fraction, an exponent, sixteen digits. */
const DELICATE_NUMBER = /[[:,]\s*-?(?:\d{16}|\d+[.eE])/;
/** A string, or a number with its fraction and exponent. */
const TOKEN = /"[^"\\]*(?:\\[\s\S][^"\\]*)*"|-?(?:0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?/g;
const KEY_FOLLOWS = /\s*:/y;

/**
 * Parses; a whole number that a double holds exactly becomes a number, every other number its text (`1.0`, `1e3`, `9007199254740993`). Of
 * duplicate keys the last counts. Throws SyntaxError for what is not JSON.
 */
export function parseExact(text: string): unknown {
  if (!DELICATE_NUMBER.test(text)) return JSON.parse(text);
  return parseQuoted(text, (number, isWhole) => !isWhole || !Number.isSafeInteger(Number(number)));
}

/** Parses; every number becomes its text. Otherwise as `parseExact`. */
export function parseNumbersAsText(text: string): unknown {
  return parseQuoted(text, () => true);
}

/** Numbers are put in quotes before anything is parsed: a reviver that sees their source takes a second for each megabyte of them. */
function parseQuoted(text: string, isText: (number: string, isWhole: boolean) => boolean): unknown {
  const quoted = text.replace(TOKEN, (token, fraction: string | undefined, exponent: string | undefined, at: number) => {
    if (token.startsWith('"') || !isText(token, fraction === undefined && exponent === undefined)) return token;
    const end = at + token.length;
    if (text[end] === ',') return `"${token}"`;
    KEY_FOLLOWS.lastIndex = end;
    // a number is no key
    return KEY_FOLLOWS.test(text) ? token : `"${token}"`;
  });
  return JSON.parse(quoted);
}
