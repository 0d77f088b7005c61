// Several files of tests run in one process after the other (vitest.config.ts), and what they share is loaded once for all of them.
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

test('what files of tests share adds its hooks when it is called, not when it is imported: that happens once for many files', () => {
  const shared = readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' }).filter(
    (name) => name.endsWith('.ts') && !name.endsWith('.test.ts'),
  );
  expect(shared.length).toBeGreaterThan(100);
  const adding = shared.filter((name) =>
    /^(before|after)(Each|All)\(/m.test(readFileSync(join(import.meta.dirname, name), 'utf8')),
  );
  expect(adding).toEqual([]);
});
