// A sweep, or ether for the gas of one, that database and signer have both forgotten, because they were put back together: the chain shows that one
// of our addresses has sent it to another one. It is written back as the batch that it was, as the signer's journal would have had it.
import type { BlockRef } from '../../core/block-ref.ts';
import { evmScript, GAS } from '../../core/currencies/evm.ts';
import { ETHER, EVM_CODES, type EvmCode, isToken } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { greatest, mulDivUp, plus, sum } from '../../core/money.ts';
import { keptOf } from '../../core/payouts/sweeps.ts';
import type { Outpoint, TransactionFacts } from '../../core/ports.ts';
import { leaveReservation } from '../../store/payouts/after-restore/emptied-batches.ts';
import { insertAttempt, isStored } from '../../store/payouts/attempts.ts';
import { readBatch } from '../../store/payouts/batch-rows.ts';
import { batchesOfOutputs, freeInputs, insertBatch, lockOutputs } from '../../store/payouts/batches.ts';
import { readBlockHash, usedNonces } from '../../store/payouts/evm-lane.ts';
import { recordOutgoing } from '../../store/payouts/outgoing-facts.ts';
import { resolveMovement } from '../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { addressOfScript, noteSwept } from '../../store/sweeps/addresses.ts';
import { dropMove } from '../../store/sweeps/forgotten-moves.ts';
import type { Context } from '../context.ts';
import { everyHotAddress, HOT_INDEX, type HotAddress } from '../evm/batches.ts';

/** In a final block. */
type Final = { readonly currency: EvmCode; readonly block: BlockRef; readonly facts: TransactionFacts };

type Move = {
  readonly purpose: 'sweep' | 'top_up';
  readonly hot: HotAddress;
  readonly script: Buffer;
  readonly chain: 0 | 1;
  readonly index: number;
  /** What has left the address, gas included where the currency is ether. */
  readonly amount: bigint;
  readonly target: Buffer;
};

const EVERY_HEIGHT = 2_000_000_000;

/** Writes it back; what is none, or is known by now, is forgotten. @returns whether it was written back */
export function writeMoveBack(ctx: Context, { currency, block, facts }: Final): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    await lockOutputs(sql, currency);
    const [sender] = facts.inputs;
    const move =
      sender === undefined || (await isStored(sql, currency, facts.txid)) ? null : await moveOf(ctx, sql, currency, facts);
    if (move === null || sender === undefined) {
      await dropMove(sql, currency, { txid: facts.txid, block });
      return false;
    }
    if ((await readBlockHash(sql, currency, block.height)) !== block.hash) return false;
    // what has left before it, and is not known, must be found first; below what is known to be used something else was signed for its nonce, or an
    // operator has let what was before the first that was signed here be
    if (move.purpose === 'top_up' && ((await usedNonces(sql, currency, sender.txid, EVERY_HEIGHT)) ?? 0) < sender.vout)
      return false;
    if (!(await isFree(sql, currency, sender))) return false;
    await writeMove(ctx, sql, { currency, block, facts }, { ...move, sender, lost: 0n });
    await dropMove(sql, currency, { txid: facts.txid, block });
    const resolution = { by: 'a later look', text: 'an address of ours has sent it to another one', atMs: ctx.ports.clock.now() };
    await resolveMovement(sql, { currency, txid: facts.txid }, resolution);
    return true;
  });
}

/** What such a transaction was; null: none of what the signer signs without being asked for a payout, with whichever of its keys. */
async function moveOf(
  ctx: Context,
  sql: Sql,
  currency: EvmCode,
  { inputs, outputs, outcome }: TransactionFacts,
): Promise<Move | null> {
  const [[sender], [output]] = [inputs, outputs];
  const hots = await everyHotAddress(ctx, sql, currency);
  if (sender === undefined) return null;
  const script = Buffer.from(evmScript(sender.txid), 'hex');
  const from = await indexOf(ctx, sql, hots, script);
  if (outcome?.result === 'failed') {
    // what it was to move is still there
    return from === null ? null : { purpose: 'sweep', ...from, script, chain: 0, amount: 1n, target: from.hot.script };
  }
  if (output === undefined) return null;
  if (outcome?.result === 'unclear') {
    // a token's contract may have kept a part of it
    const amount = sum(outputs.map(({ amountMinor }) => amountMinor));
    const isKept = from !== null && keptOf({ outputs, outcome }, { target: from.hot.script, amount }) !== null;
    return isKept && outputs.some(({ script: paid }) => paid === Buffer.from(from.hot.script).toString('hex'))
      ? { purpose: 'sweep', ...from, script, chain: 0, amount, target: from.hot.script }
      : null;
  }
  if (outputs.length > 1 || outcome?.result !== 'paid') return null;
  const target = Buffer.from(output.script, 'hex');
  const gas = isToken(currency) ? 0n : outcome.gasPaid;
  const hot = hots.find((one) => one.script.equals(script));
  if (currency === ETHER && hot !== undefined) {
    if (!(await needsEther(ctx, sql, target))) return null;
    // its gas is booked besides, as that of payouts is
    return { purpose: 'top_up', hot, script, chain: 1, index: HOT_INDEX, amount: output.amountMinor, target };
  }
  if (from === null || !target.equals(from.hot.script)) return null;
  return { purpose: 'sweep', ...from, script, chain: 0, amount: plus(output.amountMinor, gas), target };
}

/** Which of a currency's keys has the address of a transaction, and where; null: none. */
export async function indexOf(
  ctx: Context,
  sql: Sql,
  hots: readonly HotAddress[],
  script: Buffer,
): Promise<{ readonly hot: HotAddress; readonly index: number } | null> {
  const found = await addressOfScript(sql, script);
  if (found === null) return null;
  const derives = ({ currency, key }: HotAddress): boolean =>
    found.currency === currency &&
    script.equals(Buffer.from(ctx.ports.addresses.of(currency, key.xpub).derive(found.index).script));
  const hot = hots.find(derives);
  return hot === undefined ? null : { hot, index: found.index };
}

/** Whether ether is brought to an address for the gas of a token. */
async function needsEther(ctx: Context, sql: Sql, target: Buffer): Promise<boolean> {
  for (const currency of EVM_CODES.filter(isToken)) {
    const hots = await everyHotAddress(ctx, sql, currency);
    if (hots.some((hot) => hot.script.equals(target)) || (await indexOf(ctx, sql, hots, target)) !== null) return true;
  }
  return false;
}

/** Gives up what was reserved or has failed at its nonce; one that may yet be thought to be mined must end first. @returns whether nothing has it now */
export async function isFree(sql: Sql, currency: EvmCode, sender: Outpoint): Promise<boolean> {
  for (const id of await batchesOfOutputs(sql, currency, [sender])) {
    const batch = await readBatch(sql, id, { lock: true });
    if (batch === null) continue;
    if (batch.attempts.length > 0 && batch.state !== 'dead') return false;
    if (batch.attempts.length === 0) await leaveReservation(sql, batch, [sender]);
    else await freeInputs(sql, currency, id, [sender]);
  }
  return true;
}

/**
 * Writes it as the batch that it was, with its only transaction in a block.
 * @param of `lost`: what of it, in minor units, went to nobody known
 * @returns the batch's id
 */
export async function writeMove(
  ctx: Context,
  sql: Sql,
  { currency, block, facts }: Final,
  of: Move & { readonly sender: Outpoint; readonly lost: bigint },
): Promise<string> {
  const { purpose, hot, script, chain, index, amount, target, sender, lost } = of;
  const atMs = ctx.ports.clock.now();
  const id = sortableId('batch_', atMs, ctx.ports.rng.bytes(10));
  const gasPaid = facts.outcome?.gasPaid ?? 0n;
  const price = greatest(1n, mulDivUp(gasPaid, 1n, BigInt(GAS.plain)));
  await insertBatch(sql, {
    id,
    currency,
    feeRate: price,
    gas: { tip: price, limit: GAS.plain },
    sweep: { purpose, target },
    accountId: hot.key.id,
    change: null,
    inputs: [{ ...sender, amount, script, chain, index }],
    payoutIds: [],
    atMs,
  });
  await insertAttempt(sql, {
    batchId: id,
    number: 1,
    currency,
    txid: facts.txid,
    // a final block has it: it is never sent again
    raw: Buffer.alloc(0),
    fee: gasPaid,
    vbytes: GAS.plain,
    feeRate: price,
    maxFee: price,
    change: null,
    epoch: 0n,
    // none of the signer's own: it has forgotten it
    sequence: 0,
    lost,
    signedAtMs: atMs,
    shares: [],
  });
  await recordOutgoing(sql, currency, block, [{ ...facts, spends: facts.inputs, outputs: [] }], new Set());
  if (purpose === 'sweep') await noteSwept(sql, currency, script);
  return id;
}
