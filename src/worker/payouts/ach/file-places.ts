// Where a bank file of ours is when the bank reports something of it: only what has left can have been refused, returned or paid.
import { createHash } from 'node:crypto';
import { type BankPort, BankTrouble, type KeptFiles } from '../../../core/ach/bank-port.ts';
import type { Context } from '../../../flow/context.ts';
import { readAchBytes } from '../../../store/ach/entries.ts';
import { readAchState } from '../../../store/ach/files.ts';

/** `here`: it was never handed over. `outgoing`: it lies where the bank takes it from, or may be on its way there. `away`: everything else. */
export type Placed = 'here' | 'outgoing' | 'away';

/** Where a file is, by its state, our copies and the bank's word; a file that is none of ours is `away`. */
export async function whereFileIs(
  ctx: Context,
  { bank, files }: { readonly bank: BankPort; readonly files: KeptFiles },
  name: string,
): Promise<Placed> {
  const { state, isHandedOver } = (await readAchState(ctx.db, name)) ?? { state: null, isHandedOver: false };
  // a worker may be handing it over, and only afterwards the bank may be asked
  if (state === 'uploading') return 'outgoing';
  if (state !== 'built' && state !== 'unknown') return 'away';
  // our folder has a copy before anything leaves; where there is one, only the bank knows whether it has left: a worker may have died in between
  if (state === 'built' && !(await files.names()).includes(name)) return 'here';
  const bytes = ctx.ports.sealing.open((await readAchBytes(ctx.db, name)) ?? new Uint8Array(), name);
  try {
    const said = await bank.ask({ name, bytes, sha256: createHash('sha256').update(bytes).digest() });
    // a folder of the bank that was put back has forgotten what was in it
    if (said.state === 'never') return isHandedOver ? 'away' : 'here';
    return said.state === 'waiting' ? 'outgoing' : 'away';
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    return 'outgoing';
  }
}
