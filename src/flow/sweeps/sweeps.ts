// Moves payments in ether and tokens from the addresses of their transactions to the address that payouts leave from. A sweep, and the ether for
// the gas of one, is a batch without payouts: its nonce is reserved here in one database transaction before anything is signed, and from then
// on it goes the way of every other batch.
import { evmAddressOf, evmInput, GAS } from '../../core/currencies/evm.ts';
import { ETHER, type EvmCode, isToken } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { formatAmount, least, minus, sum } from '../../core/money.ts';
import type { GasOffer } from '../../core/payouts/gas.ts';
import { MOST_TOP_UP, sweptEther } from '../../core/payouts/sweeps.ts';
import { openBreakers } from '../../store/ledger/breakers.ts';
import type { Batch } from '../../store/payouts/batch-rows.ts';
import { giveUpBatch, insertBatch, lockOutputs, type NewBatch } from '../../store/payouts/batches.ts';
import { nextNonce, openOutflow } from '../../store/payouts/evm-lane.ts';
import { wakeDriver } from '../../store/payouts/outgoing-facts.ts';
import {
  isToppedUp,
  noteSwept,
  openSweeps,
  type SweepableAddress,
  sweepableAddresses,
  unsweptUnits,
} from '../../store/sweeps/addresses.ts';
import type { Context } from '../context.ts';
import { type Funds, HOT_INDEX, type HotAddress } from '../evm/batches.ts';

/** How many sweeps of a currency wait for the next blocks at most, … */
const MOST_SWEEPS = 16;
/** … and how many transactions of our address, when one with gas for a sweep is added: what nodes keep of one sender is left for payouts. */
const MOST_AHEAD = 8;

type Moved = Pick<Batch<EvmCode>, 'gas'> & {
  readonly offer: GasOffer;
  readonly gas: { readonly tip: bigint; readonly limit: number };
};

/** Makes a batch of one transaction that pays an address of ours. */
async function insert(
  ctx: Context,
  sql: Parameters<typeof insertBatch>[0],
  of: Moved &
    Pick<NewBatch, 'currency' | 'accountId'> & {
      readonly purpose: 'sweep' | 'top_up';
      readonly target: Uint8Array;
      readonly input: NewBatch['inputs'][number];
    },
): Promise<void> {
  const nowMs = ctx.ports.clock.now();
  await insertBatch(sql, {
    id: sortableId('batch_', nowMs, ctx.ports.rng.bytes(10)),
    currency: of.currency,
    feeRate: of.offer.maxFee,
    gas: of.gas,
    sweep: { purpose: of.purpose, target: of.target },
    accountId: of.accountId,
    change: null,
    inputs: [of.input],
    payoutIds: [],
    atMs: nowMs,
  });
  await wakeDriver(sql);
}

export type NewSweep = {
  readonly hot: HotAddress;
  readonly from: SweepableAddress;
  /** What the chain shows of the address. */
  readonly funds: Funds;
  readonly least: bigint;
  readonly gas: number;
  readonly offer: GasOffer;
  /** What the newest block has asked for a unit of gas, wei. */
  readonly base: bigint;
};

/** Reserves the nonce of a sweep. @returns whether it was; not while payouts are stopped, or when its address has changed meanwhile */
export function formSweep(ctx: Context, { hot, from, funds, least, gas, offer, base }: NewSweep): Promise<boolean> {
  const { currency } = hot;
  return ctx.db.transaction(async (sql) => {
    if ((await openBreakers(sql)).length > 0) return false;
    await lockOutputs(sql, currency);
    // small payments, of which none can offer what has become dear since, hold up none that can
    if ((await openSweeps(sql, currency, base)) >= MOST_SWEEPS) return false;
    const nowMs = ctx.ports.clock.now();
    const [still] = await sweepableAddresses(sql, currency, { least, nowMs, limit: 1, only: from.script });
    if (still === undefined || still.amount !== from.amount) return false;
    const address = evmAddressOf(from.script.toString('hex'));
    const amount = isToken(currency) || funds.ether >= from.amount ? from.amount : funds.ether;
    if (!isToken(currency) && sweptEther(amount, gas, offer.maxFee) <= 0n) return false;
    const nonce = (await nextNonce(sql, currency, evmInput(address, 0).txid)) ?? funds.nonce;
    if (typeof nonce !== 'number') return false;
    await insert(ctx, sql, {
      purpose: 'sweep',
      currency,
      accountId: hot.key.id,
      target: hot.script,
      offer,
      gas: { tip: offer.tip, limit: gas },
      input: { ...evmInput(address, nonce), amount, script: from.script, chain: 0, index: from.index },
    });
    await noteSwept(sql, currency, from.script);
    return true;
  });
}

export type NewTopUp = {
  /** Ether's own. */
  readonly hot: HotAddress;
  readonly funds: Funds;
  readonly target: Uint8Array;
  /** Wei, and what of it is sent at least where there is less. */
  readonly amount: bigint;
  readonly least: bigint;
  readonly offer: GasOffer;
};

/** Reserves the nonce of a transaction that brings an address the ether for its gas; null, or why not yet. */
export function formTopUp(
  ctx: Context,
  { hot, funds, target, amount: wanted, least: lowest, offer }: NewTopUp,
): Promise<string | null> {
  if (lowest > MOST_TOP_UP) return Promise.resolve(`gas is too dear to bring ether for it`);
  return ctx.db.transaction(async (sql) => {
    if ((await openBreakers(sql)).length > 0) return null;
    await lockOutputs(sql, ETHER);
    if (await isToppedUp(sql, target)) return null;
    const sender = evmInput(hot.address, 0).txid;
    const open = await openOutflow(sql, { currency: ETHER, sender }, funds.height);
    if (open.count >= MOST_AHEAD || open.hasUnsigned) return null;
    const free = minus(funds.ether, sum([open.gas, open.units, BigInt(GAS.plain) * offer.maxFee]));
    const amount = least(MOST_TOP_UP, least(wanted, free));
    if (amount < lowest) return `our address ${hot.address} has too little ether for the gas of tokens`;
    const nonce = (await nextNonce(sql, ETHER, sender)) ?? funds.nonce;
    if (typeof nonce !== 'number') return nonce.unknown;
    await insert(ctx, sql, {
      purpose: 'top_up',
      currency: ETHER,
      accountId: hot.key.id,
      target,
      offer,
      gas: { tip: offer.tip, limit: GAS.plain },
      input: { ...evmInput(hot.address, nonce), amount, script: hot.script, chain: 1, index: HOT_INDEX },
    });
    return null;
  });
}

/** Gives a sweep up for which nothing was signed and nothing can be any more. */
export function giveUpSweep(ctx: Context, batch: Batch<EvmCode>, epoch: bigint): Promise<boolean> {
  return ctx.db.transaction(async (sql) => {
    const [input] = batch.inputs;
    if (!(await giveUpBatch(sql, batch.id, epoch))) return false;
    if (batch.purpose === 'sweep' && input !== undefined) await noteSwept(sql, batch.currency, input.script);
    return true;
  });
}

/** Why payouts wait, with what is still at the addresses of transactions. */
export async function withUnswept(ctx: Context, currency: EvmCode, why: string): Promise<string> {
  const units = await unsweptUnits(ctx.db, currency);
  if (units === 0n) return why;
  return `${why}; ${formatAmount(units, currency)} ${currency} are still at the addresses of their transactions, and are moved there once they are final and worth their gas`;
}
