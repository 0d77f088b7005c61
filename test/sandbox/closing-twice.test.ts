import { closeSync, fstatSync, mkdtempSync, openSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openMovableClock } from '../../src/outside/clock.ts';
import { openJournal } from '../../src/sandbox/utxo/journal.ts';

test.each([
  ['a journal', (file: string) => openJournal(file, () => undefined)],
  ['a clock', openMovableClock],
])('%s that is closed twice closes nothing of others', (_, open) => {
  const folder = mkdtempSync(join(tmpdir(), 'bursar-closing-'));
  const first = open(join(folder, 'first'));
  first.close();
  // it gets the lowest number that is free: the one that was just given back
  const other = openSync(join(folder, 'other'), 'w');
  first.close();
  expect(fstatSync(other).size).toBe(0);
  closeSync(other);
  rmSync(folder, { recursive: true });
});
