// Puts payouts that wait into a batch, with the outputs that it spends, in one database transaction; and prices a batch's transactions. What
// happens to a batch afterwards is in progress.ts.
import { finalDepth } from '../../core/confirmations.ts';
import { SCRIPT_FORMS } from '../../core/currencies/utxo.ts';
import { type UtxoCode, utxoRow } from '../../core/currency.ts';
import { sortableId } from '../../core/ids.ts';
import { minus, sum } from '../../core/money.ts';
import { completed, type Selection, type SelectionWanted, selections } from '../../core/payouts/coin-selection.ts';
import { boundedRate, inputKind, mostInputs, shares } from '../../core/payouts/outgoing-fees.ts';
import type { TransactionToSign } from '../../core/signer-wire.ts';
import { type SpendingKey, spendingKey } from '../../store/chain/xpubs.ts';
import { openBreakers } from '../../store/ledger/breakers.ts';
import { mustAskSigner } from '../../store/payouts/after-restore/emptied-batches.ts';
import type { Batch } from '../../store/payouts/batch-rows.ts';
import {
  insertBatch,
  lockOutputs,
  lockQueued,
  type QueuedPayout,
  type SpendableOutput,
  spendableOutputs,
} from '../../store/payouts/batches.ts';
import { nextOwnIndex } from '../../store/payouts/own-outputs.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';
import { holdAlike } from './after-restore/lost-outputs.ts';
import { type Choosing, MOST_OUTPUTS, type NotChosen, needTooMany, ownership, waitInVain, waitingFor } from './unpayable.ts';
import { holdForOperator } from './waiting-for-operator.ts';

/** Payouts that one transaction pays at most. */
export const MOST_PAYEES = 200;
/** Payouts that are looked at for one batch: those that cannot be paid now do not hide the ones behind. */
const MOST_QUEUED = 1_000;

export type Formed = (
  | { readonly outcome: 'formed'; readonly batchId: string }
  /** Nothing waits, or payouts are stopped. */
  | { readonly outcome: 'nothing' }
  /** They wait for outputs at final depth, or for a lower fee. */
  | { readonly outcome: 'no_liquidity' | 'fee_too_high' | 'no_key' }
) & {
  /** Payouts that wait for the operator from now on, because they need too many outputs. */
  readonly tooLarge?: readonly string[];
  /** Payouts that wait for him from now on, because something was lost to where they go. */
  readonly alike?: readonly string[];
};

/**
 * Puts queued payouts of a currency into a batch and reserves its outputs. From here on its payouts are committed: nothing is reserved for a
 * merchant that owes something, and a receivable that comes later no longer stops them.
 * @param estimate minor units per 1,000 virtual bytes
 * @param most payees at most: fewer after a refusal, to find the payout that is refused
 * @param which of the queued ones; absent: all
 */
export async function formBatch(
  ctx: Context,
  currency: UtxoCode,
  estimate: bigint,
  most = MOST_PAYEES,
  which: Parameters<typeof lockQueued>[3] = {},
): Promise<Formed> {
  const key = await spendingKey(ctx.db, currency);
  if (key === null) return { outcome: 'no_key' };
  const nowMs = ctx.ports.clock.now();
  const id = sortableId('batch_', nowMs, ctx.ports.rng.bytes(10));
  return ctx.db.transaction(async (sql): Promise<Formed> => {
    if ((await openBreakers(sql)).length > 0) return { outcome: 'nothing' };
    await lockOutputs(sql, currency);
    if (await mustAskSigner(sql, currency)) return { outcome: 'nothing' };
    const locked = await lockQueued(sql, currency, MOST_QUEUED, which);
    const alike = await holdAlike(ctx, sql, currency, locked);
    const all = locked.filter((payout) => !alike.includes(payout.id));
    const toldAlike = alike.length === 0 ? {} : { alike };
    if (all.length === 0) return { outcome: 'nothing', ...toldAlike };
    const ratePerKvb = boundedRate(currency, estimate);
    const choosing = { currency, outputs: await ownOutputs(ctx, sql, key), ratePerKvb, most };
    const tooLarge = needTooMany(choosing, all);
    for (const { id: payoutId } of tooLarge) await holdForOperator(ctx, sql, { payoutId, why: TOO_MANY_OUTPUTS });
    const told = { ...toldAlike, ...(tooLarge.length === 0 ? {} : { tooLarge: tooLarge.map((payout) => payout.id) }) };
    const queued = all.filter((payout) => !tooLarge.includes(payout));
    if (queued.length === 0) return { outcome: 'nothing', ...told };
    const tooDear: QueuedPayout[] = [];
    const chosen = chooseAmong(choosing, queued, tooDear);
    for (const { id: payoutId } of tooDear) await holdForOperator(ctx, sql, { payoutId, why: FEE_TOO_HIGH });
    const waiting = waitingFor(choosing, queued, typeof chosen === 'string' ? chosen : chosen.payouts);
    for (const never of await waitInVain(ctx, sql, { key, waiting, ratePerKvb })) await holdForOperator(ctx, sql, never);
    if (typeof chosen === 'string') return { outcome: chosen, ...told };
    const change = chosen.selection.change === 0n ? null : await changeAddress(ctx, sql, key);
    await insertBatch(sql, {
      id,
      currency,
      feeRate: ratePerKvb,
      accountId: key.id,
      change,
      inputs: chosen.selection.inputs as readonly SpendableOutput[],
      payoutIds: chosen.payouts.map((payout) => payout.id),
      atMs: nowMs,
    });
    return { outcome: 'formed', batchId: id, ...told };
  });
}

const FEE_TOO_HIGH =
  'its network fee would be above what is held for it: it waits for a lower one, or can be cancelled and requested again';
export const TOO_MANY_OUTPUTS = 'it needs more outputs than one transaction may spend';

/** Why no batch was formed, as an operator must know it; null = nothing is wrong. */
export const WAITING_FOR: Readonly<Record<Formed['outcome'] | 'no_fee', string | null>> = {
  formed: null,
  nothing: null,
  no_fee: 'no node has told what a transaction costs',
  no_liquidity: 'our outputs at final depth do not suffice',
  fee_too_high: "today's network fee is above what is held for them",
  no_key: 'the signer has no key in use for this currency',
};

async function changeAddress(ctx: Context, sql: Sql, key: SpendingKey): Promise<{ index: number; script: Uint8Array }> {
  const index = await nextOwnIndex(sql, key.id);
  return { index, script: ctx.ports.addresses.ownOf(key.currency, key.xpub).derive(index).script };
}

/** The outputs that may be spent now. */
async function ownOutputs(ctx: Context, sql: Sql, key: SpendingKey): Promise<readonly SpendableOutput[]> {
  const found = await spendableOutputs(sql, key.currency, {
    finalDepth: finalDepth(key.currency).depth,
    maturity: utxoRow(key.currency).utxo.coinbaseMaturity,
    limit: MOST_OUTPUTS,
  });
  return found.filter(ownership(ctx, key));
}

type Chosen = { readonly payouts: readonly QueuedPayout[]; readonly selection: Selection };

/**
 * Payouts and reimbursements go in batches of their own: of payouts the change pays the fee, of reimbursements the payees do. The kind of the
 * oldest is tried first; where it has to wait, the other kind does not wait for it.
 * @param tooDear receives those whose fee is above what they can carry
 */
function chooseAmong(choosing: Choosing, queued: readonly QueuedPayout[], tooDear: QueuedPayout[]): Chosen | NotChosen {
  const isFirst = (payout: QueuedPayout): boolean => (payout.reimburses === null) === (queued[0]?.reimburses === null);
  const first = chooseFor(choosing, queued.filter(isFirst), tooDear);
  if (typeof first !== 'string') return first;
  const others = queued.filter((payout) => !isFirst(payout));
  const second = others.length === 0 ? first : chooseFor(choosing, others, tooDear);
  return typeof second === 'string' ? first : second;
}

/**
 * As many of the oldest as our outputs can pay, without those whose share of the fee would be above what they can carry. Who cannot be paid even
 * alone does not stop those behind.
 */
function chooseFor(choosing: Choosing, queued: readonly QueuedPayout[], tooDear: QueuedPayout[]): Chosen | NotChosen {
  let outcome: NotChosen = 'no_liquidity';
  const most = sum(choosing.outputs.map((output) => output.amount));
  for (const [from, oldest] of queued.entries()) {
    // nothing is tried for those that all outputs together do not pay
    if (oldest.amount > most) continue;
    const alone = together(choosing, [oldest]);
    if (typeof alone === 'string') {
      if (alone !== 'fee_too_high') continue;
      tooDear.push(oldest);
      outcome = alone;
      continue;
    }
    for (let count = Math.min(queued.length - from, choosing.most); count > 1; count = Math.floor(count / 2)) {
      const chosen = together(choosing, queued.slice(from, from + count));
      if (typeof chosen !== 'string') return chosen;
    }
    return alone;
  }
  return outcome;
}

/**
 * These in one transaction, without those whose share of its fee would be above what they can carry even where the fewest outputs are spent.
 */
function together({ currency, outputs, ratePerKvb }: Choosing, wanted: readonly QueuedPayout[]): Chosen | NotChosen {
  for (let payouts = wanted; payouts.length > 0; ) {
    const found = selections(outputs, wantedFor(currency, payouts, ratePerKvb));
    const able = found.map((selection) => {
      const parts = shares(selection.fee, payouts.length);
      return payouts.filter((payout, at) => (parts[at] as bigint) <= payout.feeMax);
    });
    const first = able.findIndex((some) => some.length === payouts.length);
    const selection = found[first];
    if (selection !== undefined) return { payouts, selection };
    if (found.length === 0) return 'no_liquidity';
    payouts = able.at(-1) ?? [];
  }
  return 'fee_too_high';
}

/** Outputs are gathered while fees are at most this many times the lowest. */
const CHEAP_TIMES = 5n;

type Payee = Pick<QueuedPayout, 'amount' | 'script' | 'reimburses'>;

function wantedFor(currency: UtxoCode, payouts: readonly Payee[], ratePerKvb: bigint): SelectionWanted {
  const { feeRates } = utxoRow(currency).utxo;
  const kind = inputKind(currency);
  const isFeeInside = payouts.some((payout) => payout.reimburses !== null);
  return {
    isFeeInside,
    // a customer does not pay for what is spent along
    gatherUpTo: isFeeInside ? null : feeRates.least * CHEAP_TIMES,
    mostInputs: mostInputs(currency),
    kind,
    amount: sum(payouts.map((payout) => payout.amount)),
    scriptLengths: payouts.map((payout) => payout.script.length),
    changeLength: SCRIPT_FORMS[kind].bytes,
    dust: utxoRow(currency).dustMinor,
    ratePerKvb,
  };
}

/**
 * Fee and change of a batch's next transaction at a rate: the inputs and the payees stay. Null when the inputs do not cover that rate, or a
 * payout's share would be more than is held for it.
 */
export function priced(batch: Batch, ratePerKvb: bigint): Selection | null {
  const found = completed(batch.inputs, wantedFor(batch.currency, batch.payouts, ratePerKvb));
  if (found === null) return null;
  const parts = shares(found.fee, batch.payouts.length);
  return batch.payouts.every((payout, at) => (parts[at] as bigint) <= payout.feeMax) ? found : null;
}

/** What the signer is asked for a batch's transaction. */
export function signingRequest(batch: Batch, number: number, { change, fee }: Selection): TransactionToSign {
  const parts = shares(fee, batch.payouts.length);
  return {
    currency: batch.currency,
    batchId: batch.id,
    number,
    leaseEpoch: batch.leaseEpoch.toString(),
    inputs: batch.inputs.map(({ txid, vout, amount, xpub, chain, index }) => ({
      txid,
      vout,
      amount: amount.toString(),
      xpub,
      chain,
      index,
    })),
    outputs: batch.payouts.map(({ id, script, amount, reimburses }, at) => ({
      payoutId: id,
      script: script.toString('hex'),
      ...(reimburses === null
        ? { amount: amount.toString() }
        : { amount: minus(amount, parts[at] as bigint).toString(), total: amount.toString() }),
    })),
    change: change === 0n || batch.changeIndex === null ? null : { index: batch.changeIndex, amount: change.toString() },
  };
}
