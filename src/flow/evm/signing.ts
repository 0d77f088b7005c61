// What the signer is asked for of a batch on Ethereum's chain, and what its payout is charged.
import { EVM_CODES, type EvmCode, isToken } from '../../core/currency.ts';
import { minus } from '../../core/money.ts';
import type { GasOffer } from '../../core/payouts/gas.ts';
import type { TransactionToSign } from '../../core/signer-wire.ts';
import type { Attempt, Batch } from '../../store/payouts/batch-rows.ts';
import { addressOfScript } from '../../store/sweeps/addresses.ts';
import type { Context } from '../context.ts';
import { feeFor, HOT_INDEX, hotAddress } from './batches.ts';

/** The number of a batch's next transaction, and what it offers. */
export type NextAttempt = { readonly number: number; readonly offer: GasOffer };

/** What only this batch's request has, beside what all requests on the chain have. */
type Asked = {
  readonly output: TransactionToSign['outputs'][number];
  /** Null: the transaction sends ether. */
  readonly contract: string | null;
  readonly fee: bigint;
  readonly sweep?: Pick<NonNullable<TransactionToSign['evm']>, 'purpose' | 'payee'>;
};

/**
 * What the signer is asked for.
 * @param contract of the batch's currency; null of ether
 * @returns null while there is no price of what the gas of its payout is worth
 */
export async function evmRequestOf(
  ctx: Context,
  batch: Batch<EvmCode>,
  contract: string | null,
  next: NextAttempt,
): Promise<TransactionToSign | null> {
  const asked =
    batch.purpose === 'payout' ? await askedOfPayout(ctx, batch, contract) : await askedOfSweep(ctx, batch, contract, next.offer);
  if (asked === null) return null;
  const [input] = batch.inputs;
  if (input === undefined || batch.gas === null) throw new Error(`batch ${batch.id} has no nonce`);
  const { txid, vout, amount, xpub, chain, index } = input;
  return {
    currency: batch.currency,
    batchId: batch.id,
    number: next.number,
    leaseEpoch: batch.leaseEpoch.toString(),
    inputs: [{ txid, vout, amount: amount.toString(), xpub, chain, index }],
    outputs: [asked.output],
    change: null,
    evm: {
      contract: asked.contract,
      gas: batch.gas.limit,
      maxFee: next.offer.maxFee.toString(),
      tip: next.offer.tip.toString(),
      fee: asked.fee.toString(),
      ...asked.sweep,
    },
  };
}

/** The payee and what it gets are those of the first transaction, whatever a replacement offers. */
async function askedOfPayout(ctx: Context, batch: Batch<EvmCode>, contract: string | null): Promise<Asked | null> {
  const fee = await feeOfBatch(ctx, batch);
  if (fee === null) return null;
  const [payout] = batch.payouts;
  if (payout === undefined) throw new Error(`batch ${batch.id} has no payout`);
  const amounts =
    payout.reimburses === null
      ? { amount: payout.amount.toString() }
      : { amount: minus(payout.amount, fee).toString(), total: payout.amount.toString() };
  return { output: { payoutId: payout.id, script: payout.script.toString('hex'), ...amounts }, contract, fee };
}

/** What the payout of a batch is charged at most: that of its first transaction, or what its nonce was reserved with. */
async function feeOfBatch(ctx: Context, batch: Batch<EvmCode>): Promise<bigint | null> {
  const [first] = batch.attempts as readonly (Attempt | undefined)[];
  if (first !== undefined) return first.fee;
  const [payout] = batch.payouts;
  const [input] = batch.inputs;
  if (payout === undefined || input === undefined || batch.gas === null) return null;
  if (payout.reimburses !== null && isToken(batch.currency)) return minus(payout.amount, input.amount);
  const wei = BigInt(batch.gas.limit) * batch.feeRate;
  return feeFor(ctx, ctx.db, batch.currency, payout, wei);
}

/** All transactions of a sweep take the same from its address; of ether the gas comes out of that. */
async function askedOfSweep(ctx: Context, batch: Batch<EvmCode>, contract: string | null, offer: GasOffer): Promise<Asked> {
  const [input] = batch.inputs;
  const { target, purpose } = batch;
  if (input === undefined || batch.gas === null || target === null || purpose === 'payout')
    throw new Error(`batch ${batch.id} is no sweep`);
  const gasMost = BigInt(batch.gas.limit) * offer.maxFee;
  const takesGas = purpose === 'sweep' && !isToken(batch.currency);
  const amounts = takesGas
    ? { amount: minus(input.amount, gasMost).toString(), total: input.amount.toString() }
    : { amount: input.amount.toString() };
  const payee = purpose === 'top_up' ? await topUpPayee(ctx, target) : null;
  return {
    // a batch without payouts stands for itself
    output: { payoutId: batch.id, script: target.toString('hex'), ...amounts },
    contract: purpose === 'top_up' ? null : contract,
    fee: gasMost,
    sweep: { purpose, ...(payee === null ? {} : { payee }) },
  };
}

/** Whose address gets ether for gas. */
type TopUpPayee = NonNullable<NonNullable<TransactionToSign['evm']>['payee']>;

async function topUpPayee(ctx: Context, target: Buffer): Promise<TopUpPayee | null> {
  for (const currency of EVM_CODES.filter(isToken)) {
    const hot = await hotAddress(ctx, ctx.db, currency);
    if (hot?.script.equals(target)) return { currency, index: HOT_INDEX, chain: 1 };
  }
  return addressOfScript(ctx.db, target);
}
