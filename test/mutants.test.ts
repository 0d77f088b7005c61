import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
// @ts-expect-error it is a tool in plain JavaScript
import { mutantsOf, nameOf } from '../bin/mutation/mutants.mjs';

const ROOT = join(import.meta.dirname, '..');

/** The names of all that `npm run mutate` would change in a file. */
function namesOf(path: string): ReadonlySet<string> {
  if (!existsSync(join(ROOT, path))) return new Set();
  const text = readFileSync(join(ROOT, path), 'utf8');
  return new Set((mutantsOf(path, text) as object[]).map((mutant) => nameOf(text, mutant) as string));
}

test('each mutant that mutants.json calls equivalent can still be made: a reason for what is no longer there would excuse something else', () => {
  const excused = JSON.parse(readFileSync(join(ROOT, 'test/mutants.json'), 'utf8')) as Record<string, Record<string, string>>;
  const stale = Object.entries(excused).flatMap(([path, reasons]) => {
    const names = namesOf(path);
    return Object.keys(reasons)
      .filter((name) => !names.has(name))
      .map((name) => `${path}: ${name}`);
  });
  expect(Object.keys(excused).length).toBeGreaterThan(10);
  expect(stale).toEqual([]);
});
