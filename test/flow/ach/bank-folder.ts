// A bank behind a folder for a test, from the payout to what the bank's tools take.
import { mkdtempSync, readdirSync, renameSync, rmSync, utimesSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach } from 'vitest';
import { requestAchPayout } from '../../../src/flow/ach/request.ts';
import { folderBank } from '../../../src/outside/bank/folder-bank.ts';
import { keptFiles } from '../../../src/outside/bank/kept-files.ts';
import { unsealed } from '../../../src/outside/sealing.ts';
import { SANDBOX_BANK } from '../../../src/sandbox/bank/bank.ts';
import { type AchStep, achJob } from '../../../src/worker/payouts/ach/driver.ts';
import { tellingTo } from '../../support/payout-jobs.ts';
import { BTC, ctx, shopWith, world } from '../payouts/merchants.ts';

export const DAY = 86_400_000;
/** Where all of it lies. */
export let root: string;
/** The folder. */
export let bank: string;
/** What was told. */
export let troubles: string[];
/** Each test has a folder of its own, which knows the files of those before. */
export function bankFolderForEach(): void {
  beforeEach(async () => {
    root = mkdtempSync(join(tmpdir(), 'bursar-bank-'));
    bank = join(root, 'bank');
    troubles = [];
    const { rows } = await world.admin.query('select name, bytes from ach_files');
    await look();
    for (const { name, bytes } of rows) writeFileSync(join(bank, 'handed', name), bytes);
  });
  afterEach(() => rmSync(root, { recursive: true, force: true }));
}

/** One look of a worker. @param diesAfter where it dies @param onNews happens when the bank's reports were listed */
export async function look(diesAfter: AchStep | null = null, atRestMs = 0, onNews = (): void => undefined): Promise<void> {
  const port = folderBank(bank, { atRestMs });
  const job = achJob(ctx, {
    bank: {
      ...port,
      async news() {
        const said = await port.news();
        onNews();
        return said;
      },
    },
    files: keptFiles(join(root, 'kept'), unsealed),
    origin: SANDBOX_BANK,
    intents: async () => () => true,
    owner: 'test',
    reached: async (step) => {
      if (step === diesAfter) throw new Error('killed');
    },
    ...tellingTo(troubles),
  });
  await job.run();
}
/** What the bank's tools may take. */
export const outgoing = (): string[] => readdirSync(join(bank, 'outgoing')).filter((name) => !name.startsWith('.'));
/** What the bank's tools have taken away. */
export function take(): string[] {
  const names = outgoing();
  for (const name of names) renameSync(join(bank, 'outgoing', name), join(root, name));
  return names;
}
/** A payout that was put into a file, and handed over. @returns its id */
export async function requested(diesAfter: AchStep | null = null): Promise<string> {
  const merchantId = await shopWith(BTC);
  const asked = { merchantId, amount: '100', destination: 'ach:021000021:123456789', sourceCurrency: null };
  const { id } = await requestAchPayout(ctx, asked);
  await world.wait(4 * DAY);
  await look(diesAfter).catch(() => undefined);
  return id;
}
/** Its marker is of now. */
export const touch = (): void => utimesSync(join(bank, 'handed', '.known-loss'), world.now() / 1000, world.now() / 1000);
/** A person says that the folder was lost. */
export function acceptLoss(): void {
  writeFileSync(join(bank, 'handed', '.known-loss'), '');
  touch();
}
/** Of the file that pays it. */
export const stateOf = async (id: string): Promise<string> =>
  (await world.admin.query('select state from ach_files f join ach_entries e on e.file = f.name where payout_id = $1', [id]))
    .rows[0].state;
