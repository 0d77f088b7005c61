// Payouts that our outputs could not pay however long they waited, and what an operator is told of each.
import type { UtxoCode } from '../../core/currency.ts';
import { minus, plus, sum } from '../../core/money.ts';
import { feeOf, inputKind, mostInputs, virtualBytes, worthSpending } from '../../core/payouts/outgoing-fees.ts';
import type { SpendingKey } from '../../store/chain/xpubs.ts';
import { largestPayments, type QueuedPayout, type SpendableOutput } from '../../store/payouts/batches.ts';
import { chainAssets } from '../../store/payouts/own-outputs.ts';
import type { Sql } from '../../store/postgres/connect.ts';
import type { Context } from '../context.ts';

/** Outputs that are looked at for one batch. */
export const MOST_OUTPUTS = 400;
const NOT_ON_CHAIN =
  'our outputs on the chain are less than it takes, also when all of them are final: what is missing (in Lightning channels, at an address of another currency or of an imported key) must be moved there';
const TOO_SMALL =
  'some of our outputs are worth less than it costs to spend them today, and it needs them: it waits for a lower network fee, or can be cancelled and requested again for less';

export type NotChosen = 'no_liquidity' | 'fee_too_high';
export type Choosing = {
  readonly currency: UtxoCode;
  readonly outputs: readonly SpendableOutput[];
  readonly ratePerKvb: bigint;
  /** Payees at most. */
  readonly most: number;
};

/** Whether an output's key really is in this account: an address may have been given out with another key. */
export function ownership(
  ctx: Context,
  { currency, xpub }: SpendingKey,
): (output: Pick<SpendableOutput, 'script' | 'chain' | 'index'>) => boolean {
  const derivers = [ctx.ports.addresses.of(currency, xpub), ctx.ports.addresses.ownOf(currency, xpub)] as const;
  return (output) => output.script.equals(derivers[output.chain].derive(output.index).script);
}

/** Those that need more outputs than a transaction may spend: more than the largest make together. */
export function needTooMany({ currency, outputs }: Choosing, queued: readonly QueuedPayout[]): readonly QueuedPayout[] {
  const most = mostInputs(currency);
  if (outputs.length <= most) return [];
  const largest = outputs.toSorted((a, b) => (a.amount > b.amount ? -1 : 1)).slice(0, most);
  const together = sum(largest.map((output) => output.amount));
  return queued.filter((payout) => payout.amount > together);
}

/**
 * Those that wait for more outputs: all where none could be chosen, otherwise those that all of now together do not pay.
 * @param chosen the payouts of the batch, or why there is none
 */
export function waitingFor(
  { currency, outputs, ratePerKvb }: Choosing,
  queued: readonly QueuedPayout[],
  chosen: readonly QueuedPayout[] | NotChosen,
): readonly QueuedPayout[] {
  if (typeof chosen === 'string') return chosen === 'no_liquidity' ? queued : [];
  const useful = outputs.filter(({ amount }) => amount > worthSpending(inputKind(currency), ratePerKvb));
  const most = sum(useful.map((output) => output.amount));
  return queued.filter((payout) => payout.amount >= most && !chosen.includes(payout));
}

type Waiting = { readonly key: SpendingKey; readonly waiting: readonly QueuedPayout[]; readonly ratePerKvb: bigint };

/**
 * Those that no waiting for blocks helps, and why: they, or their fee, are more than all on the chain whose keys are in the signer's account, or
 * than what of it is worth spending at this fee.
 */
export async function waitInVain(
  ctx: Context,
  sql: Sql,
  { key, waiting, ratePerKvb }: Waiting,
): Promise<readonly { readonly payoutId: string; readonly why: string }[]> {
  const { currency } = key;
  if (waiting.length === 0) return [];
  const isOurs = ownership(ctx, key);
  const payments = await largestPayments(sql, currency, MOST_OUTPUTS);
  const others = payments.filter((output) => output.isElsewhere || !isOurs(output));
  const there = minus(await chainAssets(sql, currency), sum(others.map(({ amount }) => amount)));
  const kind = inputKind(currency);
  const least = worthSpending(kind, ratePerKvb);
  const small = payments.filter((output) => output.amount <= least && !others.includes(output));
  const worthIt = minus(there, sum(small.map(({ amount }) => amount)));
  return waiting.flatMap(({ id: payoutId, amount, script, reimburses }) => {
    const fee = feeOf(virtualBytes([kind], [script.length]), ratePerKvb);
    const takes = reimburses === null ? plus(amount, fee) : amount;
    if (takes > there) return [{ payoutId, why: NOT_ON_CHAIN }];
    return takes > worthIt ? [{ payoutId, why: TOO_SMALL }] : [];
  });
}
