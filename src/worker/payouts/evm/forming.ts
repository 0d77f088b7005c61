// Chooses the payout in ether or a token that gets the next nonce: asks the node what it costs and whether its payee takes it, and has the rest
// reserved in one database transaction (flow/evm/batches). A payee about which the node is silent holds up nobody behind it.
import { evmAddressOf, GAS } from '../../../core/currencies/evm.ts';
import { minus, plus } from '../../../core/money.ts';
import { type GasFees, gasLimit, payoutOffer, usualGas } from '../../../core/payouts/gas.ts';
import type { Context } from '../../../flow/context.ts';
import {
  callOf,
  type EvmFormed,
  etherFor,
  type Funds,
  formEvmBatch,
  type HotAddress,
  hotAddress,
  MOST_QUEUED,
  queuedOnEvm,
  queuedOne,
} from '../../../flow/evm/batches.ts';
import { holdForOperator } from '../../../flow/payouts/waiting-for-operator.ts';
import { withUnswept } from '../../../flow/sweeps/sweeps.ts';
import { readCursor } from '../../../store/chain/blocks.ts';
import type { QueuedPayout } from '../../../store/payouts/batches.ts';
import { contractPayees } from '../../../store/payouts/evm-lane.ts';
import { reachable } from '../../chain/pass-result.ts';
import type { DriverOptions } from '../driver-options.ts';
import { readFunds } from './funds.ts';
import type { Lane } from './lane.ts';
import { bringEther } from './top-up.ts';

/** After the operator's limits or the node have refused, or while a price is missing. */
const LATER_MS = 30_000;
/** The first pause before the node is asked again about a payee that it was silent about; each next one is twice as long. */
const SILENT_MS = 30_000;
/** … and at the latest after this. */
const MOST_SILENT_MS = 3_600_000;

/** When one payout lacks ether for its gas, our address is sent enough for this many more. */
const PAYOUTS_AHEAD = 8;

/** What gas costs now, and what our address has. */
type Offered = { readonly hot: HotAddress; readonly fees: GasFees; readonly funds: Funds };
type Silence = { readonly untilMs: number; readonly forMs: number };

type Telling = Pick<DriverOptions, 'onFault'> & {
  readonly reached: NonNullable<DriverOptions['reached']>;
  readonly onWait: (why: string) => void;
};

export type Forming = {
  /** Reserves a nonce for the oldest payout that can be paid now; whether one was. */
  next(): Promise<boolean>;
  /** Nothing is chosen for a while. */
  wait(): void;
};

/**
 * Chooses what leaves next from one address on Ethereum's chain, and has its nonce reserved.
 * @param telling `onWait`: told why payouts wait
 */
export function createForming(
  ctx: Context,
  { currency, port, contract, saveWait }: Lane,
  { reached, onWait, onFault }: Telling,
): Forming {
  const { clock } = ctx.ports;
  let againMs = Number.NEGATIVE_INFINITY;
  /** By payout, those about whose payees the node was silent. */
  const silent = new Map<string, Silence>();
  /** By payout, until when those wait that are behind another of their merchant's, or are many: they hide nobody's behind them. */
  const behind = new Map<string, { readonly untilMs: number; readonly why: string }>();
  /** Why payouts wait, by this look. */
  let waits: string | null = null;
  /** What came of the last time that ether was to be sent to our address. */
  let brought: { readonly untilMs: number; readonly why: string | null } | null = null;

  async function next(): Promise<boolean> {
    const nowMs = clock.now();
    if (nowMs < againMs && againMs <= nowMs + LATER_MS) return false;
    waits = null;
    const isFormed = await choose(nowMs);
    await saveWait(isFormed ? null : waits);
    return isFormed;
  }

  function tell(why: string): void {
    waits = why;
    onWait(why);
  }

  async function choose(nowMs: number): Promise<boolean> {
    for (const [id, { untilMs }] of behind) if (untilMs <= nowMs || untilMs > nowMs + LATER_MS) behind.delete(id);
    const [waiting] = behind.values();
    if (waiting !== undefined) tell(waiting.why);
    const queued = await queuedOnEvm(ctx, currency, [...silent.keys(), ...behind.keys()]);
    if (queued.length === 0 && silent.size === 0) return false;
    await reached('queued');
    const hot = await hotAddress(ctx, ctx.db, currency);
    const cursor = await readCursor(ctx.db, currency);
    if (hot === null || cursor === null) {
      tell(hot === null ? 'the signer has no key in use for this currency' : 'its chain was not read yet');
      return false;
    }
    // asked once for all that wait: without funds there may be many
    const offered = await reachable(async () => ({
      hot,
      fees: await port.gasFees(),
      funds: await readFunds(ctx, { currency, port }, hot.address, cursor.height),
    }));
    if (offered === null) {
      tell('its node cannot be asked what they cost');
      return false;
    }
    const unpaid: string[] = [];
    for (const payout of queued) {
      const formed = await formNow(payout, offered);
      if (formed === 'formed') return true;
      if (formed === 'waits') unpaid.push(payout.id);
      // it says nothing at all: what waits behind this one would only wait longer
      if (formed === 'silent' && (await reachable(() => port.gasFees())) === null) return false;
    }
    if (queued.length === MOST_QUEUED) leaveOut(unpaid);
    return oneOfSilent(offered, nowMs);
  }

  /** The next looks go past so many that wait, to what is behind them. */
  function leaveOut(ids: readonly string[]): void {
    const why = waits ?? 'they cannot be paid now';
    for (const id of ids) if (!silent.has(id)) behind.set(id, { untilMs: clock.now() + LATER_MS, why });
  }

  /** Of the payees about which the node was silent only the longest due one at a look, since asking may take until the time limit. */
  async function oneOfSilent(offered: Offered, nowMs: number): Promise<boolean> {
    const due = [...silent].filter(([, { untilMs }]) => untilMs <= nowMs || untilMs > nowMs + MOST_SILENT_MS);
    for (const [id] of due.sort(([, a], [, b]) => a.untilMs - b.untilMs)) {
      const payout = await queuedOne(ctx, currency, id);
      if (payout !== null) return (await formNow(payout, offered)) === 'formed';
      silent.delete(id);
    }
    return false;
  }

  async function formNow(payout: QueuedPayout, offered: Offered): Promise<'formed' | 'silent' | EvmFormed['outcome']> {
    const formed = await tried(payout, offered);
    if (formed === 'failed') return 'waits';
    if (formed === null) {
      setBack(payout);
      tell(`its node does not say whether ${payout.id} can be paid, which waits behind the others`);
      return 'silent';
    }
    silent.delete(payout.id);
    if (formed.outcome === 'waits') {
      if (formed.isBehind) behind.set(payout.id, { untilMs: clock.now() + LATER_MS, why: formed.why });
      const why = await withEther(formed, offered);
      if (why !== null) tell(await withUnswept(ctx, currency, why));
    }
    if (formed.outcome !== 'formed') return formed.outcome;
    await reached('reserved');
    return 'formed';
  }

  /** It waits behind the others, and longer with each time. */
  function setBack({ id }: QueuedPayout): void {
    const forMs = Math.min(MOST_SILENT_MS, 2 * (silent.get(id)?.forMs ?? SILENT_MS / 2));
    silent.set(id, { forMs, untilMs: clock.now() + forMs });
  }

  /** One at which we fail holds up none of the others. */
  async function tried(payout: QueuedPayout, offered: Offered): Promise<EvmFormed | 'failed' | null> {
    try {
      return await reachable(() => formOne(payout, offered));
    } catch (error) {
      onFault(`payout ${payout.id}`, error);
      setBack(payout);
      return 'failed';
    }
  }

  /** Why it waits still, once ether for its gas is sent to our address where it lacks that; null when some is on its way. */
  async function withEther(
    { why, lacksEther }: { readonly why: string; readonly lacksEther?: bigint },
    { hot, fees }: Offered,
  ): Promise<string | null> {
    if (lacksEther === undefined) return why;
    const nowMs = clock.now();
    // what the signer's limits have refused is not asked for at every look
    if (brought === null || nowMs >= brought.untilMs || brought.untilMs > nowMs + LATER_MS) {
      const ahead = BigInt(PAYOUTS_AHEAD) * usualGas(currency, payoutOffer(fees).maxFee);
      const wanted = { amount: plus(lacksEther, ahead), least: lacksEther };
      const said = await reachable(async () => ({ why: await bringEther(ctx, hot.script, wanted, fees) }));
      brought = { untilMs: nowMs + LATER_MS, why: said === null ? 'its node cannot be asked' : said.why };
    }
    return brought.why === null ? null : `${why}, and ${brought.why}`;
  }

  /** @throws NodeTrouble */
  async function formOne(payout: QueuedPayout, { hot, fees, funds }: Offered): Promise<EvmFormed> {
    const script = payout.script.toString('hex');
    if (funds.units < payout.amount) return { outcome: 'waits', why: `our address ${hot.address} has too little ${currency}` };
    const tried = await (contract === null ? tryEther(payout, { hot, fees }) : tryToken(payout, hot, contract));
    if ('gas' in tried) return formEvmBatch(ctx, hot, payout.id, { funds, fees, gas: tried.gas });
    if ('waits' in tried) return { outcome: 'waits', why: tried.waits, ...(tried.isBehind && { isBehind: true }) };
    const why = `it cannot be paid now: ${tried.refused}`;
    await ctx.db.transaction((sql) => holdForOperator(ctx, sql, { payoutId: payout.id, why }));
    return { outcome: 'nothing' };

    async function tryToken({ amount, reimburses }: QueuedPayout, { address }: HotAddress, token: string): Promise<Tried> {
      const problem = await port.payeeProblem(address, evmAddressOf(script));
      if (problem !== null) return problem.isPayee ? { refused: problem.what } : { waits: problem.what };
      // of a reimbursement the whole is charged, whatever it uses
      const call = { ...callOf(token, script, amount), from: address, asksAll: reimburses === null };
      return limited(await port.gasOf(call), call);
    }
  }

  /** A contract may take little and not much, and something else in its block than now: the service pays the gas of what it does not take. */
  async function tryEther(payout: QueuedPayout, { hot, fees }: Pick<Offered, 'hot' | 'fees'>): Promise<Tried> {
    const call = { ...callOf(null, payout.script.toString('hex'), payout.amount), from: hot.address };
    // what its fee leaves of a reimbursement is known once its gas is
    const least = payout.reimburses === null ? payout.amount : minus(payout.amount, payout.feeMax);
    const asked = await port.gasOf({ ...call, value: least });
    if ('refused' in asked && asked.lacksFunds) return { waits: `our address ${hot.address} has too little ${currency}` };
    const first = limited(asked, call);
    const isContract = (await port.isContract(call.to)) || ('gas' in first && first.gas > GAS.plain);
    if (!isContract || !('gas' in first)) return first;
    const before = await contractPayees(ctx.db, payout.id);
    if (before === 'under_way')
      return {
        waits: `a merchant has one reimbursement to a contract at a time on its way, and ${payout.id} is another`,
        isBehind: true,
      };
    if (before === 'reverted')
      return {
        refused: `the last one to a contract reverted, and gas was lost: "bursar payout approve ${payout.id}" tries this one`,
      };
    const value = etherFor(payout, first.gas, fees);
    const whole = value === 0n ? first : await port.gasOf({ ...call, value, gas: first.gas });
    return 'gas' in whole ? first : whole;
  }

  return {
    next,
    wait() {
      againMs = clock.now() + LATER_MS;
    },
  };
}

type Tried = { readonly gas: number } | { readonly refused: string } | { readonly waits: string; readonly isBehind?: true };

/** The most gas that a call is given; with less than it uses it would fail for certain, and the service would pay for that. */
function limited(asked: { readonly gas: number } | { readonly refused: string }, { input }: { readonly input: string }): Tried {
  if (!('gas' in asked)) return asked;
  if (asked.gas > GAS.most) return { refused: `it would use ${asked.gas} gas, and ${GAS.most} is the most` };
  return { gas: gasLimit(asked.gas, input) };
}
