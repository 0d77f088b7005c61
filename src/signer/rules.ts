// What the signer compares before it signs: the request with its own journal, with its own keys, and with what it has read in the database
// itself. Each check throws SigningRefused with its rule.
import { SCRIPT_FORMS } from '../core/currencies/utxo.ts';
import { type CurrencyCode, type Network, type UtxoCode, utxoRow } from '../core/currency.ts';
import { minus, plus, sum } from '../core/money.ts';
import { intentOf } from '../core/payouts/intent.ts';
import { coversAmounts, feeOf, inputKind, shares, virtualBytes } from '../core/payouts/outgoing-fees.ts';
import { PAYOUT_UNITS, REIMBURSEMENT } from '../core/payouts/units.ts';
import type { PayoutFacts, SigningFacts } from '../store/payouts/signing-facts.ts';
import { checkIntent, isApproved } from './intent-trust.ts';
import { readPrevious, type ShownOutputs } from './previous-outputs.ts';
import { SigningRefused } from './refused.ts';
import type { RequestedOutput, SigningRequest } from './request.ts';
import { contentHash, keyPath, outpointKey, payeesHash, type SignatureIndex } from './signature-index.ts';

/** The output scripts that every node relays: P2PKH and P2SH; with segwit P2WPKH, P2WSH and P2TR; Bitcoin Cash's P2SH of 32 bytes. */
const EVERYWHERE = /^(76a914[0-9a-f]{40}88ac|a914[0-9a-f]{40}87)$/;
const SEGWIT = /^(0014[0-9a-f]{40}|0020[0-9a-f]{64}|5120[0-9a-f]{64})$/;
const P2SH32 = /^aa20[0-9a-f]{64}87$/;

function isStandard(currency: UtxoCode, script: string): boolean {
  const { segwit, tokens } = utxoRow(currency).utxo.blockFeatures;
  return EVERYWHERE.test(script) || (segwit && SEGWIT.test(script)) || (tokens && P2SH32.test(script));
}

/** The sequence number of the signature that was made for the same request before; null when there is none. */
export function repeatedSignature(request: SigningRequest<CurrencyCode>, index: SignatureIndex): number | null {
  const before = index.ofBatch(request.batchId).find((one) => one.number === request.number);
  if (before === undefined) return null;
  if (before.content === contentHash(request.wire)) return before.sequence;
  throw new SigningRefused('number', `number ${request.number} of batch ${request.batchId} was signed with other content`);
}

/** Keys of this account only, each outpoint once, and standard payees, each payout once. */
export function checkForm(request: SigningRequest, ownXpub: string): void {
  const outpoints = new Set(request.inputs.map((input) => outpointKey(request.currency, input)));
  if (outpoints.size < request.inputs.length) throw new SigningRefused('keys', 'an outpoint stands twice among the inputs');
  if (request.inputs.some((input) => input.xpub !== ownXpub))
    throw new SigningRefused('keys', `the key of an input is not the signer's account of ${request.currency}`);
  for (const { payoutId, script } of request.outputs)
    if (!isStandard(request.currency, script))
      throw new SigningRefused('destination', `payout ${payoutId} goes to a script of no standard form`);
  const ids = new Set(request.outputs.map((output) => output.payoutId));
  if (ids.size < request.outputs.length) throw new SigningRefused('payout', 'a payout stands twice among the outputs');
}

/** Where signatures do not cover amounts, the transactions that made the inputs must show them, with the request or before it. */
export function checkAmounts(request: SigningRequest, scriptOf: (input: number) => Uint8Array, shown: ShownOutputs): void {
  if (coversAmounts(request.currency)) return;
  const made = new Map(request.previous.map(readPrevious).flatMap((one) => (one === null ? [] : [[one.txid, one.outputs]])));
  for (const [at, { txid, vout, amount }] of request.inputs.entries()) {
    const output = made.get(txid)?.[vout] ?? shown.get({ txid, vout });
    if (output === undefined)
      throw new SigningRefused(
        'amounts',
        `previous has no transaction ${txid} with output ${vout}, which ${request.currency} needs`,
      );
    if (output.amount !== amount || output.script !== Buffer.from(scriptOf(at)).toString('hex'))
      throw new SigningRefused('amounts', `output ${txid}:${vout} has another amount or script`);
  }
}

/**
 * At most one transaction of all that were ever signed for a payout can be mined: they are of one batch, pay the same, and each two share an
 * input. An outpoint keeps what was said of it first.
 * @param otherBatches the batches that the outpoints were signed for before, as the database has them
 */
export function checkConflicts(
  request: SigningRequest<CurrencyCode>,
  index: SignatureIndex,
  otherBatches: SigningFacts['batches'],
): void {
  const { batchId, number, outputs, inputs, currency } = request;
  for (const { payoutId } of outputs) {
    const signed = index.batchOfPayout(payoutId);
    if (signed !== null && signed !== batchId)
      throw new SigningRefused('conflict', `payout ${payoutId} was signed in batch ${signed} before`);
  }
  const earlier = index.ofBatch(batchId);
  if (number !== earlier.length + 1)
    throw new SigningRefused('number', `the next number of batch ${batchId} is ${earlier.length + 1}, not ${number}`);
  const payees = payeesHash(request.wire);
  for (const one of earlier) {
    if (one.payees !== payees)
      throw new SigningRefused('conflict', `transaction ${one.number} of batch ${batchId} pays others, or other amounts`);
    if (!inputs.some((input) => one.outpoints.has(outpointKey(currency, input))))
      throw new SigningRefused('conflict', `transaction ${one.number} of batch ${batchId} shares no input with this one`);
  }
  for (const input of inputs) {
    const known = index.outpoint(outpointKey(currency, input));
    if (known === null) continue;
    if (known.amount !== input.amount.toString() || known.path !== keyPath(input))
      throw new SigningRefused('amounts', `outpoint ${input.txid}:${input.vout} was signed with another amount or key before`);
    // while one of its transactions can be mined, a batch keeps its inputs
    if (known.batchId !== batchId && otherBatches.get(known.batchId)?.state !== 'dead')
      throw new SigningRefused(
        'conflict',
        `outpoint ${input.txid}:${input.vout} belongs to batch ${known.batchId}, which is not dead`,
      );
  }
}

/** A wallet that looks for our outputs by the seed alone looks this many addresses further. */
const CHANGE_AHEAD = 100_000;

/** Whoever asks chooses the address of ours that change goes to: not one that nobody would look at. */
export function checkChange({ change, currency }: SigningRequest, index: SignatureIndex): void {
  const most = index.highestChange(currency) + CHANGE_AHEAD;
  if (change !== null && change.index > most)
    throw new SigningRefused('change', `change would go to address ${change.index} of our own, and ${most} is the furthest`);
}

/** A journal that lacks what the database sent out was lost or is an older copy: what it would compare with is not in it. */
export function checkJournal({ attempts }: SigningFacts, index: SignatureIndex): void {
  for (const { batchId, number, txid } of attempts) {
    if (!index.ofBatch(batchId).some((one) => one.number === number && one.txid === txid))
      throw new SigningRefused(
        'journal',
        `the database has attempt ${number} of batch ${batchId} (${txid}), and the journal has not: it was lost, or is an older copy`,
      );
  }
}

export type Trust = { readonly network: Network; readonly intentKeys: readonly string[] };

/** The batch, its lease, and each of its payouts with intent and hold. */
export function checkFacts(request: SigningRequest<CurrencyCode>, facts: SigningFacts, trust: Trust): void {
  const { batchId, currency, leaseEpoch, outputs } = request;
  const batch = facts.batches.get(batchId);
  if (batch?.currency !== currency || batch.purpose !== 'payout' || !['reserved', 'signed'].includes(batch.state))
    throw new SigningRefused('batch', `there is no batch ${batchId} of ${currency} that is reserved or signed`);
  if (batch.leaseEpoch !== leaseEpoch)
    throw new SigningRefused('lease', `batch ${batchId} is at lease ${batch.leaseEpoch}, and the request is of ${leaseEpoch}`);
  for (const output of outputs) checkPayout(output, request, facts.payouts.get(output.payoutId), trust);
  const paid = new Set(outputs.map(({ payoutId }) => payoutId));
  for (const { id, batchId: of } of facts.payouts.values()) {
    if (of === batchId && !paid.has(id)) throw new SigningRefused('complete', `batch ${batchId} has payout ${id} too`);
  }
}

/** The method of payouts whose unit is this currency, on its own chain; null: only reimbursements are in it. */
function methodOf(currency: CurrencyCode): string | null {
  return (['bitcoin', 'usdt'] as const).find((method) => PAYOUT_UNITS[method].code === currency) ?? null;
}

function checkPayout(
  output: RequestedOutput,
  request: SigningRequest<CurrencyCode>,
  payout: PayoutFacts | undefined,
  trust: Trust,
): void {
  const id = output.payoutId;
  const wrong = (what: string): SigningRefused => new SigningRefused('payout', `payout ${id} ${what}`);
  if (payout === undefined) throw wrong('is not in the database');
  if (payout.status !== 'processing' || payout.step !== 'batched') throw wrong(`is ${payout.status}, ${payout.step}`);
  if (payout.batchId !== request.batchId) throw wrong('is not of this batch');
  const isReimbursement = payout.method === REIMBURSEMENT;
  if ((payout.method !== methodOf(request.currency) && !isReimbursement) || payout.currency !== request.currency)
    throw wrong(`is paid by ${payout.method} in ${payout.currency}`);
  if (isReimbursement !== (output.total !== null)) throw wrong(`is paid by ${payout.method}, and the request says otherwise`);
  if (payout.script !== output.script || payout.amount !== (output.total ?? output.amount))
    throw wrong('has another destination or amount');
  if (payout.internalTo !== null) throw wrong('is paid within the books');
  const { amount, feeMax } = payout;
  const intent = intentOf(payout, { network: trust.network, destination: output.script });
  checkIntent(trust.intentKeys, intent, payout.intentKey, payout.intent);
  if (payout.held !== (isReimbursement ? amount : plus(amount, feeMax)))
    throw new SigningRefused('hold', `payout ${id} has no hold of its amount and highest fee`);
  if (payout.isHoldEnded) throw new SigningRefused('hold', `the hold of payout ${id} was released or paid out`);
}

/**
 * A request may have waited for this signer while payouts were stopped or a receivable was opened, and nobody can call it back. What follows a
 * batch's first signature is signed all the same: one of its transactions may already be on its way. What a reimbursement takes
 * out of suspense is the customer's, and not kept for what its merchant owes.
 */
export function checkStops({ batchId }: Pick<SigningRequest, 'batchId'>, facts: SigningFacts, index: SignatureIndex): void {
  if (index.ofBatch(batchId).length > 0) return;
  if (facts.isStopped) throw new SigningRefused('stopped', 'payouts are stopped');
  for (const { id } of facts.payouts.values())
    if (facts.owing.has(id)) throw new SigningRefused('stopped', `the merchant of payout ${id} owes something`);
}

/**
 * What the journal has seen leave of a transaction, with this, is no more than what came for it. An earlier one does not count when each of its
 * transactions shares an input with this one, since only one of them can be mined; where it cannot be mined for another reason, an
 * operator's approval stands, which the key of an API has signed.
 */
export function checkReimbursed(
  request: SigningRequest<CurrencyCode>,
  facts: SigningFacts,
  index: SignatureIndex,
  trust: Trust,
): void {
  const { outputs, inputs, currency } = request;
  const spends = new Set(inputs.map((input) => outpointKey(currency, input)));
  const excludes = (batchId: string): boolean =>
    index.ofBatch(batchId).every((one) => [...one.outpoints].some((key) => spends.has(key)));
  const here = new Map<string, bigint>();
  for (const { payoutId, total } of outputs) {
    const payout = facts.payouts.get(payoutId);
    if (total === null || payout?.reimburses == null) continue;
    const { id, reimburses, received, others, approval } = payout;
    // a replacement too is compared: something else may have been signed since
    const before = index
      .reimbursementsOf(reimburses, currency, others)
      .filter((one) => one.payoutId !== id && !excludes(one.batchId));
    const sent = plus(sum(before.map((one) => one.total)), here.get(reimburses) ?? 0n);
    here.set(reimburses, plus(here.get(reimburses) ?? 0n, total));
    if (isApproved({ network: trust.network, payoutId: id, approval }, trust.intentKeys)) continue;
    refuseTwice({ id, reimburses, received, total, sent });
  }
}

type Returned = {
  readonly id: string;
  readonly reimburses: string;
  readonly received: bigint;
  readonly total: bigint;
  /** What the journal has of earlier ones. */
  readonly sent: bigint;
};

/** @throws SigningRefused where something went back before, and with this it is more than what came */
export function refuseTwice({ id, reimburses, received, total, sent }: Returned): void {
  if (sent === 0n || plus(sent, total) <= received) return;
  throw new SigningRefused(
    'reimbursed',
    `${id} would send ${total} back of ${reimburses}, for which ${received} came and of which ${sent} was sent back before (bursar payout approve, once it is certain that the earlier one cannot arrive)`,
  );
}

/** What is signed with the transactions that it reimburses: the journal keeps them, since the database may forget. */
export function withReimbursed(wire: SigningRequest['wire'], { payouts }: Pick<SigningFacts, 'payouts'>): SigningRequest['wire'] {
  const outputs = wire.outputs.map((output) => {
    const reimburses = payouts.get(output.payoutId)?.reimburses ?? null;
    return reimburses === null ? output : { ...output, reimburses };
  });
  return { ...wire, outputs };
}

/** As whoever asks calculates it: the bytes may be a little fewer when they are signed. */
function sizeOf({ currency, inputs, outputs, change }: SigningRequest): number {
  const kind = inputKind(currency);
  const lengths = outputs.map(({ script }) => script.length / 2);
  const changeLength = SCRIPT_FORMS[kind].bytes;
  return virtualBytes(
    inputs.map(() => kind),
    change === null ? lengths : [...lengths, changeLength],
  );
}

/** What each payout takes of the fee, in the order of the outputs; the inputs must suffice, and no mistake burns more than the highest rate. */
export function checkFee(
  request: SigningRequest,
  facts: SigningFacts,
): { readonly fee: bigint; readonly each: readonly bigint[] } {
  const fee = minus(request.total, plus(request.paid, request.change?.amount ?? 0n));
  if (fee < 0n) throw new SigningRefused('fee', 'the outputs are more than the inputs');
  const most = feeOf(sizeOf(request), utxoRow(request.currency).utxo.feeRates.highest);
  if (fee > most)
    throw new SigningRefused('fee', `${fee} is above ${most}, which is the highest rate for a transaction of this size`);
  const each = shares(fee, request.outputs.length);
  for (const [at, { payoutId, amount, total }] of request.outputs.entries()) {
    const most = facts.payouts.get(payoutId)?.feeMax ?? 0n;
    const share = each[at] ?? 0n;
    if (share > most)
      throw new SigningRefused('fee', `payout ${payoutId} would pay ${share} of the fee, and ${most} is its most`);
    if (total !== null && plus(amount, share) !== total)
      throw new SigningRefused('fee', `${payoutId} takes ${total}, and would pay ${amount} and ${share} of the fee`);
  }
  return { fee, each };
}
