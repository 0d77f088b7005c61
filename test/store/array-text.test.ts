// Arrays of values as text: PostgreSQL reads each value as it was.
import fc from 'fast-check';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { arrayText } from '../../src/store/postgres/array-text.ts';
import { freshDatabase } from '../support/postgres.ts';

let base: Awaited<ReturnType<typeof freshDatabase>>;
beforeAll(async () => {
  base = await freshDatabase();
});
afterAll(() => base.drop());

const read = async (type: string, values: readonly unknown[]): Promise<unknown[]> => {
  const { rows } = await base.db.query<{ v: unknown }>({
    text: `select v from unnest($1::${type}[]) with ordinality as t(v, n) order by n`,
    values: [arrayText(values)],
  });
  return rows.map(({ v }) => v);
};

test('texts, whatever is in them', async () => {
  const nasty = [
    '',
    'null',
    'NULL',
    'Null',
    'a b',
    'a,b',
    '{}',
    '"',
    '\\',
    '\\"',
    "'",
    'é',
    'a\nb',
    'dep:btc:00ff:1#2',
    '-1.5',
    null,
  ];
  expect(await read('text', nasty)).toEqual(nasty);
  const text = fc.option(fc.string({ unit: 'binary' }).map((one) => one.replaceAll('\0', '')));
  await fc.assert(
    fc.asyncProperty(fc.array(text, { maxLength: 20 }), async (values) => {
      expect(await read('text', values)).toEqual(values);
    }),
    { numRuns: 100 },
  );
});

test('numbers, times, flags, nothing', async () => {
  expect(await read('bigint', [1n, -(2n ** 62n), null])).toEqual([1n, -(2n ** 62n), null]);
  expect(await read('numeric', [10n ** 40n, '0.00000001', null])).toEqual([String(10n ** 40n), '0.00000001', null]);
  expect(await read('int', [0, -7, null])).toEqual([0, -7, null]);
  expect(await read('boolean', [true, false, null])).toEqual([true, false, null]);
  const times = [new Date('2026-06-01T00:00:00.123Z'), null];
  expect(await read('timestamptz', times)).toEqual(times);
  expect(await read('text', [])).toEqual([]);
});
