// An operator has booked that nonces of an address of ours were used without a transaction of it (EIP-7702): its key has signed authorizations elsewhere,
// and somebody has sent them. What the address has sent by its new code in the same transaction is booked with them, but for ether, which is not shown.
import { evmAddressOf, evmInput } from '../../core/currencies/evm.ts';
import type { EvmCode } from '../../core/currency.ts';
import type { TransactionFacts } from '../../core/ports.ts';
import { Refusal } from '../../core/refusal.ts';
import { insertAuthorized, isUseKnown } from '../../store/payouts/after-restore/authorized-nonces.ts';
import { leaveReservation } from '../../store/payouts/after-restore/emptied-batches.ts';
import { readBatch } from '../../store/payouts/batch-rows.ts';
import { batchesOfOutputs, lockOutputs } from '../../store/payouts/batches.ts';
import { recordMovements, resolveMovement } from '../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { isWrittenOff } from '../../store/sweeps/written-off.ts';
import type { Context } from '../context.ts';
import { noteLost } from '../payouts/after-restore/lost-outputs.ts';
import type { Recovered } from '../payouts/after-restore/recover.ts';
import { type Beside, bookBeside, fateOfCalled, fatesOf } from '../sweeps/sent-beside.ts';

export type AuthorizedRecovery = {
  /** Whose address it is. */
  readonly currency: EvmCode;
  readonly script: Buffer;
  /** Those that the transaction has used, as two nodes show, in a final block. */
  readonly nonces: readonly number[];
  readonly txid: string;
  readonly block: { readonly height: number; readonly hash: string };
  /** What the address has sent in it, in each currency of the chain. */
  readonly sent: readonly Beside[];
  readonly by: string;
  readonly acceptsLoss: boolean;
};

/**
 * Books them. @returns what is lost
 * @throws Refusal not_resolvable, with what is missing
 */
export function recoverAuthorized(ctx: Context, of: AuthorizedRecovery): Promise<Recovered> {
  const { currency, script, nonces, txid, block, sent, by, acceptsLoss } = of;
  const address = evmAddressOf(script.toString('hex'));
  const refused = (what: string): Refusal => new Refusal('not_resolvable', { message: `Transaction ${txid} ${what}.` });
  return ctx.db.transaction(async (sql) => {
    // another operator may book it now
    await lockOutputs(sql, currency);
    const atMs = ctx.ports.clock.now();
    for (const nonce of nonces) {
      const sender = evmInput(address, nonce);
      if (await isUseKnown(sql, { currency, txid, sender })) throw refused(`is known: nonce ${nonce} of ${address} is booked`);
      await leaveReserved(sql, currency, sender);
      await insertAuthorized(sql, { currency, txid, sender, block, by, atMs });
    }
    // it was booked before a reorganisation that has put it into another block: what it has sent less or more there, balances show
    const beside = (await isWrittenOff(sql, script, txid)) ? [] : sent;
    const fates = await fatesOf(sql, { beside, acceptsLoss }, refused, fateOfCalled);
    const besides = await bookBeside(ctx, sql, { facts: { txid }, block, by, acceptsLoss, batchId: null, script }, fates);
    // whoever names one that no look has found yet leaves the same trace
    const finding = `transaction ${txid} carries what our address ${address} has authorized and nobody here has signed`;
    await recordMovements(sql, [{ currency, txid, blockHash: block.hash, finding }], atMs);
    const text = `booked at nonce ${nonces.join(', ')}: no payout`;
    await resolveMovement(sql, { currency, txid }, { by, text, atMs });
    const alike: string[] = [];
    for (const one of sent) alike.push(...(await noteLost(ctx, sql, one.currency, { facts: one.facts, payoutIds: [] })));
    return { payoutIds: [], lost: 0n, fee: 0n, besides, alike };
  });
}

/** Nothing is signed for it any more: it can never be mined. What was signed before fails by itself. */
async function leaveReserved(sql: Sql, currency: EvmCode, sender: TransactionFacts['inputs'][number]): Promise<void> {
  for (const id of await batchesOfOutputs(sql, currency, [sender])) {
    const batch = await readBatch(sql, id, { lock: true });
    if (batch !== null && batch.attempts.length === 0) await leaveReservation(sql, batch, [sender]);
  }
}
