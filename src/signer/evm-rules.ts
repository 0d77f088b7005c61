// The rules for transactions on Ethereum's chain that are unlike those of Bitcoin's family: whose address sends, what may be called, and what
// it may cost. Everything about payouts, holds, intents, limits and the journal is in rules.ts: sender and nonce are the one input, so all
// transactions that are ever signed for a payout have the same nonce.

import { EVM_SCRIPT, evmAddressOf, evmInput, GAS } from '../core/currencies/evm.ts';
import { type CurrencyCode, ETHER, type EvmCode, isToken, isUtxo, type Network } from '../core/currency.ts';
import { plus } from '../core/money.ts';
import { isReplacement } from '../core/payouts/gas.ts';
import { MOST_TOP_UP } from '../core/payouts/sweeps.ts';
import type { SignerAccount } from '../core/signer-wire.ts';
import type { FactsWanted, SigningFacts } from '../store/payouts/signing-facts.ts';
import { evmAddressAt } from './own-scripts.ts';
import { SigningRefused } from './refused.ts';
import type { EvmSigningRequest, SweepSigningRequest } from './request.ts';
import { gasOf, outpointKey, type SignatureIndex } from './signature-index.ts';

const ZERO = `0x${'0'.repeat(40)}`;

/** What the signer knows by itself. */
export type OwnSide = {
  readonly xpub: string;
  /** The address of the account from which payouts leave, 0x and 40 digits. */
  readonly hot: string;
  /** The contract of USDT by the signer's own settings, lower case; null where it has none. */
  readonly tokenContract: string | null;
};

/** The sender is our own address of this account, and the payee neither nobody, nor the token, nor ourselves. */
export function checkEvmForm({ currency, inputs, outputs, evm }: EvmSigningRequest, own: OwnSide): void {
  const [input] = inputs;
  const [output] = outputs;
  const sender = evmInput(own.hot, input.vout);
  if (input.xpub !== own.xpub || input.chain !== 1 || input.index !== 0 || input.txid !== sender.txid)
    throw new SigningRefused('keys', `the sender is not the signer's address of ${currency}`);
  const contract = isToken(currency) ? own.tokenContract : null;
  if (isToken(currency) && contract === null)
    throw new SigningRefused('destination', `BURSAR_${currency}_CONTRACT names no contract`);
  if (evm.contract !== contract)
    throw new SigningRefused('destination', `another contract than that of ${currency} would be called`);
  const payee = evmAddressOf(output.script);
  const isAddress = output.script.length === EVM_SCRIPT.bytes * 2 && output.script.startsWith(EVM_SCRIPT.head);
  if (!isAddress || payee === ZERO || payee === own.tokenContract || payee === own.hot)
    throw new SigningRefused('destination', `payout ${output.payoutId} goes to no address that can be paid`);
}

/** Gas is bounded whatever is asked for, and a payout is charged no more than it allows. */
export function checkEvmFee({ outputs, evm, inputs, currency }: EvmSigningRequest, facts: SigningFacts): bigint {
  const { fee, maxFee, tip } = evm;
  if (maxFee > GAS.mostFee || tip > maxFee)
    throw new SigningRefused('fee', `${maxFee} wei for a unit of gas, and ${GAS.mostFee} is the most`);
  const [{ payoutId, amount, total }] = outputs;
  const most = facts.payouts.get(payoutId)?.feeMax ?? 0n;
  if (fee > most) throw new SigningRefused('fee', `payout ${payoutId} would be charged ${fee}, and ${most} is its most`);
  if (total !== null && plus(amount, fee) !== total)
    throw new SigningRefused('fee', `${payoutId} takes ${total}, and would pay ${amount} and ${fee} of the fee`);
  const out = isToken(currency) ? amount : plus(amount, fee);
  if (inputs[0].amount !== out) throw new SigningRefused('amounts', `${payoutId} takes ${out}, and the request says otherwise`);
  return fee;
}

/** Nodes take a replacement only when both fees are an eighth higher; and a sender has no other batch at its nonce. */
export function checkReplacement(request: EvmSigningRequest, index: SignatureIndex): void {
  const { batchId, evm } = request;
  for (const one of index.ofBatch(batchId)) {
    if (one.offer !== null && !isReplacement(evm, one.offer))
      throw new SigningRefused(
        'fee',
        `a replacement of ${one.txid} offers an eighth more than ${one.offer.maxFee}, and than ${one.offer.tip} of it for the proposer, at least`,
      );
  }
}

/** The nonces of which {@link checkNonce} wants to know whether blocks have used them: those that this signer has not signed; null: none. */
export function noncesAfter(
  currency: CurrencyCode,
  [input]: readonly EvmSigningRequest['inputs'][number][],
  index: SignatureIndex,
): FactsWanted['nonces'] {
  const after = input === undefined || isUtxo(currency) ? null : index.highestNonce(currency, input.txid);
  if (input === undefined || after === null || input.vout <= after) return null;
  return { currency, sender: input.txid, after, below: input.vout };
}

/**
 * The nonces of a sender are signed one after the other: a gap would stop everything behind it. Those that blocks have used without this signer
 * are none.
 */
export function checkNonce(
  { currency, inputs, batchId }: EvmSigningRequest,
  { usedNonces }: Pick<SigningFacts, 'usedNonces'>,
  index: SignatureIndex,
): void {
  const [input] = inputs;
  if (index.outpoint(outpointKey(currency, input))?.batchId === batchId) return;
  const highest = index.highestNonce(currency as EvmCode, input.txid);
  if (highest === null) return;
  let next = highest + 1;
  while (usedNonces.has(next)) next += 1;
  if (input.vout !== next) throw new SigningRefused('conflict', `the next nonce of ${input.txid} is ${next}, not ${input.vout}`);
}

// The rules for what moves between our own addresses on Ethereum's chain, and pays nobody. No intent is signed for it, so it goes nowhere else:
// a sweep from an address of a transaction to the one that payouts in its currency leave from, a top-up from ether's own to such an address.
// What can be lost is gas, which counts for the limits of ether.

/** What the signer knows by itself of all its accounts. */
export type SweepSide = {
  readonly network: Network;
  readonly accounts: readonly SignerAccount[];
  /** The contract of USDT by the signer's own settings, lower case; null where it has none. */
  readonly tokenContract: string | null;
};

const addressAt = (account: SignerAccount, chain: 0 | 1, index: number): string =>
  evmAddressAt({ ...account, currency: account.currency as EvmCode }, chain, index);

/** Sender and payee are the signer's own, of the accounts that the purpose names, and a token is moved by its own contract only. */
export function checkSweepForm(request: SweepSigningRequest, own: SweepSide): void {
  const { currency, inputs, outputs, evm, batchId } = request;
  const [input] = inputs;
  const [output] = outputs;
  const account = own.accounts.find((one) => one.currency === currency);
  if (account === undefined || input.xpub !== account.xpub)
    throw new SigningRefused('keys', `the sender is not of the signer's account of ${currency}`);
  if (output.payoutId !== batchId) throw new SigningRefused('payout', `batch ${batchId} moves what is ours and pays no payout`);
  const isTopUp = evm.purpose === 'top_up';
  if (isTopUp && currency !== ETHER) throw new SigningRefused('destination', `ether for gas is not sent in ${currency}`);
  if (isTopUp ? input.chain !== 1 || input.index !== 0 : input.chain !== 0)
    throw new SigningRefused('keys', `a ${evm.purpose} does not leave from chain ${input.chain}, index ${input.index}`);
  if (input.txid !== evmInput(addressAt(account, input.chain, input.index), 0).txid)
    throw new SigningRefused('keys', `the sender is not the signer's address of ${currency} at index ${input.index}`);
  const contract = isToken(currency) ? own.tokenContract : null;
  if (isToken(currency) && contract === null)
    throw new SigningRefused('destination', `BURSAR_${currency}_CONTRACT names no contract`);
  if (evm.contract !== contract)
    throw new SigningRefused('destination', `another contract than that of ${currency} would be called`);
  if (isTopUp) checkTopUpPayee(request, own);
  else if (evmAddressOf(output.script) !== addressAt(account, 1, 0))
    throw new SigningRefused(
      'destination',
      `${batchId} goes to another address than the one that payouts in ${currency} leave from`,
    );
}

/** Whom a top-up pays: an address of the account of a token, at the index that the request names, or the one that its payouts leave from. */
function checkTopUpPayee({ batchId, outputs, evm }: SweepSigningRequest, own: SweepSide): void {
  const account = own.accounts.find((one) => one.currency === evm.payee?.currency);
  const isOurs =
    evm.payee !== null &&
    account !== undefined &&
    isToken(evm.payee.currency) &&
    addressAt(account, evm.payee.chain ?? 0, evm.payee.index) === evmAddressOf(outputs[0].script);
  if (!isOurs) throw new SigningRefused('destination', `${batchId} goes to no address of ours that a token is paid to or from`);
}

/** The amounts fit each other, and no mistake burns more than the dearest gas, nor most of what is moved. @returns the most that its gas costs */
export function checkSweepAmounts({ currency, inputs, outputs, evm }: SweepSigningRequest): bigint {
  const { gas, maxFee, tip, fee, purpose } = evm;
  if (maxFee > GAS.mostFee || tip > maxFee)
    throw new SigningRefused('fee', `${maxFee} wei for a unit of gas, and ${GAS.mostFee} is the most`);
  const most = gasOf({ gas, maxFee });
  if (fee !== most) throw new SigningRefused('fee', `its gas costs ${most} at most, not ${fee}`);
  const [input] = inputs;
  const [{ amount, total }] = outputs;
  if (purpose === 'top_up' && amount > MOST_TOP_UP)
    throw new SigningRefused('fee', `${amount} wei for gas, and ${MOST_TOP_UP} is the most`);
  const takesGas = purpose === 'sweep' && !isToken(currency);
  if (takesGas !== (total !== null))
    throw new SigningRefused('amounts', 'only a sweep of ether pays its gas out of what it moves');
  if (takesGas && total !== plus(amount, fee))
    throw new SigningRefused('amounts', `it takes ${total}, and would move ${amount} for ${fee} of gas`);
  if (takesGas && fee > amount) throw new SigningRefused('fee', `${fee} of gas to move ${amount}`);
  if (input.amount !== (takesGas ? plus(amount, fee) : amount))
    throw new SigningRefused('amounts', `the sender's ${input.amount} is not what it moves`);
  return fee;
}

/** The batch and its lease; it pays no payout. */
export function checkSweepFacts(request: SweepSigningRequest, facts: SigningFacts): void {
  const { batchId, currency, leaseEpoch, evm } = request;
  const batch = facts.batches.get(batchId);
  const isIt = batch?.currency === currency && batch.purpose === evm.purpose && ['reserved', 'signed'].includes(batch.state);
  if (batch === undefined || !isIt)
    throw new SigningRefused('batch', `there is no ${evm.purpose} ${batchId} of ${currency} that is reserved or signed`);
  if (batch.leaseEpoch !== leaseEpoch)
    throw new SigningRefused('lease', `batch ${batchId} is at lease ${batch.leaseEpoch}, and the request is of ${leaseEpoch}`);
  for (const payout of facts.payouts.values())
    if (payout.batchId === batchId) throw new SigningRefused('complete', `batch ${batchId} has payout ${payout.id}`);
}
