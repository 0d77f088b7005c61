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

/** What the signer is asked for. The payee and what it gets are those of the first transaction, whatever a replacement offers. */
function evmSigningRequest(
  batch: Batch<EvmCode>,
  contract: string | null,
  { number, offer }: NextAttempt,
  fee: bigint,
): TransactionToSign {
  const [input] = batch.inputs;
  const [payout] = batch.payouts;
  if (input === undefined || payout === undefined || batch.gas === null)
    throw new Error(`batch ${batch.id} has no nonce or payout`);
  const { txid, vout, amount, xpub, chain, index } = input;
  return {
    currency: batch.currency,
    batchId: batch.id,
    number,
    leaseEpoch: batch.leaseEpoch.toString(),
    inputs: [{ txid, vout, amount: amount.toString(), xpub, chain, index }],
    outputs: [
      {
        payoutId: payout.id,
        script: payout.script.toString('hex'),
        ...(payout.reimburses === null
          ? { amount: payout.amount.toString() }
          : { amount: minus(payout.amount, fee).toString(), total: payout.amount.toString() }),
      },
    ],
    change: null,
    evm: {
      contract,
      gas: batch.gas.limit,
      maxFee: offer.maxFee.toString(),
      tip: offer.tip.toString(),
      fee: fee.toString(),
    },
  };
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

/** Whose address gets ether for gas. */
type TopUpPayee = NonNullable<NonNullable<TransactionToSign['evm']>['payee']>;

async function topUpPayee(ctx: Context, target: Buffer): Promise<TopUpPayee | null> {
  for (const currency of EVM_CODES.filter(isToken)) {
    const hot = await hotAddress(ctx, ctx.db, currency);
    if (hot?.script.equals(target)) return { currency, index: HOT_INDEX, chain: 1 };
  }
  return addressOfScript(ctx.db, target);
}

/** What the signer is asked for. All transactions of a sweep take the same from its address; of ether the gas comes out of that. */
function sweepSigningRequest(
  batch: Batch<EvmCode>,
  contract: string | null,
  { number, offer, payee }: { readonly number: number; readonly offer: GasOffer; readonly payee: TopUpPayee | null },
): TransactionToSign {
  const [input] = batch.inputs;
  if (input === undefined || batch.gas === null || batch.target === null || batch.purpose === 'payout')
    throw new Error(`batch ${batch.id} is no sweep`);
  const { txid, vout, amount, xpub, chain, index } = input;
  const gasMost = BigInt(batch.gas.limit) * offer.maxFee;
  const takesGas = batch.purpose === 'sweep' && !isToken(batch.currency);
  return {
    currency: batch.currency,
    batchId: batch.id,
    number,
    leaseEpoch: batch.leaseEpoch.toString(),
    inputs: [{ txid, vout, amount: amount.toString(), xpub, chain, index }],
    outputs: [
      {
        // a batch without payouts stands for itself
        payoutId: batch.id,
        script: batch.target.toString('hex'),
        ...(takesGas ? { amount: minus(amount, gasMost).toString(), total: amount.toString() } : { amount: amount.toString() }),
      },
    ],
    change: null,
    evm: {
      contract: batch.purpose === 'top_up' ? null : contract,
      gas: batch.gas.limit,
      maxFee: offer.maxFee.toString(),
      tip: offer.tip.toString(),
      fee: gasMost.toString(),
      purpose: batch.purpose,
      ...(payee === null ? {} : { payee }),
    },
  };
}

/** Null while there is no price of what the gas of its payout is worth. */
export async function evmRequestOf(
  ctx: Context,
  batch: Batch<EvmCode>,
  contract: string | null,
  next: NextAttempt,
): Promise<TransactionToSign | null> {
  if (batch.purpose === 'payout') {
    const fee = await feeOfBatch(ctx, batch);
    return fee === null ? null : evmSigningRequest(batch, contract, next, fee);
  }
  const payee = batch.purpose === 'top_up' && batch.target !== null ? await topUpPayee(ctx, batch.target) : null;
  return sweepSigningRequest(batch, contract, { ...next, payee });
}
