// db/schema.sql is what the migrations make. `npm test -- test/store/schema -u` writes it anew after a change of db/.
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { CURRENCY_CODES, EVM_CODES } from '../../src/core/currency.ts';
import { freshDatabase } from '../support/postgres.ts';
import { dumpSchema } from '../support/schema-dump.ts';

test('db/schema.sql shows today’s schema', async () => {
  const base = await freshDatabase();
  try {
    await expect(await dumpSchema(base.db)).toMatchFileSnapshot('../../db/schema.sql');
  } finally {
    await base.drop();
  }
});

test('the indexes that name currencies have all of Ethereum’s chain: a new one needs them made anew', () => {
  const schema = readFileSync(join(import.meta.dirname, '../../db/schema.sql'), 'utf8');
  const quoted = new RegExp(`'(?:${CURRENCY_CODES.join('|')})'`);
  const naming = schema.split('\n').filter((line) => quoted.test(line));
  expect(naming.map((line) => /INDEX (\w+)/.exec(line)?.[1])).toEqual(['payments_unfinalized', 'transactions_evm']);
  for (const line of naming) for (const code of EVM_CODES) expect(line).toContain(`'${code}'`);
});
