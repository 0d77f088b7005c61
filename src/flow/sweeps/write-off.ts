// An operator has what is gone from an address of ours booked as the service's loss: a token's issuer has destroyed it, or its contract has done something
// else than was asked of it. What its nodes say was asked before; here it is compared with what is known, and everything is one database transaction.
import type { BlockRef } from '../../core/block-ref.ts';
import type { EvmCode } from '../../core/currency.ts';
import type { EndedTransaction } from '../../core/evm/port.ts';
import { formatAmount, least, minus, negated, plus } from '../../core/money.ts';
import { writeOffEntry } from '../../core/payouts/sweeps.ts';
import { Refusal } from '../../core/refusal.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { readBatch } from '../../store/payouts/batch-rows.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { readBlockHash } from '../../store/payouts/evm-lane.ts';
import { chainAssets } from '../../store/payouts/own-outputs.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { noteSwept } from '../../store/sweeps/addresses.ts';
import { knownBalances, saveBalances, unbookedAt } from '../../store/sweeps/balances.ts';
import { insertWriteOff, writtenOff } from '../../store/sweeps/written-off.ts';
import type { Context } from '../context.ts';
import { endAsPaid } from '../evm/end-as-paid.ts';
import { endAsMoved } from './progress.ts';

/** What nodes say of one of our addresses after a final block. */
export type Held = { readonly script: Buffer; readonly address: string; readonly units: bigint; readonly said: string };
export type WriteOff = {
  readonly currency: EvmCode;
  readonly block: BlockRef;
  /** The address that is named first, and where what is `unclear` should have arrived. */
  readonly held: readonly [Held, ...Held[]];
  /** What was sent from there, and did something else than it asks for, as nodes show it. */
  readonly unclear: {
    readonly batchId: string;
    readonly purpose: 'sweep' | 'payout';
    readonly ended: EndedTransaction;
  } | null;
  /** Whether what was written off before, and is there again, is taken back. */
  readonly takesBack: boolean;
  readonly by: string;
  readonly evidence: string;
};
/** In minor units, by address; below zero it was taken back. `ended`: what counts as moved whole. */
export type WrittenOff = {
  readonly written: readonly { readonly address: string; readonly amount: bigint }[];
  readonly ended: string | null;
  /** Why there is nothing to do; null: something was done, or had been. */
  readonly nothing: string | null;
};

/** The refusal of the address that is named, with what is wrong with it. */
export const refusedAddress = (address: string, what: string): Refusal =>
  new Refusal('not_resolvable', { param: 'address', message: `${address} ${what}.` });

/**
 * Books what is missing.
 * @returns nothing where it is written off already
 * @throws Refusal not_resolvable, with what speaks against it
 */
export function writeOff(ctx: Context, of: WriteOff): Promise<WrittenOff> {
  const { currency, block, held, unclear } = of;
  const [{ address }] = held;
  return ctx.db.transaction(async (sql) => {
    await lockOutputs(sql, currency);
    const batch = unclear === null ? null : await readBatch<EvmCode>(sql, unclear.batchId, { lock: true });
    if ((await readBlockHash(sql, currency, block.height)) !== block.hash)
      throw refusedAddress(address, `was looked at after block ${block.hash}, which was replaced meanwhile: say it again`);
    if (batch !== null && unclear?.purpose === 'sweep') await endAsMoved(ctx, sql, batch, unclear.ended);
    if (batch !== null && unclear?.purpose === 'payout')
      await endAsPaid(ctx, sql, batch, { shown: unclear.ended, evidence: of.evidence });
    const written: { address: string; amount: bigint }[] = [];
    let before = 0n;
    for (const one of held) {
      const done = await writeOffAt(ctx, sql, of, one);
      before = plus(before, done.before);
      if (done.amount !== 0n) written.push({ address: one.address, amount: done.amount });
    }
    const nothing = written.length === 0 && before === 0n && batch === null ? nothingToDo(of) : null;
    return { written, ended: batch === null ? null : (unclear?.ended.facts.txid ?? null), nothing };
  });
}

function nothingToDo({ takesBack, block }: WriteOff): string {
  if (takesBack)
    return `has nothing more than is known after block ${block.height}, the last that is final, was read twice and up to which what came to old addresses was looked for`;
  return `lacks nothing: after block ${block.height}, the last that is final and was read twice, nodes show all that is known there`;
}

/** @returns what was written off now, and what had been before by an operator's word */
async function writeOffAt(
  ctx: Context,
  sql: Sql,
  { currency, block, unclear, takesBack, by, evidence }: WriteOff,
  { script, address, units, said }: Held,
): Promise<{ readonly amount: bigint; readonly before: bigint }> {
  const [found] = await knownBalances(sql, currency, { height: block.height, scripts: [script] });
  if (found === undefined)
    throw refusedAddress(address, 'has sent something that has not ended yet, or is not booked: once it is, say it again');
  const off = await writtenOff(sql, currency, script);
  const missing = minus(minus(found.known, off.amount), units);
  const back = takesBack ? least(negated(missing), off.said) : 0n;
  const amount = missing > 0n ? missing : negated(back > 0n ? back : 0n);
  if (missing > 0n && takesBack)
    throw refusedAddress(
      address,
      `lacks ${formatAmount(missing, currency)} ${currency}: without --take-back that is written off too`,
    );
  const [unbooked] = missing > 0n ? await unbookedAt(sql, currency, { height: block.height, script }) : [];
  if (unbooked !== undefined)
    throw refusedAddress(
      address,
      `had ${unbooked} before its transaction was made, which is not booked, so it cannot be lost: bursar audit --is-payment ${unbooked} comes first`,
    );
  const more = `${formatAmount(negated(missing), currency)} ${currency} more than is known`;
  if (missing < 0n && unclear?.purpose === 'payout')
    throw refusedAddress(
      address,
      `holds ${more}, once ${unclear.ended.facts.txid} counts as paid: it has not taken all that it asks for`,
    );
  if (missing < 0n && off.said > 0n && !takesBack)
    throw refusedAddress(address, `holds ${more}: where what was written off is there again, --take-back takes it back`);
  if (amount === 0n) return { amount, before: off.said };
  if (amount > (await chainAssets(sql, currency)))
    throw refusedAddress(address, `lacks more than is booked of ${currency} altogether: wait until its payments are booked`);
  const atMs = ctx.ports.clock.now();
  const entry = writeOffEntry(currency, { address, number: off.times + 1, amount });
  await postEntries(sql, [{ entry, transactionId: null, atMs }]);
  await insertWriteOff(sql, { currency, script, amount, block, batchId: null, by, evidence: `${evidence} (${said})`, atMs });
  await noteSwept(sql, currency, script);
  await saveBalances(sql, currency, { height: block.height, atMs }, [{ ...found, said: { most: units, less: null } }]);
  return { amount, before: off.said };
}
