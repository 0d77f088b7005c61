// JSON in which every number keeps the text that bitcoind wrote ("0.00000001", "3.00000000"), on its way through a dialect server.

type RawNumber = { readonly rawJSON: string };
// the library's types do not know these yet
const { parse, rawJSON, isRawJSON } = JSON as unknown as {
  parse(text: string, reviver: (key: string, value: unknown, context: { readonly source: string }) => unknown): unknown;
  rawJSON(text: string): RawNumber;
  isRawJSON(value: unknown): value is RawNumber;
};

export const readJson = (text: string): unknown =>
  parse(text, (_, value, { source }) => (typeof value === 'number' ? rawJSON(source) : value));
export const writeJson = (value: unknown): string => JSON.stringify(value);

/** An amount in whole units, as bitcoind writes it, in the smallest unit. */
export function minorOf(value: unknown): bigint {
  const [whole = '0', fraction = ''] = (isRawJSON(value) ? value.rawJSON : String(value)).split('.');
  return BigInt(whole) * 100_000_000n + BigInt(fraction.slice(0, 8).padEnd(8, '0'));
}

/** A whole number that bitcoind wrote. */
export const numberOf = (value: unknown): number => Number(isRawJSON(value) ? value.rawJSON : value);

/** Every string within a value, keys too, replaced. */
export function mapStrings(value: unknown, change: (text: string) => string): unknown {
  if (typeof value === 'string') return change(value);
  if (Array.isArray(value)) return value.map((one) => mapStrings(one, change));
  if (typeof value !== 'object' || value === null || isRawJSON(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [change(key), mapStrings(one, change)]));
}
