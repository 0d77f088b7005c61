// Decides what moves next from the addresses of transactions to the one that payouts leave from, and what ether that needs there first. It asks
// the node, and has the rest reserved in one database transaction (flow/sweeps/sweeps.ts); the driver does what every batch needs.
import { evmAddressOf, GAS } from '../../../core/currencies/evm.ts';
import { ETHER, type EvmCode, isToken } from '../../../core/currency.ts';
import { transferCall } from '../../../core/evm/transaction.ts';
import { least, minus, plus } from '../../../core/money.ts';
import { exactOffer, type GasFees, type GasOffer, gasLimit, isReplacement, payoutOffer } from '../../../core/payouts/gas.ts';
import { leastSwept, sweptEther } from '../../../core/payouts/sweeps.ts';
import type { Context } from '../../../flow/context.ts';
import { type HotAddress, hotAddress } from '../../../flow/evm/batches.ts';
import { formSweep, type NewSweep } from '../../../flow/sweeps/sweeps.ts';
import { readCursor } from '../../../store/chain/blocks.ts';
import type { Batch, BatchInput } from '../../../store/payouts/batch-rows.ts';
import { openOutflow } from '../../../store/payouts/evm-lane.ts';
import { hasUnswept, type SweepableAddress, sweepableAddresses } from '../../../store/sweeps/addresses.ts';
import { latestRates } from '../../../store/transactions/rates.ts';
import { troubleOf } from '../../chain/pass-result.ts';
import type { DriverOptions } from '../driver-options.ts';
import { writeMovesBack } from './forgotten-moves.ts';
import { readFunds, whyMovedBefore, whyNoEther } from './funds.ts';
import type { Lane } from './lane.ts';
import { bringEther } from './top-up.ts';

export type Sweeper = {
  /** Whether there may be something to move that was not looked at yet. */
  isDue(): Promise<boolean>;
  /** Reserves the next sweep, or ether for its gas; whether a sweep was reserved. @throws NodeTrouble */
  form(): Promise<boolean>;
  /** What a replacement of a sweep may offer: its address pays the gas. Null: no more than before, ether for more is sent first. @throws NodeTrouble */
  affordable(batch: Batch<EvmCode>, offer: GasOffer): Promise<GasOffer | null>;
};

/** Addresses about which a node is asked in one pass, … */
const MOST_LOOKED_AT = 20;
/** … and those that are read for that. */
const MOST_READ = 500;
/** Where nothing could be moved, it is looked at again with a new block, and not sooner than this. */
const LOOK_AGAIN_MS = 10_000;

type Telling = Pick<DriverOptions, 'onFault'> & { readonly onWait: (why: string) => void };

/** @param telling `onWait`: told why something that is worth moving stays where it is */
export function createSweeper(ctx: Context, { currency, port, contract }: Lane, { onWait, onFault }: Telling): Sweeper {
  const multiple = ctx.sweepGasMultiple ?? 0;
  /** Behind this one the next pass goes on: twenty at which nothing can be done hide none of the others. Null: with the fullest. */
  let after: SweepableAddress | null = null;
  let looked: { readonly height: number; readonly atMs: number; readonly generation: number } | null = null;

  type Looked = {
    readonly hot: HotAddress;
    readonly height: number;
    readonly fees: GasFees;
    readonly least: bigint;
  };

  async function form(): Promise<boolean> {
    const hot = await hotAddress(ctx, ctx.db, currency);
    const cursor = await readCursor(ctx.db, currency);
    if (hot === null || cursor === null) return false;
    await writeMovesBack(ctx, { currency, port });
    const fees = await port.gasFees();
    const rates = await latestRates(ctx.db, ctx.ports.seals, [ETHER, currency], ctx.ports.clock.now());
    const least = leastSwept(currency, { fees, multiple, rates });
    if (least === null) return false;
    const nowMs = ctx.ports.clock.now();
    const read = await sweepableAddresses(ctx.db, currency, { least, nowMs, limit: MOST_READ, after });
    let asked = 0;
    for (const from of read) {
      if (from.amount >= least && isOfSigner(hot, from)) {
        if (asked >= MOST_LOOKED_AT) break;
        asked++;
        // of one that the signer refuses nothing is on its way, and it is the fullest again
        after = from;
        if (await triedOne({ hot, height: cursor.height, fees, least }, from)) return true;
      }
      after = from;
    }
    if (read.length < MOST_READ && (read.length === 0 || after === read.at(-1))) after = null;
    looked = { height: cursor.height, atMs: nowMs, generation: ctx.db.identity.generation };
    return false;
  }

  /** An imported account's addresses, or those of a key that is not in use any more, are not. */
  function isOfSigner({ key }: HotAddress, { script, index }: SweepableAddress): boolean {
    return script.equals(Buffer.from(ctx.ports.addresses.of(currency, key.xpub).derive(index).script));
  }

  /** One at which we fail holds up none of the others. */
  async function triedOne(at: Looked, from: SweepableAddress): Promise<boolean> {
    try {
      return await formOne(at, from);
    } catch (error) {
      if (troubleOf(error) !== null) throw error;
      onFault(`${currency} at ${evmAddressOf(from.script.toString('hex'))}`, error);
      return false;
    }
  }

  async function formOne(at: Looked, from: SweepableAddress): Promise<boolean> {
    const { hot, height, fees, least } = at;
    const address = evmAddressOf(from.script.toString('hex'));
    const funds = await readFunds(ctx, { currency, port }, address, height);
    if (typeof funds.nonce !== 'number') {
      onWait(funds.nonce.unknown);
      return false;
    }
    // of ether the gas of what has failed was taken, and the rest is moved
    if (isToken(currency) && funds.units < from.amount) {
      onWait(`${address} has ${funds.units} units of ${currency}, and ${from.amount} are booked there`);
      return false;
    }
    const sweep = { hot, from, funds, least, base: fees.base };
    const why = contract === null ? await whyNoEther(port, hot.address) : null;
    if (why !== null) {
      onWait(why);
      return false;
    }
    if (contract === null) return formUnlessMoved({ ...sweep, gas: GAS.plain, offer: exactOffer(fees) }, height);
    const problem = await port.payeeProblem(address, hot.address);
    if (problem !== null) {
      onWait(problem.what);
      return false;
    }
    const call = { from: address, to: contract, value: 0n, input: transferCall(hot.address, from.amount) };
    const asked = await port.gasOf(call);
    if ('refused' in asked) {
      onWait(`${address} cannot be emptied: ${asked.refused}`);
      return false;
    }
    const gas = gasLimit(asked.gas, call.input);
    const offer = within(funds.ether, gas, payoutOffer(fees), fees);
    if (offer !== null) return formUnlessMoved({ ...sweep, gas, offer }, height);
    await topUp(from.script, minus(BigInt(gas) * payoutOffer(fees).maxFee, funds.ether), fees);
    return false;
  }

  async function formUnlessMoved(sweep: NewSweep, height: number): Promise<boolean> {
    const why = await whyMovedBefore(ctx, { currency, port }, evmAddressOf(sweep.from.script.toString('hex')), height);
    if (why === null) return formSweep(ctx, sweep);
    onWait(why);
    return false;
  }

  /** Whether a token's sending address can pay this much more for each unit of gas; where not, ether is sent there first. */
  async function hasGasFor({ script, txid: sender }: BatchInput, gas: number, more: bigint): Promise<boolean> {
    const height = (await readCursor(ctx.db, currency))?.height ?? 0;
    const open = await openOutflow(ctx.db, { currency, sender }, height);
    const { ether } = await port.account(evmAddressOf(script.toString('hex')), height);
    const lacks = minus(plus(open.gas, BigInt(gas) * more), ether);
    if (lacks <= 0n) return true;
    await topUp(script, lacks, await port.gasFees());
    return false;
  }

  async function topUp(target: Uint8Array, amount: bigint, fees: GasFees): Promise<void> {
    const why = await bringEther(ctx, target, { amount, least: amount }, fees);
    if (why !== null) onWait(why);
  }

  return {
    async isDue() {
      if (!(multiple > 0) || !(await hasUnswept(ctx.db, currency))) return false;
      const height = (await readCursor(ctx.db, currency))?.height ?? 0;
      const agoMs = ctx.ports.clock.now() - (looked?.atMs ?? 0);
      if (looked === null || looked.generation !== ctx.db.identity.generation) return true;
      return looked.height !== height && (agoMs >= LOOK_AGAIN_MS || agoMs < 0);
    },
    form,
    async affordable({ purpose, inputs, gas, attempts }, offer) {
      const [input] = inputs;
      const last = attempts.at(-1)?.maxFee ?? 0n;
      if (input === undefined || gas === null || purpose === 'top_up') return offer;
      if (purpose === 'payout')
        return contract === null || (await hasGasFor(input, gas.limit, minus(offer.maxFee, last))) ? offer : null;
      if (contract === null)
        return sweptEther(input.amount, gas.limit, offer.maxFee) > BigInt(gas.limit) * offer.maxFee ? offer : null;
      const cursor = await readCursor(ctx.db, currency);
      const { ether } = await port.account(evmAddressOf(input.script.toString('hex')), cursor?.height ?? 0);
      const there = ether / BigInt(gas.limit);
      if (there >= offer.maxFee) return offer;
      const affordable = { maxFee: there, tip: least(offer.tip, there) };
      // a tip is at most the fee that it is part of
      if (isReplacement(affordable, { maxFee: last, tip: last })) return affordable;
      await topUp(input.script, minus(BigInt(gas.limit) * offer.maxFee, ether), await port.gasFees());
      return null;
    },
  };
}

/** What can be offered with the ether that is there; null where that is too little for the next blocks. */
function within(ether: bigint, gas: number, wanted: GasOffer, fees: GasFees): GasOffer | null {
  const maxFee = least(wanted.maxFee, ether / BigInt(gas));
  return maxFee < exactOffer(fees).maxFee && maxFee < wanted.maxFee ? null : { maxFee, tip: least(wanted.tip, maxFee) };
}
