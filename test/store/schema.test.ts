// db/schema.sql is what the migrations make. `npm test -- test/store/schema -u` writes it anew after a change of db/.
import { expect, test } from 'vitest';
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
