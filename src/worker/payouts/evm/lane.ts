// One address of ours on Ethereum's chain from which a currency leaves, in the order of its nonces: what gas costs now, whether the chain has
// used more nonces than this database knows, and transactions of ours in blocks that were read before we watched for them.
import { evmAddressOf, evmInput } from '../../../core/currencies/evm.ts';
import { ETHER, type EvmCode, isToken } from '../../../core/currency.ts';
import type { EvmPort } from '../../../core/evm/port.ts';
import { payoutOffer } from '../../../core/payouts/gas.ts';
import type { Context } from '../../../flow/context.ts';
import { type HotAddress, hotAddress } from '../../../flow/evm/batches.ts';
import { ensureHotAddress } from '../../../flow/payouts/own-outputs.ts';
import { readCursor } from '../../../store/chain/blocks.ts';
import { tripBreaker, wasCleared } from '../../../store/ledger/breakers.ts';
import { type Batch, readBatch } from '../../../store/payouts/batch-rows.ts';
import { dropChecked, saveChecked } from '../../../store/payouts/comparisons.ts';
import {
  closeDisplaced,
  knownNonces,
  openBatches,
  readBlockHash,
  signedNonces,
  usedNonces,
} from '../../../store/payouts/evm-lane.ts';
import { saveFeeRate, savePayoutsWait } from '../../../store/payouts/fee-rates.ts';
import { recordOutgoing } from '../../../store/payouts/outgoing-facts.ts';
import { type OpenMovement, openMovements } from '../../../store/payouts/unknown-movements.ts';
import { missingSince } from '../../../store/sweeps/balances.ts';
import { readMovesOf } from '../../../store/sweeps/forgotten-moves.ts';
import { portOf } from '../../chain/context.ts';
import { troubleOf } from '../../chain/pass-result.ts';
import { AT_REST_MS, type OutputCheck, type Trouble } from '../output-check.ts';
import { MOST_MOVES, writeMovesBack } from './forgotten-moves.ts';
import { untilKnown } from './funds.ts';
import { findSent, MOST_NONCES, recordSent, type SentTransaction } from './passed-nonces.ts';
import { findMined } from './used-nonce.ts';

export type Lane = {
  readonly currency: EvmCode;
  readonly port: EvmPort;
  /** The token's, lower case; null for ether. */
  readonly contract: string | null;
  askFee(): Promise<void>;
  /** Writes why what waits here does not leave, for /readyz; null = nothing stands against it. */
  saveWait(why: string | null): Promise<void>;
};

const FEE_EVERY_MS = 15_000;
const FEE_SAVED_EVERY_MS = 300_000;
const AGAIN_MS = 600_000;
const UNRESOLVED_AGAIN_MS = 15_000;

/** The lane of a currency. `askFee` asks the node at most every 15 s and keeps the price for the requests of payouts. */
export function createLane(ctx: Context, currency: EvmCode): Lane {
  const port = portOf(ctx, currency) as EvmPort;
  let askedMs = Number.NEGATIVE_INFINITY;
  /** The database in which our address is recorded. */
  let watchedIn: number | null = null;
  let savedWait: { readonly why: string | null; readonly generation: number } | null = null;
  let saved: { readonly maxFee: bigint; readonly atMs: number; readonly generation: number } | null = null;
  return {
    currency,
    port,
    contract: isToken(currency) ? (ctx.tokenContract?.toLowerCase() ?? null) : null,
    async askFee() {
      // capital that arrives there is seen from now on
      const { generation } = ctx.db.identity;
      if (watchedIn !== generation) watchedIn = (await ensureHotAddress(ctx, currency)) ? generation : null;
      if (performance.now() - askedMs < FEE_EVERY_MS) return;
      askedMs = performance.now();
      const fees = await port.gasFees().catch((error: unknown) => {
        if (troubleOf(error) === null) throw error;
        return null;
      });
      if (fees === null) return;
      const { maxFee } = payoutOffer(fees);
      // a database transaction for nothing new is one too many for a service at rest
      const isSame = saved !== null && saved.maxFee === maxFee && saved.generation === generation;
      if (isSame && performance.now() - (saved?.atMs ?? 0) < FEE_SAVED_EVERY_MS) return;
      await saveFeeRate(ctx.db, currency, maxFee, ctx.ports.clock.now());
      saved = { maxFee, atMs: performance.now(), generation };
    },
    async saveWait(why) {
      const { generation } = ctx.db.identity;
      if (savedWait?.why === why && savedWait.generation === generation) return;
      await savePayoutsWait(ctx.db, currency, why);
      savedWait = { why, generation };
    },
  };
}

/**
 * Looks in blocks that were read before for what has used the nonce of a batch: one of its own transactions, or one that nobody here has signed,
 * after which none of its own can ever be mined.
 */
export async function findAtNonce(ctx: Context, lane: Lane, batch: Batch<EvmCode>): Promise<void> {
  if (await findMined(ctx, lane, batch)) return;
  const [input] = batch.inputs;
  const cursor = await readCursor(ctx.db, lane.currency);
  if (input === undefined || cursor === null) return;
  const address = evmAddressOf(input.script.toString('hex'));
  if ((await lane.port.account(address, cursor.height)).nonce <= input.vout) return;
  const [sent] = await findSent(ctx, lane, address, { nonces: [input.vout], height: cursor.height });
  if (sent === undefined) return;
  await ctx.db.transaction(async (sql) => {
    if ((await readBlockHash(sql, lane.currency, sent.block.height)) !== sent.block.hash) return;
    await recordOutgoing(sql, lane.currency, sent.block, [{ ...sent.facts, outputs: [] }], new Set());
  });
  // what leaves from the address of a transaction pays nobody
  if (batch.purpose !== 'sweep') await recordSent(ctx, lane, address, [sent], { onlyPaying: false });
}

/** Compares the nonces that the chain has used with those that this database knows to be used (INV-15), before anything is signed. */
export function createNonceCheck(ctx: Context, lane: Lane): OutputCheck {
  const { currency, port } = lane;
  let passedAtMs: number | null = null;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let found: Trouble | null = null;
  /** What waits is told that something has left which is not booked here. */
  let saysWait = false;

  async function look(): Promise<Trouble | null> {
    const hot = await hotAddress(ctx, ctx.db, currency);
    if (hot === null) return null;
    const cursor = await readCursor(ctx.db, currency);
    const condition = await port.condition();
    const unread = { what: 'our nonces are compared when the chain was read to its end', isFound: false };
    if (cursor === null || condition.state !== 'ready') return unread;
    // of the tip: a chain whose blocks come faster than they are read is compared all the same while nothing of ours is in them
    const { nonce } = await port.account(hot.address, condition.height);
    const sender = evmInput(hot.address, 0).txid;
    const known = (): Promise<number | null> => usedNonces(ctx.db, currency, sender, cursor.height);
    await writeMovesBack(ctx, lane);
    let used = await known();
    if (condition.hash !== cursor.hash && nonce !== (used ?? 0)) return unread;
    if (used !== null && nonce > used) {
      for (const id of await openBatches(ctx.db, currency)) {
        const batch = await readBatch<EvmCode>(ctx.db, id, { lock: false });
        if (batch !== null && batch.attempts.length > 0) await findMined(ctx, lane, batch);
      }
      used = await known();
    }
    if (nonce > (used ?? 0)) {
      const moves = await readMovesOf(ctx.db, currency, { txid: sender, vout: used ?? 0 }, MOST_MOVES);
      const next = moves.find((move) => move.sender.vout === (used ?? 0));
      if (next !== undefined) {
        const what = `${next.txid} has left for another address of ours, and is booked once two nodes (the only one, where there is one) show that its block is final (one that is away for good, or wrong: take it out of BURSAR_${ETHER}_RPC_URL)`;
        return waitsFor(what);
      }
      const all = await knownNonces(ctx.db, currency, sender, used ?? 0);
      for (const move of moves) all.add(move.sender.vout);
      const nonces: number[] = [];
      // how many there are is a node's word
      for (let one = nonce - 1; one >= (used ?? 0) && nonces.length < MOST_NONCES; one--) if (!all.has(one)) nonces.unshift(one);
      const sent = await findSent(ctx, lane, hot.address, { nonces, height: cursor.height });
      await recordPassed(hot, sent, used === null);
    }
    const open = await unresolved();
    if (open.length > 0)
      return { what: `${open.map(({ finding }) => finding).join('; ')} (bursar payout recover)`, isFound: true };
    if (used === null && nonce > 0) {
      const found = await stopUnlessCleared(
        `our address ${hot.address} has sent ${nonce} transactions, and none of them is known here (INV-15): database and signer were put back to before the first, or its words were used elsewhere. Compare open payouts with what it has sent; "bursar audit --clear" goes on after these ${nonce}`,
      );
      if (found !== null) return found;
    }
    if (used === null || nonce === used) {
      const unseen = await sentUnseen(hot.address, nonce);
      if (unseen !== null) return waitsFor(unseen);
      if (saysWait) await lane.saveWait(null);
      saysWait = false;
      await saveChecked(ctx.db, currency, cursor.height);
      return null;
    }
    if (nonce < used || (await readBlockHash(ctx.db, currency, cursor.height)) !== cursor.hash)
      return { what: 'our nonces are compared when the chain rests', isFound: false };
    const what = `our address ${hot.address} has sent ${nonce} transactions, and ${used} of them are known here (INV-15): another copy of this server is running, or a key was stolen. An explorer of the chain names them for "bursar payout recover"`;
    await tripBreaker(ctx.db, { name: 'payouts', by: ['INV-15'], findings: [what], atMs: ctx.ports.clock.now() });
    // what waits may have been paid by one of them
    await dropChecked(ctx.db, currency);
    return { what, isFound: true };
  }

  /** What an operator has to book; what can be mined no more is not his to book. */
  async function unresolved(): Promise<readonly OpenMovement[]> {
    const ofCurrency = async () => (await openMovements(ctx.db)).filter((one) => one.currency === currency);
    const open = await ofCurrency();
    if (open.length === 0) return open;
    const finalHeight = (await port.finalized())?.height ?? -1;
    await closeDisplaced(ctx.db, currency, { finalHeight, atMs: ctx.ports.clock.now() });
    return ofCurrency();
  }

  /**
   * What an address has sent before its words came here is named only where it pays what is asked for here, or where what is known to have come
   * before that is missing.
   * @param isFirst nothing that the address has sent is known here
   */
  async function recordPassed(
    { address, script }: HotAddress,
    sent: readonly SentTransaction[],
    isFirst: boolean,
  ): Promise<void> {
    const since = isFirst ? ((await missingSince(ctx.db, script)) ?? Number.POSITIVE_INFINITY) : 0;
    const older = sent.filter(({ block }) => block.height < since);
    await recordSent(ctx, lane, address, older, { onlyPaying: true });
    await recordSent(ctx, lane, address, sent.slice(older.length), { onlyPaying: false });
  }

  /** Something has left that is no reason to stop: until it is booked nothing new is signed, and nothing is cancelled, whichever worker has looked. */
  async function waitsFor(what: string): Promise<Trouble> {
    saysWait = true;
    passedAtMs = null;
    await lane.saveWait(what);
    await dropChecked(ctx.db, currency);
    return { what, isFound: false };
  }

  /**
   * What a node has of our address that nobody here has signed, and that no block has that was read: it waits for one, or the node that is read is
   * behind. Null: nothing.
   */
  async function sentUnseen(address: string, mined: number): Promise<string | null> {
    const { most, said } = await port.sentBy(address);
    // read after that: what is signed meanwhile is stored before it is sent
    const signed = (await signedNonces(ctx.db, currency, evmInput(address, 0).txid)) ?? 0;
    if (most <= Math.max(mined, signed)) return null;
    return `a node knows of ${most} transactions that our address ${address} has sent, and ${Math.max(mined, signed)} of them are known here: what is paid waits until a block ${untilKnown(said)}`;
  }

  async function stopUnlessCleared(what: string): Promise<Trouble | null> {
    if (await wasCleared(ctx.db, what)) return null;
    await tripBreaker(ctx.db, { name: 'payouts', by: ['INV-15'], findings: [what], atMs: ctx.ports.clock.now() });
    return { what, isFound: true };
  }

  return {
    hasPassed: () => passedAtMs !== null,
    isOld: () => passedAtMs !== null && performance.now() - passedAtMs >= AT_REST_MS,
    async trouble() {
      const nowMs = performance.now();
      if (passedAtMs !== null && nowMs - passedAtMs < AGAIN_MS) return null;
      if (found?.isFound && nowMs - lookedAtMs < UNRESOLVED_AGAIN_MS) return found;
      lookedAtMs = nowMs;
      try {
        found = await look();
      } catch (error) {
        const said = troubleOf(error);
        if (said === null) throw error;
        found = { what: `our nonces cannot be compared with the chain: ${said.reason}`, isFound: false };
      }
      if (found === null) passedAtMs = nowMs;
      else if (found.isFound) passedAtMs = null;
      return found;
    },
    forget() {
      passedAtMs = null;
      found = null;
    },
  };
}
