// The bank behind a folder, from the payout to what the bank's tools take: a folder that was put back, or is not mounted, makes nobody pay twice.
import { cpSync, mkdirSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { achReference } from '../../../src/core/ach/own-file.ts';
import { readReadiness } from '../../../src/flow/readiness.ts';
import { clearBreakers, openBreakers } from '../../../src/store/ledger/breakers.ts';
import { returnOf } from '../../support/bank.ts';
import { ctx, ledgerFindings, merchantsForAll, row, world } from '../payouts/merchants.ts';
import {
  acceptLoss,
  bank,
  bankFolderForEach,
  DAY,
  look,
  outgoing,
  requested,
  root,
  stateOf,
  take,
  touch,
  troubles,
} from './bank-folder.ts';

merchantsForAll();
bankFolderForEach();

test('a folder that was put back to before a hand-over gets the file no second time', async () => {
  cpSync(bank, join(root, 'backup'), { recursive: true });
  const id = await requested();
  const [name = ''] = take();
  rmSync(bank, { recursive: true });
  cpSync(join(root, 'backup'), bank, { recursive: true });
  for (let n = 0; n < 3; n++) {
    await world.wait(DAY);
    await look();
  }
  expect(outgoing()).toEqual([]);
  expect(await stateOf(id)).toBe('unknown');
  expect(troubles.at(-1)).toContain(`the bank's folder does not know ${name.slice(0, -'.ach'.length)}, which was handed over`);
  // the bank was asked, and has it
  writeFileSync(join(bank, 'incoming', `${name}.refused`), 'duplicate: we have it');
  await look();
  expect(await stateOf(id)).toBe('acked');
  await world.wait(30 * DAY);
  await look();
  expect((await row(id)).status).toBe('processing');
  // its silence counts once a person says that it was lost
  acceptLoss();
  await look();
  expect((await row(id)).status).toBe('completed');
  expect(await ledgerFindings()).toEqual([]);
});

test('a folder that is not mounted gets nothing; the one that is there again gets the file once', async () => {
  const first = await requested();
  take();
  await look();
  renameSync(bank, join(root, 'elsewhere'));
  const second = await requested();
  expect(outgoing()).toEqual([]);
  expect([await stateOf(first), await stateOf(second)]).toEqual(['acked', 'built']);
  rmSync(bank, { recursive: true });
  renameSync(join(root, 'elsewhere'), bank);
  await world.wait(60_000);
  await look();
  expect(take()).toHaveLength(1);
  await look();
  expect([await stateOf(first), await stateOf(second)]).toEqual(['acked', 'acked']);
});

test('nothing is completed while the folder is not mounted: what it does not say may lie in it', async () => {
  const id = await requested();
  take();
  await look();
  expect(await stateOf(id)).toBe('acked');
  const { rows } = await world.admin.query('select trace from ach_entries where payout_id = $1', [id]);
  writeFileSync(join(bank, 'incoming', 'returns'), returnOf(rows[0].trace, achReference(id)));
  renameSync(bank, join(root, 'elsewhere'));
  await world.wait(30 * DAY);
  await look();
  expect((await row(id)).status).toBe('processing');
  expect((await readReadiness(ctx, [])).problems.join()).toContain('does not know');
  rmSync(bank, { recursive: true });
  renameSync(join(root, 'elsewhere'), bank);
  await look();
  expect((await row(id)).status).toBe('failed');
  expect((await readReadiness(ctx, [])).problems.join()).not.toContain('does not know');
  expect(await ledgerFindings()).toEqual([]);
});

test('nothing is completed by what a folder did not say that was mounted a moment later', async () => {
  const id = await requested();
  take();
  await look();
  const { rows } = await world.admin.query('select trace from ach_entries where payout_id = $1', [id]);
  writeFileSync(join(bank, 'incoming', 'returns'), returnOf(rows[0].trace, achReference(id)));
  renameSync(bank, join(root, 'elsewhere'));
  await world.wait(30 * DAY);
  await look(null, 0, () => {
    rmSync(bank, { recursive: true });
    renameSync(join(root, 'elsewhere'), bank);
  });
  expect((await row(id)).status).toBe('processing');
  await look();
  expect((await row(id)).status).toBe('failed');
  expect(await ledgerFindings()).toEqual([]);
});

test('nothing is completed, and that is told, where nobody can read since when the folder was lost', async () => {
  const id = await requested();
  take();
  await look();
  mkdirSync(join(bank, 'handed', '.known-loss'));
  await world.wait(30 * DAY);
  await look();
  expect((await row(id)).status).toBe('processing');
  expect((await readReadiness(ctx, [])).problems.join()).toContain('the bank cannot be asked what it was given: EISDIR');
  rmSync(join(bank, 'handed', '.known-loss'), { recursive: true });
  await look();
  expect((await row(id)).status).toBe('completed');
});

test('a report is booked once, and what comes after it is read, where a folder has its name in done/', async () => {
  const id = await requested();
  const [name = ''] = take();
  mkdirSync(join(bank, 'incoming', 'done', `${name}.refused`));
  writeFileSync(join(bank, 'incoming', `${name}.refused`), 'unknown company');
  writeFileSync(join(bank, 'incoming', 'z.ach'), 'no NACHA file');
  await look();
  expect(readdirSync(join(bank, 'incoming')).sort()).toEqual(['done', 'z.ach']);
  expect([(await row(id)).status, readdirSync(join(bank, 'incoming', 'done')).length]).toEqual(['failed', 2]);
  expect(troubles.join()).toContain('z.ach of the bank says nothing that can be booked');
});

describe('a folder that was lost before it was certain that a file lay in it', () => {
  /** The bank has the file, and a worker died before it had written that. Nothing is left of the folder. */
  async function lost(): Promise<{ readonly id: string; readonly name: string }> {
    const id = await requested('ach-handed');
    const [name = ''] = take();
    expect(await stateOf(id)).toBe('uploading');
    rmSync(bank, { recursive: true });
    await world.wait(DAY);
    await look();
    return { id, name: name.slice(0, -'.ach'.length) };
  }
  const says = (name: string, words: string): void => writeFileSync(join(bank, 'incoming', `${name}.refused`), words);
  async function isPaidOnce(id: string): Promise<void> {
    for (let n = 0; n < 3; n++) {
      await look();
      expect(outgoing()).toEqual([]);
    }
    expect([await stateOf(id), await openBreakers(ctx.db)]).toEqual(['acked', []]);
    await world.wait(30 * DAY);
    await look();
    expect((await row(id)).status).toBe('completed');
    expect(await ledgerFindings()).toEqual([]);
  }

  test('is not believed when it denies that file: what the bank says of it counts, and it gets it no second time', async () => {
    await requested();
    take();
    await look();
    const { id, name } = await lost();
    says(name, 'duplicate: we have it');
    await look();
    expect([await stateOf(id), await openBreakers(ctx.db)]).toEqual(['acked', []]);
    acceptLoss();
    await isPaidOnce(id);
  });

  test('which no other file shows counts for nothing once a person says so', async () => {
    await world.admin.query('update ach_files set handed_at = null');
    const id = await requested('ach-handed');
    const [taken = ''] = take();
    const name = taken.slice(0, -'.ach'.length);
    rmSync(bank, { recursive: true });
    for (const folder of ['incoming', 'handed']) mkdirSync(join(bank, folder), { recursive: true });
    says(name, 'duplicate: we have it');
    acceptLoss();
    await world.wait(DAY);
    await look();
    await look();
    // only one that is made after the bank's word was booked covers this file, too
    rmSync(join(bank, 'handed', '.known-loss'));
    acceptLoss();
    await isPaidOnce(id);
  });

  test('gives back what the bank says it never had', async () => {
    await requested();
    take();
    await look();
    const { id, name } = await lost();
    says(name, 'unknown: no such file has reached us');
    await look();
    expect((await row(id)).status).toBe('failed');
    expect(await openBreakers(ctx.db)).toEqual([]);
    acceptLoss();
    await look();
    expect(outgoing()).toEqual([]);
    expect(await ledgerFindings()).toEqual([]);
  });

  test.each([
    ['alone', false],
    ['beside one that nobody can read', true],
  ] as const)('gets nothing again while a report of the file waits to be booked, %s', async (_how, isOtherUnreadable) => {
    await requested();
    take();
    await look();
    const { name } = await lost();
    const { rows } = await world.admin.query('select trace, payout_id from ach_entries where file = $1', [name]);
    writeFileSync(join(bank, 'incoming', 'returns.ach'), returnOf(rows[0].trace, rows[0].payout_id));
    if (isOtherUnreadable) writeFileSync(join(bank, 'incoming', 'unreadable.ach'), '101 garbage');
    // the return waits for a rate
    const moveRates = (by: string) => world.admin.query(`update rates set at = at + interval '${by}'`);
    await moveRates('-1 hour');
    try {
      acceptLoss();
      await look();
      expect(outgoing()).toEqual([]);
      expect(troubles.join()).toContain(`bank file ${name}: what the bank has reported`);
    } finally {
      await moveRates('1 hour');
    }
  });

  test.each([
    ['a report that nobody can read lies there', 'unreadable.ach', '101 garbage', 0],
    ['what the bank says of it is being written', null, 'duplicate: we have it', 60_000],
  ] as const)('gets nothing again while %s', async (_what, report, words, atRestMs) => {
    await requested();
    take();
    await look();
    const { id, name } = await lost();
    writeFileSync(join(bank, 'incoming', report ?? `${name}.refused`), words);
    acceptLoss();
    await look(null, atRestMs);
    expect([outgoing(), await stateOf(id)]).toEqual([[], 'built']);
    for (const one of readdirSync(join(bank, 'incoming')).filter((found) => found !== 'done'))
      rmSync(join(bank, 'incoming', one));
    says(name, 'duplicate: we have it');
    await look();
    await isPaidOnce(id);
  });

  test('is whole again for what is made later: a forged report of a file that never left completes nothing', async () => {
    await requested();
    take();
    await look();
    acceptLoss();
    await world.wait(600_000);
    const id = await requested('ach-made');
    const { rows } = await world.admin.query('select file from ach_entries where payout_id = $1', [id]);
    const at = Number(
      (await world.admin.query('select extract(epoch from created_at) as at from ach_files where name = $1', [rows[0].file]))
        .rows[0].at,
    );
    utimesSync(join(bank, 'handed', '.known-loss'), at - 600, at - 600);
    says(rows[0].file, 'duplicate: we have it');
    await look();
    expect(await stateOf(id)).not.toBe('acked');
    expect((await openBreakers(ctx.db)).map(({ trippedBy }) => trippedBy)).toEqual([['INV-20']]);
  });

  test('excuses no more when its marker is touched after it was seen', async () => {
    await clearBreakers(ctx.db, 'test', world.now());
    await requested();
    take();
    await look();
    acceptLoss();
    await world.wait(600_000);
    await requested();
    take();
    await look();
    const id = await requested('ach-made');
    const { rows } = await world.admin.query('select file from ach_entries where payout_id = $1', [id]);
    touch();
    says(rows[0].file, 'duplicate: we have it');
    await look();
    expect(await stateOf(id)).not.toBe('acked');
    expect((await openBreakers(ctx.db)).map(({ trippedBy }) => trippedBy)).toEqual([['INV-20']]);
  });
});
