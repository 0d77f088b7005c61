// A payout on a chain, from its request to its hold. Requests of one merchant that arrive together share a database transaction, in which each
// is decided about as if it came alone. Nothing outside is called while it is open.
import type { CurrencyCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { formatMinor, minus, plus } from '../../core/money.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { holdEntry } from '../../core/payouts/postings.ts';
import type { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkMinimum, payoutAmount } from '../../core/payouts/validation.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockBalances } from '../../store/ledger/ledger.ts';
import type { RequestedPayout } from '../../store/payouts/payouts.ts';
import { type RequestFacts, readRequestFacts, type ScriptOwner, type UnfinalCredit } from '../../store/payouts/request-facts.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { guardsOf, type PayoutGuards } from '../merchants/settings.ts';
import { unfinalCredit, whyHeld } from './held-reasons.ts';
import {
  type PayoutRequest,
  type PayoutRow,
  type PayoutToTake,
  refuseOwnScript,
  refuseUnlisted,
  takePayouts,
} from './request.ts';
import { insufficientBalance, largestAmount } from './sufficient-balance.ts';

/** What differs between the methods that pay on a chain. */
type OnChain<Method extends 'bitcoin' | 'usdt'> = {
  readonly method: Method;
  readonly unit: (typeof PAYOUT_UNITS)[Method];
  /** The transaction of another merchant here that is paid by an entry; null: the chain pays. */
  readonly internalTo: (sql: Sql, owner: ScriptOwner, asked: Asked) => Promise<string | null>;
  /** The most that the network may take for an amount, in the method's unit. @throws Refusal currency_unavailable */
  readonly highestFee: (sql: Sql, facts: RequestFacts, amount: bigint) => Promise<bigint>;
};
type Asked = PayoutRequest & { readonly script: Uint8Array };
type Rail = OnChain<'bitcoin' | 'usdt'>;

/** What is known once for all requests of a transaction. */
type Known = {
  readonly rail: Rail;
  readonly facts: RequestFacts;
  readonly guards: PayoutGuards;
  /** Absent: what leaves before credits are final has no limit. */
  readonly unfinal: readonly UnfinalCredit[] | null;
  readonly nowMs: number;
};
/** What the requests before left, in minor units: what is available (the balance is locked), and what those of them that wait hold of it. */
type Left = { readonly available: bigint; readonly waiting: bigint };

/**
 * Takes a payout on a chain with its hold, or refuses it and leaves nothing behind. In this order: whose address it is, the allow-list, the
 * minimum, the fee, the balance.
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, currency_unavailable, insufficient_balance
 */
export async function takeOnChain<Method extends 'bitcoin' | 'usdt'>(
  ctx: Context,
  request: PayoutRequest,
  rail: OnChain<Method>,
): Promise<PayoutRow> {
  const asked: Asked = { ...request, script: ctx.ports.destinations.outputScript(rail.unit.code, request.destination) };
  const takeAll = (all: readonly Asked[]) => takeTogether(ctx, all, rail);
  const taken =
    ctx.batchOfKey === undefined
      ? (await takeAll([asked]))[0]
      : await ctx.batchOfKey(`payouts ${request.merchantId} ${rail.method}`, asked, takeAll);
  if (taken === undefined || taken instanceof Refusal) throw taken;
  return taken;
}

/** Decides about a merchant's requests one after the other: what one holds, the next does not find in the balance. */
function takeTogether(ctx: Context, all: readonly Asked[], rail: Rail): Promise<readonly (PayoutRow | Refusal)[]> {
  const { merchantId } = all[0] as Asked;
  const currency: CurrencyCode = rail.unit.code;
  async function decideAll(sql: Sql): Promise<readonly (PayoutRow | Refusal)[]> {
    const nowMs = ctx.ports.clock.now();
    const scripts = all.map(({ script }) => script);
    const { owners, ...facts } = await readRequestFacts(sql, ctx.ports.seals, { merchantId, scripts, currency, nowMs });
    const guards = guardsOf(ctx.ports, merchantId, facts.settings);
    const payees = await eachOrRefusal(all, async (asked, n) => ({
      internalTo: await payeeOf(sql, asked, { rail, guards, owner: owners[n] as ScriptOwner }),
    }));
    if (payees.every((payee) => payee instanceof Refusal)) return payees;

    const [balances, unfinal] = await Promise.all([
      lockBalances(sql, merchantId, [currency]),
      unfinalCredit(ctx, sql, { id: null, merchantId }),
    ]);
    const available = balances.get(currency)?.available ?? 0n;
    const known: Known = { rail, facts, guards, nowMs, unfinal };
    let left: Left = { available, waiting: 0n };
    const decided = await eachOrRefusal(all, async (asked, n) => {
      const payee = payees[n];
      if (payee === undefined || payee instanceof Refusal) throw payee;
      const taken = await decide(ctx, sql, { ...asked, ...payee }, { known, left });
      left = leftAfter(left, taken);
      return taken;
    });
    const made = await takePayouts(
      ctx,
      sql,
      decided.filter((one): one is PayoutToTake => !(one instanceof Refusal)),
    );
    let taken = 0;
    return decided.map((one) => (one instanceof Refusal ? one : (made[taken++] as PayoutRow)));
  }
  return ctx.db.transaction(decideAll, { readsFirst: true });
}

/** In their order, one at a time. */
async function eachOrRefusal<I, O>(
  items: readonly I[],
  work: (item: I, index: number) => Promise<O>,
): Promise<readonly (O | Refusal)[]> {
  const results: (O | Refusal)[] = [];
  for (const [index, item] of items.entries()) {
    try {
      results.push(await work(item, index));
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      results.push(error);
    }
  }
  return results;
}

/** The transaction here that a request pays by an entry; null: the chain pays. Refuses what needs no look at the balance. */
async function payeeOf(
  sql: Sql,
  asked: Asked,
  { rail, guards, owner }: { readonly rail: Rail; readonly guards: PayoutGuards; readonly owner: ScriptOwner },
): Promise<string | null> {
  const internalTo = await rail.internalTo(sql, owner, asked);
  if (internalTo === null) refuseOwnScript(owner, asked.merchantId);
  refuseUnlisted(guards.allowed, asked.destination);
  checkMinimum(rail.method, asked.amount, 'amount');
  return internalTo;
}

/** The payout of a request with what it holds, of what the requests before left. */
async function decide(
  ctx: Context,
  sql: Sql,
  asked: Asked & { readonly internalTo: string | null },
  { known, left: { available, waiting } }: { readonly known: Known; readonly left: Left },
): Promise<PayoutToTake> {
  const { rail, facts, guards, nowMs, unfinal } = known;
  const { method, unit } = rail;
  const { merchantId, destination, script, internalTo } = asked;
  const currency: CurrencyCode = unit.code;
  const sent = asked.amount === 'all' ? null : payoutAmount(method, asked.amount, 'amount');
  const feeMax = internalTo === null ? await rail.highestFee(sql, facts, sent ?? available) : 0n;
  const amount = sent ?? largestAmount(unit, available, feeMax, asked.automatic?.leave ?? 0n);
  const left = minus(available, plus(amount, feeMax));
  if (left < 0n) throw insufficientBalance(unit, available, feeMax);

  const usdMinor = facts.rate === null ? null : usdForCryptoUp(amount, currency, facts.rate);
  const needsApproval = isAboveLimit(usdMinor, guards.approvalAbove);
  const held = { id: null, merchantId, currency, usdMinor, needsApproval, isApproved: false };
  const heldReason = await whyHeld(ctx, sql, held, { ...facts, guards, left: plus(left, waiting), unfinal });
  const payout: RequestedPayout = {
    id: sortableId('payout_', nowMs, ctx.ports.rng.bytes(10)),
    merchantId,
    method,
    amountText: sent === null ? formatMinor(amount, unit.decimals) : asked.amount,
    currency,
    amount,
    feeMax,
    destination,
    script,
    source: null,
    fee: null,
    usdMinor,
    needsApproval,
    automatic: asked.automatic !== undefined,
    internalTo,
    createdAtMs: nowMs,
  };
  const hold = holdEntry({ ...payout, currency, reimburses: null });
  return { payout, heldReason, destination: Buffer.from(script).toString('hex'), hold };
}

function leftAfter({ available, waiting }: Left, { payout, heldReason }: PayoutToTake): Left {
  const holds = plus(payout.amount, payout.feeMax);
  return { available: minus(available, holds), waiting: heldReason === null ? waiting : plus(waiting, holds) };
}
