// What the address of a transaction has sent to nobody known: its words were used elsewhere, or stolen, or a token's contract has kept all of a sweep that
// database and signer have forgotten. An operator has it booked as lost: it counts as moved, and as gone where it did not arrive. What went to another
// address of ours is no loss.
import { isToken } from '../../core/currency.ts';
import { greatest, plus, sum } from '../../core/money.ts';
import { sweepGasEntry } from '../../core/payouts/sweeps.ts';
import { postEntries } from '../../store/ledger/ledger.ts';
import { readBatch, setBatchState } from '../../store/payouts/batch-rows.ts';
import { readBlockHash } from '../../store/payouts/evm-lane.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { noteSwept } from '../../store/sweeps/addresses.ts';
import { knownAnew } from '../../store/sweeps/balances.ts';
import { isNoted } from '../../store/sweeps/forgotten-moves.ts';
import { insertWriteOff } from '../../store/sweeps/written-off.ts';
import type { Context } from '../context.ts';
import type { HotAddress } from '../evm/batches.ts';
import type { EvmRecovery } from '../evm/recover.ts';
import { acceptedLoss, type Recovered, recovering } from '../payouts/after-restore/recover.ts';
import { differenceEntry } from '../payouts/after-restore/unknown-outputs.ts';
import { isFree, writeMove } from './forgotten-moves.ts';
import { bookBeside, type Fate, fateOf, fatesOf, noteArrived } from './sent-beside.ts';

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
    if (await isNoted(sql, currency, facts.txid))
      throw refused('has left for another address of ours, or has failed: it is booked by itself once its block is final');
    if ((await readBlockHash(sql, currency, block.height)) !== block.hash) throw refused('is in no block that was read');
    const fate = await fateOf(sql, facts.outputs);
    const sent = plus(fate.lost, sum([...fate.arrived.values()]));
    const gas = facts.outcome?.gasPaid ?? 0n;
    const taken = isToken(currency) ? sent : plus(sent, gas);
    acceptedLoss(fate.lost, recovery, refused);
    const fates = await fatesOf(sql, recovery, refused);
    if (facts.outcome?.result === 'failed' || (taken === 0n && fates.length === 0))
      throw refused(`has taken nothing in ${currency} from the address of a transaction`);
    if (!(await isFree(sql, currency, sender)))
      throw refused('has the nonce of a sweep, which it has displaced: again once that has failed');
    const batchId = await write(ctx, sql, recovery, { ...from, sender, sent, fate, taken, gas });
    const besides = await bookBeside(ctx, sql, { ...recovery, batchId, script: from.script }, fates);
    await knownAnew(sql, from.script);
    return { payoutIds: [], lost: fate.lost, fee: gas, besides };
  });
}

type Taken = From & {
  readonly sender: { readonly txid: string; readonly vout: number };
  /** All that it has sent of its currency, and where that is. */
  readonly sent: bigint;
  readonly fate: Fate;
  readonly taken: bigint;
  readonly gas: bigint;
};

/** Writes it as a sweep that has ended; one that has taken nothing of its currency as one that has moved nothing. @returns the id of its batch */
async function write(ctx: Context, sql: Sql, recovery: EvmRecovery, of: Taken): Promise<string> {
  const { currency, facts, block, by } = recovery;
  const { hot, sent, fate, taken, gas } = of;
  const atMs = ctx.ports.clock.now();
  const amount = greatest(1n, taken);
  const move = { ...of, purpose: 'sweep', chain: 0, amount, target: hot.script, lost: sent } as const;
  const id = await writeMove(ctx, sql, recovery, move);
  const entries = [
    ...(fate.lost === 0n ? [] : [differenceEntry({ currency, txid: facts.txid, acceptsLoss: true }, fate.lost)]),
    ...[sweepGasEntry(id, gas, new Map())].filter((entry) => entry !== null),
  ];
  await postEntries(
    sql,
    entries.map((entry) => ({ entry, transactionId: null, atMs })),
  );
  if (sent > 0n) {
    const evidence = `${facts.txid}: it went elsewhere`;
    await insertWriteOff(sql, { currency, script: hot.script, amount: sent, block, batchId: id, by, evidence, atMs });
  }
  await noteArrived(ctx, sql, { ...recovery, batchId: id }, fate.arrived);
  const written = await readBatch(sql, id, { lock: true });
  const state = taken === 0n ? 'dead' : 'final';
  await setBatchState(sql, id, { state, minedAttempt: written?.attempts[0]?.id ?? null });
  if (state === 'dead') await noteSwept(sql, currency, of.script);
  return id;
}
