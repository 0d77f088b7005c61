// The files of db/ are frozen: databases that have applied one would refuse to start once it changed (migrate.ts). db/checksums.txt has the
// checksum of each, so that a change is noticed here and not by an operator.
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MIGRATIONS_FOLDER } from '../../src/store/postgres/migrate.ts';

const FILES = readdirSync(MIGRATIONS_FOLDER)
  .filter((name) => /^\d/.test(name))
  .sort();
const read = (name: string) => readFileSync(join(MIGRATIONS_FOLDER, name), 'utf8');

test('no file of db/ was changed, and a new one has its line in db/checksums.txt (cd db && sha256sum 0*.sql > checksums.txt)', () => {
  const now = FILES.map((name) => `${createHash('sha256').update(read(name)).digest('hex')}  ${name}`);
  expect(read('checksums.txt').trimEnd().split('\n')).toEqual(now);
});

test('the files of db/ are numbered one after the other from 0001', () => {
  expect(FILES.map((name) => name.slice(0, 5))).toEqual(FILES.map((_, index) => `${String(index + 1).padStart(4, '0')}_`));
});
