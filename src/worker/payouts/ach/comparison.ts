// Whether this database knows every bank file that was ever handed over: one that was put back has forgotten some, and their payouts look as if
// they still waited. Our folder and the bank itself remember; where neither can prove that nothing is missing, a person decides.
import { type BankPort, BankTrouble, type KeptFiles } from '../../../core/ach/bank-port.ts';
import { lastCutOff } from '../../../core/ach/banking-days.ts';
import { restoreAchFile } from '../../../flow/ach/restored-files.ts';
import type { Context } from '../../../flow/context.ts';
import { holdUnprovenAch } from '../../../flow/payouts/after-restore/unknown-movements.ts';
import { unbookedAchFiles } from '../../../store/ach/entries.ts';
import { lastAchLook, readAchHashes } from '../../../store/ach/files.ts';
import { noteAchStands } from '../../../store/ach/hand-overs.ts';
import { isComparedSince, saveChecked } from '../../../store/payouts/comparisons.ts';
import { closeMovements, openMovements } from '../../../store/payouts/unknown-movements.ts';

export type AchComparison = {
  readonly bank: BankPort;
  readonly files: KeptFiles;
  /** Books what the bank had reported, as our folder has it. @returns why something of it must be booked later; null = nothing must */
  readonly bookReports: () => Promise<string | null>;
  readonly onTrouble: (what: string) => void;
};
const HOUR_MS = 3_600_000;
type Named = { readonly name: string; readonly read: () => Promise<Uint8Array> };

/**
 * Compares our folder at each look, and the bank and its reports once after each start of PostgreSQL and each take-over by a standby; before
 * that nothing is paid, and nothing is cancelled.
 * @returns whether everything is known
 */
export async function isWhole(ctx: Context, comparison: AchComparison): Promise<boolean> {
  const { files, bank, onTrouble } = comparison;
  const { generation } = ctx.db.identity;
  const kept = (await files.names()).map((name): Named => ({ name, read: () => files.read(name) }));
  const known = await readAchHashes(ctx.db);
  const forgotten = kept.filter(({ name }) => !known.has(name));
  const restored = await restoreAll(ctx, forgotten, onTrouble);
  const inFolder = [...new Set([...restored, ...(await unbookedAchFiles(ctx.db))])];
  if (await isComparedSince(ctx.db, 'USD')) {
    await closeTakenAway(ctx, comparison, inFolder);
    return inFolder.length === 0;
  }
  try {
    const here = await readAchHashes(ctx.db);
    const atBank = (await bank.had()).filter(({ name, sha256 }) => here.get(name) !== Buffer.from(sha256).toString('hex'));
    const others = atBank.filter(({ name }) => !inFolder.includes(name));
    const contradicting = [
      ...inFolder,
      ...(await restoreAll(
        ctx,
        others.map((file): Named => ({ name: file.name, read: () => bank.contentOf(file) })),
        onTrouble,
      )),
    ];
    await closeMovements(ctx.db, 'USD', contradicting, ctx.ports.clock.now());
    if (contradicting.length > 0) return false;
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    onTrouble(`the bank cannot be asked which files it has: ${error.message}`);
    return false;
  }
  const waits = await comparison.bookReports();
  if (waits !== null) {
    const why = `all payouts by ach wait: ${waits}`;
    onTrouble(why);
    await noteAchStands(ctx.db, why);
    return false;
  }
  if (!bank.isWitness) await holdWhatNobodyProves(ctx, onTrouble);
  // another copy that has taken its place meanwhile was not compared
  if (generation !== ctx.db.identity.generation) return false;
  await saveChecked(ctx.db, 'USD', 0);
  return true;
}

/** A file that contradicted the database, that our folder no longer has, and that the bank never had, stands against nothing any more. */
async function closeTakenAway(ctx: Context, { bank, onTrouble }: AchComparison, inFolder: readonly string[]): Promise<void> {
  const open = (await openMovements(ctx.db)).filter(({ currency, txid }) => currency === 'USD' && txid !== null);
  if (open.every(({ txid }) => inFolder.includes(txid as string))) return;
  try {
    const atBank = (await bank.had()).map(({ name }) => name);
    await closeMovements(ctx.db, 'USD', [...inFolder, ...atBank], ctx.ports.clock.now());
  } catch (error) {
    if (!(error instanceof BankTrouble)) throw error;
    onTrouble(`the bank cannot be asked which files it has: ${error.message}`);
  }
}

/** Writes files back that this database does not know; returns the names of those that contradict it: payouts are stopped. */
async function restoreAll(ctx: Context, files: readonly Named[], onTrouble: (what: string) => void): Promise<readonly string[]> {
  const contradicting: string[] = [];
  for (const { name, read } of files) {
    const how = await restoreAchFile(ctx, { name, bytes: await read() });
    if (how === 'known') continue;
    onTrouble(
      `bank file ${name} was not in the database: ${how === 'contradicts' ? 'payouts are stopped' : 'it is written back'}`,
    );
    if (how === 'contradicts') contradicting.push(name);
  }
  return contradicting;
}

/**
 * A whole machine that was put back has forgotten its folders too. Only at the end of a banking day a file is made, so what is forgotten can
 * hold one only when such an end has passed since this database was looked at last. An outage over that hour looks the same.
 */
async function holdWhatNobodyProves(ctx: Context, onTrouble: (what: string) => void): Promise<void> {
  const last = await lastAchLook(ctx.db);
  const nowMs = ctx.ports.clock.now();
  const cutOffMs = lastCutOff(nowMs);
  // one of a time to come was noted by a clock that was fast, and proves nothing; small corrections are no such clock
  if (last === null || (last >= cutOffMs && last <= nowMs + HOUR_MS)) return;
  const held = await holdUnprovenAch(ctx, cutOffMs);
  if (held.length === 0) return;
  onTrouble(
    `${held.join(', ')} may have been paid by a bank file that was made after this database was stopped or copied: ask the bank, and not their recipients, who know it only once the bank has settled (bursar payout resolve)`,
  );
}
