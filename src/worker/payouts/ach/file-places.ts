// Where a bank file of ours is when the bank reports something of it: only what has left can have been refused, returned or paid.
import { createHash } from 'node:crypto';
import { type BankPort, BankTrouble, type DatedFile } from '../../../core/ach/bank-port.ts';
import type { Context } from '../../../flow/context.ts';
import { readAchBytes } from '../../../store/ach/entries.ts';
import { readAchState } from '../../../store/ach/files.ts';
import { lastHandedOver } from '../../../store/ach/hand-overs.ts';

/** `here`: it was never handed over. `outgoing`: it lies where the bank takes it from, or may be on its way there. `away`: everything else. */
export type Placed = 'here' | 'outgoing' | 'away';

/** Where a file is, by its state and the bank's word; a file that is none of ours is `away`. */
export async function whereFileIs(ctx: Context, bank: BankPort, name: string): Promise<Placed> {
  const file = await readAchState(ctx.db, name);
  if (file === null) return 'away';
  const { state, isHandedOver, createdAtMs } = file;
  // a worker may be handing it over, and only afterwards the bank may be asked
  if (state === 'uploading') return 'outgoing';
  if (state !== 'built' && state !== 'unknown') return 'away';
  // only the bank knows whether it has left: a worker may have died before or after it, and database and copies may have been put back
  const bytes = ctx.ports.sealing.open((await readAchBytes(ctx.db, name)) ?? new Uint8Array(), name);
  try {
    const said = await bank.ask({ name, bytes, sha256: createHash('sha256').update(bytes).digest() });
    if (said.state === 'never')
      return isHandedOver || !(await remembers(ctx, bank, { name, atMs: createdAtMs })) ? 'away' : 'here';
    return said.state === 'waiting' ? 'outgoing' : 'away';
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    return 'outgoing';
  }
}

/** Files that are compared with what the bank remembers: a folder that was put back lacks the newest, one that is not mounted all of them. */
const COMPARED = 10;

/** The newest files that were certainly handed over and of which the bank knows nothing; where there are any, nothing that it denies counts. */
export async function forgottenFiles(ctx: Context, bank: BankPort): Promise<readonly string[]> {
  return bank.forgets(await lastHandedOver(ctx.db, COMPARED), ctx.ports.clock.now());
}

/**
 * Whether the bank's `never` proves something of a file: its folder was not put back, and nobody has said that it was lost after the file was
 * made.
 */
async function remembers(ctx: Context, bank: BankPort, file: DatedFile): Promise<boolean> {
  if (bank.isWitness) return true;
  return (await forgottenFiles(ctx, bank)).length === 0 && (await bank.forgets([file], ctx.ports.clock.now())).length > 0;
}
