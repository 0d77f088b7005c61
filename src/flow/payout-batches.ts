// Puts payouts that wait into a batch, with the coins that it spends, in one database transaction; and prices a batch's transactions. What
// happens to a batch afterwards is in payout-progress.ts.
import { finalDepth } from '../core/confirmations.ts';
import { type UtxoCode, utxoRow } from '../core/currency.ts';
import { sortableId } from '../core/ids.ts';
import { sum } from '../core/money.ts';
import { completed, type Selection, selectCoins } from '../core/payouts/coin-selection.ts';
import { boundedRate, type InputKind, shares } from '../core/payouts/outgoing-fees.ts';
import type { TransactionToSign } from '../core/signer-wire.ts';
import { type StoredKey, spendingKey } from '../store/chain/xpubs.ts';
import { openBreakers } from '../store/ledger/breakers.ts';
import type { Batch } from '../store/payouts/batch-rows.ts';
import {
  insertBatch,
  lockCoins,
  lockQueued,
  nextOwnIndex,
  type QueuedPayout,
  type SpendableCoin,
  spendableCoins,
} from '../store/payouts/batches.ts';
import type { Sql } from '../store/postgres/connect.ts';
import type { Context } from './context.ts';

/** Payouts that one transaction pays at most. */
const MOST_PAYEES = 200;
/** Coins that are looked at for one batch. */
const MOST_COINS = 400;

export type Formed =
  | { readonly outcome: 'formed'; readonly batchId: string }
  /** Nothing waits, or payouts are stopped. */
  | { readonly outcome: 'nothing' }
  /** They wait for coins at final depth, or for a lower fee. */
  | { readonly outcome: 'no_liquidity' | 'fee_too_high' | 'no_key' };

/**
 * Puts queued payouts of a currency into a batch and reserves its coins. From here on its payouts are committed: nothing is reserved for a
 * merchant that owes something, and a receivable that comes later no longer stops them.
 * @param estimate minor units per 1,000 virtual bytes
 */
export async function formBatch(ctx: Context, currency: UtxoCode, estimate: bigint): Promise<Formed> {
  const key = await spendingKey(ctx.db, currency);
  if (key === null) return { outcome: 'no_key' };
  const nowMs = ctx.ports.clock.now();
  const id = sortableId('batch_', nowMs, ctx.ports.rng.bytes(10));
  return ctx.db.transaction(async (sql): Promise<Formed> => {
    if ((await openBreakers(sql)).length > 0) return { outcome: 'nothing' };
    await lockCoins(sql, currency);
    const queued = await lockQueued(sql, currency, MOST_PAYEES);
    if (queued.length === 0) return { outcome: 'nothing' };
    const coins = await ownCoins(ctx, sql, key);
    const chosen = chooseFor(currency, queued, coins, boundedRate(estimate));
    if (typeof chosen === 'string') return { outcome: chosen };
    const change = chosen.selection.change === 0n ? null : await changeAddress(ctx, sql, key);
    await insertBatch(sql, {
      id,
      currency,
      feeRate: boundedRate(estimate),
      accountId: key.id,
      change,
      inputs: chosen.selection.inputs as readonly SpendableCoin[],
      payoutIds: chosen.payouts.map((payout) => payout.id),
      atMs: nowMs,
    });
    return { outcome: 'formed', batchId: id };
  });
}

async function changeAddress(ctx: Context, sql: Sql, key: StoredKey): Promise<{ index: number; script: Uint8Array }> {
  const index = await nextOwnIndex(sql, key.id);
  return { index, script: ctx.ports.addresses.ownOf(key.currency, key.xpub).derive(index).script };
}

/** The coins that may be spent now. */
async function ownCoins(ctx: Context, sql: Sql, key: StoredKey): Promise<readonly SpendableCoin[]> {
  const found = await spendableCoins(sql, key.currency, {
    finalDepth: finalDepth(key.currency).depth,
    maturity: utxoRow(key.currency).utxo.coinbaseMaturity,
    limit: MOST_COINS,
  });
  return found.filter(ownership(ctx, key));
}

/** Whether a coin's key really is in this account: an address may have been given out with another key. */
export function ownership(
  ctx: Context,
  { currency, xpub }: StoredKey,
): (coin: Pick<SpendableCoin, 'script' | 'chain' | 'index'>) => boolean {
  const derivers = [ctx.ports.addresses.of(currency, xpub), ctx.ports.addresses.ownOf(currency, xpub)] as const;
  return (coin) => coin.script.equals(derivers[coin.chain].derive(coin.index).script);
}

type Chosen = { readonly payouts: readonly QueuedPayout[]; readonly selection: Selection };

/** As many of the oldest payouts as our coins can pay and whose held fee covers their share. */
function chooseFor(
  currency: UtxoCode,
  queued: readonly QueuedPayout[],
  coins: readonly SpendableCoin[],
  ratePerKvb: bigint,
): Chosen | 'no_liquidity' | 'fee_too_high' {
  let outcome: 'no_liquidity' | 'fee_too_high' = 'no_liquidity';
  for (let count = queued.length; count > 0; count = Math.floor(count / 2)) {
    const payouts = queued.slice(0, count);
    const selection = selectCoins(coins, wantedFor(currency, payouts, ratePerKvb));
    if (selection === null) continue;
    const parts = shares(selection.fee, payouts.length);
    if (payouts.every((payout, at) => (parts[at] as bigint) <= payout.feeMax)) return { payouts, selection };
    outcome = 'fee_too_high';
  }
  return outcome;
}

const KINDS: Readonly<Record<'p2wpkh' | 'p2pkh' | 'cashaddr-p2pkh', InputKind>> = {
  p2wpkh: 'p2wpkh',
  p2pkh: 'p2pkh',
  'cashaddr-p2pkh': 'p2pkh',
};
const OUR_SCRIPT_BYTES: Readonly<Record<InputKind, number>> = { p2wpkh: 22, p2pkh: 25 };

function wantedFor(currency: UtxoCode, payouts: readonly { amount: bigint; script: Buffer }[], ratePerKvb: bigint) {
  const kind = KINDS[utxoRow(currency).utxo.addressKind];
  return {
    kind,
    amount: sum(payouts.map((payout) => payout.amount)),
    scriptLengths: payouts.map((payout) => payout.script.length),
    changeLength: OUR_SCRIPT_BYTES[kind],
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

/**
 * What the signer is asked for a batch's transaction.
 * @param change minor units; 0 = no change output
 */
export function signingRequest(batch: Batch, number: number, change: bigint): TransactionToSign {
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
    outputs: batch.payouts.map(({ id, script, amount }) => ({
      payoutId: id,
      script: script.toString('hex'),
      amount: amount.toString(),
    })),
    change: change === 0n || batch.changeIndex === null ? null : { index: batch.changeIndex, amount: change.toString() },
  };
}
