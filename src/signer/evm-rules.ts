// The rules for transactions on Ethereum's chain that are unlike those of Bitcoin's family: whose address sends, what may be called, and what
// it may cost. Everything about payouts, holds, intents, limits and the journal is in rules.ts: sender and nonce are the one input, so all
// transactions that are ever signed for a payout have the same nonce.
import { EVM_SCRIPT, evmAddressOf, evmInput, GAS } from '../core/currencies/evm.ts';
import { type EvmCode, isToken } from '../core/currency.ts';
import { plus } from '../core/money.ts';
import type { SigningFacts } from '../store/payouts/signing-facts.ts';
import { SigningRefused } from './refused.ts';
import type { EvmSigningRequest } from './request.ts';
import { outpointKey, type SignatureIndex } from './signature-index.ts';

const ZERO = `0x${'0'.repeat(40)}`;

/** What the signer knows by itself. */
export type OwnSide = {
  readonly xpub: string;
  /** The address of the account from which payouts leave, 0x and 40 digits. */
  readonly hot: string;
  /** The contract of USDT by the signer's own settings, lower case; null where it has none. */
  readonly usdtContract: string | null;
};

/** The sender is our own address of this account, and the payee neither nobody, nor the token, nor ourselves. */
export function checkEvmForm({ currency, inputs, outputs, evm }: EvmSigningRequest, own: OwnSide): void {
  const [input] = inputs;
  const [output] = outputs;
  if (input === undefined || output === undefined) throw new SigningRefused('keys', 'there is no input or no output');
  const sender = evmInput(own.hot, input.vout);
  if (input.xpub !== own.xpub || input.chain !== 1 || input.index !== 0 || input.txid !== sender.txid)
    throw new SigningRefused('keys', `the sender is not the signer's address of ${currency}`);
  const contract = isToken(currency) ? own.usdtContract : null;
  if (isToken(currency) && contract === null) throw new SigningRefused('destination', 'BURSAR_USDT_CONTRACT names no contract');
  if (evm.contract !== contract)
    throw new SigningRefused('destination', `another contract than that of ${currency} would be called`);
  const payee = evmAddressOf(output.script);
  const isAddress = output.script.length === EVM_SCRIPT.bytes * 2 && output.script.startsWith(EVM_SCRIPT.head);
  if (!isAddress || payee === ZERO || payee === own.usdtContract || payee === own.hot)
    throw new SigningRefused('destination', `payout ${output.payoutId} goes to no address that can be paid`);
}

/** Gas is bounded whatever is asked for, and a payout is charged no more than it allows. */
export function checkEvmFee({ outputs, evm, inputs, currency }: EvmSigningRequest, facts: SigningFacts): bigint {
  const { fee, maxFee, tip } = evm;
  if (maxFee > GAS.mostFee || tip > maxFee)
    throw new SigningRefused('fee', `${maxFee} wei for a unit of gas, and ${GAS.mostFee} is the most`);
  for (const { payoutId, amount, total } of outputs) {
    const most = facts.payouts.get(payoutId)?.feeMax ?? 0n;
    if (fee > most) throw new SigningRefused('fee', `payout ${payoutId} would be charged ${fee}, and ${most} is its most`);
    if (total !== null && plus(amount, fee) !== total)
      throw new SigningRefused('fee', `${payoutId} takes ${total}, and would pay ${amount} and ${fee} of the fee`);
    const out = isToken(currency) ? amount : plus(amount, fee);
    if (inputs[0]?.amount !== out)
      throw new SigningRefused('amounts', `${payoutId} takes ${out}, and the request says otherwise`);
  }
  return fee;
}

/** Nodes take a replacement only when both fees are an eighth higher; and a sender has no other batch at its nonce. */
export function checkReplacement(request: EvmSigningRequest, index: SignatureIndex): void {
  const { batchId, evm } = request;
  for (const one of index.ofBatch(batchId)) {
    if (one.maxFee !== null && evm.maxFee * 8n < one.maxFee * 9n)
      throw new SigningRefused('fee', `a replacement of ${one.txid} offers an eighth more than ${one.maxFee} at least`);
  }
}

/** The nonces of a sender are signed one after the other: a gap would stop everything behind it. */
export function checkNonce({ currency, inputs, batchId }: EvmSigningRequest, index: SignatureIndex): void {
  const [input] = inputs as readonly [EvmSigningRequest['inputs'][number]];
  if (index.outpoint(outpointKey(currency, input))?.batchId === batchId) return;
  const highest = index.highestNonce(currency as EvmCode, input.txid);
  if (highest !== null && input.vout !== highest + 1)
    throw new SigningRefused('conflict', `the next nonce of ${input.txid} is ${highest + 1}, not ${input.vout}`);
}
