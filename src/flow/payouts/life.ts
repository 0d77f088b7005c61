// What merchants and operators do with a payout: request, cancel, approve, resolve. Each is one database transaction in which the payout,
// its entries and its event are written together; nothing outside is called while it is open.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { UtxoCode } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import type { Entry } from '../../core/judge/case.ts';
import { formatMinor, minus, plus } from '../../core/money.ts';
import { achReleaseEntry } from '../../core/payouts/ach-postings.ts';
import { isAboveLimit } from '../../core/payouts/held-reason.ts';
import { approvalBytes, intentBytes } from '../../core/payouts/intent.ts';
import { inputsFor, mostInputs, reservedFee } from '../../core/payouts/outgoing-fees.ts';
import { holdEntry, releaseEntry } from '../../core/payouts/postings.ts';
import type { HeldReason } from '../../core/payouts/states.ts';
import { PAYOUT_UNITS } from '../../core/payouts/units.ts';
import { checkMinimum, payoutAmount } from '../../core/payouts/validation.ts';
import { usdForCryptoUp } from '../../core/rate.ts';
import { Refusal } from '../../core/refusal.ts';
import { lockBalances, postEntries } from '../../store/ledger/ledger.ts';
import { setEnded } from '../../store/lightning/payment-rows.ts';
import { oneAsBooked } from '../../store/payouts/booked-amounts.ts';
import {
  LARGEST,
  largestOutputs,
  type RequestFacts,
  readRequestFacts,
  readScriptOwner,
  type ScriptOwner,
} from '../../store/payouts/hold-facts.ts';
import { dropOperatorHold, lacksApproval } from '../../store/payouts/operator-holds.ts';
import {
  insertPayout,
  lockPayout,
  movePayout,
  type PayoutRow,
  paidFrom,
  type RequestedPayout,
  setApproved,
  wakeHeldJob,
} from '../../store/payouts/payouts.ts';
import { notComparedSince } from '../../store/payouts/unknown-movements.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import { isDerivedHere } from '../addresses/derived-here.ts';
import type { Context } from '../context.ts';
import { guardsOf } from '../merchants/settings.ts';
import { allOf, notCovered } from './covered.ts';
import { reconsiderLocked, whyHeld } from './holds.ts';

const { code: CURRENCY, decimals: DECIMALS } = PAYOUT_UNITS.bitcoin;

export type PayoutRequest = {
  readonly merchantId: bigint;
  /** The only method there is a rail for. */
  readonly method: 'bitcoin';
  /** BTC, its form was checked before; or `all`. */
  readonly amount: string;
  /** A valid address of the network. */
  readonly destination: string;
  /** Requested by the merchant's settings: `all` leaves so many minor units. Absent for a call of the merchant. */
  readonly automatic?: { readonly leave: bigint };
};

/**
 * Takes a payout with its hold, or refuses it and leaves nothing behind. In this order: whose address it is, the allow-list, the
 * minimum, the fee, the balance.
 * @throws Refusal invalid_destination, destination_not_allowed, payout_below_minimum, currency_unavailable, insufficient_balance
 */
export async function requestPayout(ctx: Context, request: PayoutRequest): Promise<PayoutRow> {
  const script = ctx.ports.destinations.outputScript(CURRENCY, request.destination);
  return ctx.db.transaction(async (sql) => {
    const { merchantId, destination } = request;
    const nowMs = ctx.ports.clock.now();
    const facts = await readRequestFacts(sql, ctx.ports.seals, { merchantId, script, currency: CURRENCY, nowMs });
    const guards = guardsOf(ctx.ports, merchantId, facts.settings);
    const internalTo =
      request.automatic === undefined ? await transactionHere(ctx, sql, facts.owner, { merchantId, script }) : null;
    if (internalTo === null) refuseOwnScript(facts.owner, merchantId);
    refuseUnlisted(guards.allowed, destination);
    checkMinimum(request.method, request.amount, 'amount');
    const sent = request.amount === 'all' ? null : payoutAmount(request.method, request.amount, 'amount');
    const available = (await lockBalances(sql, merchantId, [CURRENCY])).get(CURRENCY)?.available ?? 0n;
    const feeMax = internalTo === null ? await highestFee(sql, facts, sent ?? available) : 0n;
    const amount = sent ?? allOf(PAYOUT_UNITS.bitcoin, available, feeMax, request.automatic?.leave ?? 0n);
    const left = minus(available, plus(amount, feeMax));
    if (left < 0n) throw notCovered(PAYOUT_UNITS.bitcoin, available, feeMax);

    const usdMinor = facts.rate === null ? null : usdForCryptoUp(amount, CURRENCY, facts.rate);
    const needsApproval = isAboveLimit(usdMinor, guards.approvalAbove);
    const asked = { id: null, merchantId, currency: CURRENCY, usdMinor, needsApproval, isApproved: false };
    const heldReason = await whyHeld(ctx, sql, asked, { ...facts, guards, left });
    const payout: RequestedPayout = {
      id: sortableId('payout_', nowMs, ctx.ports.rng.bytes(10)),
      merchantId,
      method: request.method,
      amountText: sent === null ? formatMinor(amount, DECIMALS) : request.amount,
      currency: CURRENCY,
      amount,
      feeMax,
      destination,
      script,
      source: null,
      fee: null,
      usdMinor,
      needsApproval,
      automatic: request.automatic !== undefined,
      internalTo,
      createdAtMs: nowMs,
    };
    return takePayout(ctx, sql, payout, {
      heldReason,
      destination: Buffer.from(script).toString('hex'),
      hold: holdEntry({ ...payout, currency: CURRENCY, reimburses: null }),
    });
  });
}

/**
 * Writes a payout that was asked for, with its signed intent and its hold.
 * @param taken destination: what the intent names: the output script (hex), the invoice, or the bank account as it was sent
 */
export async function takePayout(
  ctx: Context,
  sql: Sql,
  payout: RequestedPayout,
  taken: { readonly heldReason: HeldReason | null; readonly destination: string; readonly hold: Entry },
): Promise<PayoutRow> {
  const { heldReason, destination, hold } = taken;
  const made = await insertPayout(sql, payout, { heldReason, intent: signedIntent(ctx, payout, destination) });
  await postEntries(sql, [{ entry: hold, transactionId: null, payoutId: payout.id, atMs: payout.createdAtMs }]);
  return made;
}

function signedIntent(
  ctx: Context,
  payout: RequestedPayout,
  destination: string,
): ReturnType<Context['ports']['intentKey']['sign']> {
  return ctx.ports.intentKey.sign(
    intentBytes({
      network: ctx.network,
      payoutId: payout.id,
      merchantId: payout.merchantId,
      method: payout.method,
      currency: payout.currency,
      amount: payout.amount,
      feeMax: payout.feeMax,
      destination,
      createdAtMs: payout.createdAtMs,
      reimburses: null,
      internalTo: payout.internalTo ?? null,
      needsApproval: payout.needsApproval,
    }),
  );
}

/** @throws Refusal invalid_destination for an address of this installation */
export async function refuseOurAddress(sql: Sql, script: Uint8Array, merchantId: bigint): Promise<void> {
  refuseOwnScript(await readScriptOwner(sql, script), merchantId);
}

/**
 * Refuses (400 `invalid_destination`) an address of this installation: its own outputs, the merchant's own transactions, and any other
 * merchant's, where no entry in the ledger can take the payout's place.
 */
export function refuseOwnScript(owner: ScriptOwner, merchantId: bigint): void {
  const refused = (message: string) => new Refusal('invalid_destination', { param: 'destination', message });
  if (owner.isOurOwn || owner.merchantId === merchantId) throw refused('destination is an address of your own on this server.');
  if (owner.merchantId !== null)
    throw refused(
      'destination is an address of another merchant on this server, which only a payout in its own currency that is requested once can pay.',
    );
}

/**
 * The transaction of another merchant that an address belongs to; null where it is none, another currency is asked for there, or no key of ours
 * gives the address: then somebody has written it into the database.
 */
async function transactionHere(
  ctx: Context,
  sql: Sql,
  owner: ScriptOwner,
  { merchantId, script }: { readonly merchantId: bigint; readonly script: Uint8Array },
): Promise<string | null> {
  const { transactionId, isOurOwn, addressIndex: index } = owner;
  if (transactionId === null || isOurOwn || owner.merchantId === merchantId || owner.currency !== CURRENCY) return null;
  return (await isDerivedHere(ctx, sql, CURRENCY, { script, index })) ? transactionId : null;
}

/** @throws Refusal destination_not_allowed */
export function refuseUnlisted(allowed: ReadonlySet<string> | null, destination: string): void {
  if (allowed !== null && ![...allowed].some((one) => isSameDestination(one, destination)))
    throw new Refusal('destination_not_allowed', { param: 'destination' });
}

/** Bech32 and cash addresses are the same in capitals (BIP173), Ethereum's in any case; no other address is without small letters. */
function isSameDestination(one: string, other: string): boolean {
  const isAnyCase = (text: string): boolean => text === text.toUpperCase() || /^0x[0-9a-f]{40}$/i.test(text);
  const inSmallLetters = (text: string): string => (isAnyCase(text) ? text.toLowerCase() : text);
  return inSmallLetters(one) === inSmallLetters(other);
}

/** The most that paying an amount may cost with the outputs that can be spent now. */
async function highestFee(sql: Sql, { feeRate, hasKey, largest }: RequestFacts, amount: bigint): Promise<bigint> {
  const unavailable = (message: string) => new Refusal('currency_unavailable', { message });
  if (!hasKey) throw unavailable('The signer has no key in use for Bitcoin: nothing can be paid out.');
  if (feeRate === null) throw unavailable('No Bitcoin node has reported yet what a transaction costs.');
  return reservedFee(CURRENCY, feeRate, await inputsOf(sql, CURRENCY, amount, largest));
}

/**
 * How many of our outputs an amount needs at least.
 * @param largest the first of them, as they were read already
 */
export async function inputsOf(
  sql: Sql,
  currency: UtxoCode,
  amount: bigint,
  largest: readonly bigint[] | null = null,
): Promise<number> {
  const first = largest ?? (await largestOutputs(sql, currency, LARGEST));
  const count = inputsFor(amount, first);
  if (count <= first.length || first.length < LARGEST) return count;
  return inputsFor(amount, await largestOutputs(sql, currency, mostInputs(currency)));
}

/**
 * Cancels a payout that waits: it is failed with the error `cancelled`, its hold repays what is owed and enters available. A second cancel
 * gets the same answer. Refused too while chain or bank must be compared first (comparison-wait.ts waits for that).
 * @throws Refusal payout_not_found, payout_not_cancellable
 */
export async function cancelPayout(
  ctx: Context,
  of: { readonly merchantId: bigint; readonly payoutId: string },
): Promise<PayoutRow> {
  return ctx.db.transaction(async (sql) => {
    const payout = await lockPayout(sql, of.payoutId, { wait: true });
    if (payout === null || payout.merchantId !== of.merchantId) throw new Refusal('payout_not_found', { param: 'payout_id' });
    if (payout.status === 'failed' && payout.error === CANCELLED) return payout;
    if (payout.status !== 'pending') {
      const message = `The payout is ${payout.status}; only a pending one can be cancelled.`;
      throw new Refusal('payout_not_cancellable', { message, param: 'payout_id' });
    }
    const booked = await oneAsBooked(sql, payout);
    const { merchantId, source } = booked;
    const currency = paidFrom(booked);
    // what a forgotten batch paid is found on the chain, a forgotten bank file in our folder
    if ((await notComparedSince(sql)).has(comparedAs(payout, currency))) {
      const message = 'The server was started again and compares what it knows with chain and bank first; try again in a minute.';
      throw new Refusal('payout_not_cancellable', { message, param: 'payout_id', passes: true });
    }
    const balances = await lockBalances(sql, merchantId, [currency], { heldDollars: source !== null });
    const owed = balances.get(currency)?.receivable ?? 0n;
    const atMs = ctx.ports.clock.now();
    const entry = source === null ? releaseEntry({ ...booked, currency }, owed) : achReleaseEntry({ ...booked, source }, owed);
    await postEntries(sql, [{ entry, transactionId: null, payoutId: payout.id, atMs }]);
    const givenBack = source === null ? {} : { givenBack: source.amount };
    const after = await movePayout(sql, payout, 'cancelled', { error: CANCELLED, atMs, ...givenBack });
    await setEnded(sql, payout.id, 'failed');
    // what it repaid may let others go on
    await wakeHeldJob(sql);
    return after;
  });
}
/** What is compared before a payout may be cancelled: where a forgotten payment of it would be found. */
function comparedAs({ source, paymentHash }: PayoutRow, currency: string): string {
  if (source !== null) return 'USD';
  return paymentHash == null ? currency : LIGHTNING.code;
}

/** The error of a payout that its merchant has cancelled. */
export const CANCELLED = 'cancelled';

/**
 * An operator approves a payout that waits for it; it goes on at once when nothing else holds it. Approving twice changes nothing.
 * @throws Refusal payout_not_found; not_resolvable when it does not wait for approval
 */
export async function approvePayout(ctx: Context, input: { readonly payoutId: string; readonly by: string }): Promise<PayoutRow> {
  return ctx.db.transaction(async (sql) => {
    const payout = await lockPayout(sql, input.payoutId, { wait: true });
    if (payout === null) throw new Refusal('payout_not_found', { param: 'payout_id' });
    const waitsForIt = payout.status === 'pending' && payout.heldReason === 'approval';
    // what a restored database had forgotten was approved is on its way already, and whoever sends it again asks for the signature
    const isUnderWay = payout.status === 'processing' && (await lacksApproval(sql, payout.id));
    if (payout.approvedAtMs !== null && !waitsForIt && !isUnderWay) return payout;
    if (!isUnderWay && (payout.status !== 'pending' || !(payout.needsApproval || payout.heldReason === 'approval'))) {
      const waits = payout.heldReason === null ? '' : ` and waits for ${payout.heldReason}`;
      throw new Refusal('not_resolvable', { message: `The payout is ${payout.status}${waits}: it does not wait for approval.` });
    }
    // what the signer asks a person for, it needs the signature of: it believes nothing that stands in the database
    const isAsked = payout.needsApproval || payout.reimburses !== null;
    const approval = isAsked ? ctx.ports.intentKey.sign(approvalBytes(ctx.network, payout.id)) : null;
    await setApproved(sql, payout.id, { by: input.by, approval, atMs: ctx.ports.clock.now() });
    // one that the signer has refused is tried again at once
    if (payout.batchId !== null && !isUnderWay) await dropOperatorHold(sql, payout.id);
    if (!isUnderWay) await reconsiderLocked(ctx, sql, { ...payout, batchId: null, approvedAtMs: ctx.ports.clock.now() });
    return (await lockPayout(sql, payout.id, { wait: true })) as PayoutRow;
  });
}
