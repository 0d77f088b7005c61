/** Texts that need no quotes in an array; NULL without quotes is no text. */
const PLAIN = /^(?!null$)[\w:.#+-]+$/i;

/**
 * PostgreSQL's text of an array of values. The driver looks at each element character by character, which takes longer than everything else
 * that is done with thousands of rows; ids, amounts, times and keys need no quotes.
 */
export function arrayText(values: readonly unknown[]): string {
  return `{${values.map(elementText).join()}}`;
}

function elementText(value: unknown): string {
  if (value === null) return 'NULL';
  if (value instanceof Date) return value.toISOString();
  if (typeof value !== 'string' || PLAIN.test(value)) return String(value as string | number | bigint | boolean);
  return `"${value.replaceAll(/["\\]/g, '\\$&')}"`;
}
