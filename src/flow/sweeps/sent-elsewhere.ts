// What the address of a transaction has sent to nobody known: its words were used elsewhere, or stolen, or a token's contract has kept all of a sweep that
// database and signer have forgotten. An operator has it booked as lost: it counts as moved, and as gone where it did not arrive.
import { isToken } from '../../core/currency.ts';
import { plus, sum } from '../../core/money.ts';
import { sweepGasEntry } from '../../core/payouts/sweeps.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { readBatch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { lockOutputs } from '../../store/payouts/batches.ts';
import { readBlockHash } from '../../store/payouts/evm-lane.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { isNoted } from '../../store/sweeps/forgotten-moves.ts';
import { insertWriteOff } from '../../store/sweeps/written-off.ts';
import type { Context } from '../context.ts';
import type { HotAddress } from '../evm/batches.ts';
import type { EvmRecovery } from '../evm/recover.ts';
import { acceptedLoss, type Recovered, recovering } from '../payouts/after-restore/recover.ts';
import { differenceEntry } from '../payouts/after-restore/unknown-outputs.ts';
import { isFree, writeMove } from './forgotten-moves.ts';

/** Whose address it is: the key, and its index in the receiving chain. */
type From = { readonly script: Buffer; readonly hot: HotAddress; readonly index: number };

/**
 * Books it. @returns what is lost
 * @throws Refusal not_resolvable, with what is missing
 */
export function recoverFromAddress(ctx: Context, recovery: EvmRecovery, from: From): Promise<Recovered> {
  const { currency, facts, block } = recovery;
  return recovering(ctx, recovery, async (sql, refused) => {
    const [sender] = facts.inputs;
    if (sender === undefined || !recovery.isFinal) throw refused('is in no final block yet: wait for one');
    await lockOutputs(sql, currency);
    if (await isNoted(sql, currency, facts.txid))
      throw refused('has left for another address of ours, or has failed: it is booked by itself once its block is final');
    if ((await readBlockHash(sql, currency, block.height)) !== block.hash) throw refused('is in no block that was read');
    // what a contract has sent on was not at the address
    const lost = sum(facts.outputs.flatMap(({ amountMinor, sentOn }) => (sentOn === true ? [] : [amountMinor])));
    const gas = facts.outcome?.gasPaid ?? 0n;
    const taken = isToken(currency) ? lost : plus(lost, gas);
    if (facts.outcome?.result === 'failed' || taken === 0n)
      throw refused(`has taken nothing in ${currency} from the address of a transaction`);
    acceptedLoss(lost, recovery, refused);
    if (!(await isFree(sql, currency, sender)))
      throw refused('has the nonce of a sweep, which it has displaced: again once that has failed');
    await write(ctx, sql, recovery, { ...from, sender, lost, taken, gas });
    return { payoutIds: [], lost, fee: gas };
  });
}

type Taken = From & {
  readonly sender: { readonly txid: string; readonly vout: number };
  readonly lost: bigint;
  readonly taken: bigint;
  readonly gas: bigint;
};

/** Writes it as a sweep that has ended. */
async function write(ctx: Context, sql: Sql, recovery: EvmRecovery, of: Taken): Promise<void> {
  const { currency, facts, block, by } = recovery;
  const { hot, lost, taken, gas } = of;
  const atMs = ctx.ports.clock.now();
  const id = await writeMove(ctx, sql, recovery, { ...of, purpose: 'sweep', chain: 0, amount: taken, target: hot.script });
  const entries = [
    ...(lost === 0n ? [] : [differenceEntry({ currency, txid: facts.txid, acceptsLoss: true }, lost)]),
    ...[sweepGasEntry(id, gas, new Map())].filter((entry) => entry !== null),
  ];
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, atMs })),
  );
  if (lost > 0n) {
    const evidence = `${facts.txid}: it went to nobody known`;
    await insertWriteOff(sql, { currency, script: hot.script, amount: lost, block, batchId: id, by, evidence, atMs });
  }
  const written = await readBatch(sql, id, { lock: true });
  await setBatchState(sql, id, { state: 'final', minedAttempt: written?.attempts[0]?.id ?? null });
}
