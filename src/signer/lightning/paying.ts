// Has our Lightning node pay: the macaroon that may pay is in this process only, and each payment is compared first with what this process reads
// in the database itself, with its journal, its limits, and the invoice as the node reads it. Nothing is paid that was not on disk here before.

import { MSAT } from '../../core/currencies/lightning.ts';
import type { Network, UtxoCode } from '../../core/currency.ts';
import type { LightningPayer } from '../../core/lightning/payer.ts';
import { minus, mulDivDown, plus } from '../../core/money.ts';
import { intentOf } from '../../core/payouts/intent.ts';
import type { AuthorizedPayment, SignerReplies } from '../../core/signer-wire.ts';
import { type PayerFacts, readPayerFacts } from '../../store/lightning/payer-facts.ts';
import type { Database } from '../../store/postgres/connect.ts';
import { checkIntent, isApproved } from '../intent-trust.ts';
import { checkLimits, dated, type SignerLimits, timeOf, withinLimits } from '../limits.ts';
import { SigningRefused } from '../refused.ts';
import { RequestMalformed } from '../request.ts';
import { refuseTwice } from '../rules.ts';
import type { Leaving } from '../signature-index.ts';
import { createTurns, type Turns } from '../turns.ts';
import { createFailedPayments } from './failed-payments.ts';
import type { KnownChannelsFile } from './known-channels.ts';
import type { PaymentJournal } from './payment-journal.ts';

export type PayingOptions = {
  readonly network: Network;
  /** Null = no node is configured that this process may pay with. */
  readonly payer: LightningPayer | null;
  /** Under the role bursar_signer. */
  readonly db: Database;
  /** Opened when it is first needed. */
  readonly journal: () => Promise<PaymentJournal>;
  readonly channels: () => Promise<KnownChannelsFile>;
  /** The public keys of APIs whose intents count. */
  readonly intentKeys: () => Promise<readonly string[]>;
  readonly limits: SignerLimits;
  /** As that of the signatures, and the same: what counts for a limit counts for both. */
  readonly countedAlone: Turns;
  /** What left and is not in this journal, as on chains: the limits are of all of it together. */
  readonly leftBesides: () => Promise<readonly Leaving[]>;
  /** The system's clock. */
  readonly now: () => number;
  /** A clock that nobody sets; absent: that of this process. */
  readonly steady?: () => number;
  /** Called when a payment is on disk here and nobody was answered (main/sandbox/failpoints). */
  readonly reached?: (step: 'authorized') => Promise<void>;
};

export type Paying = {
  /** @throws SigningRefused, NoPayer, RequestMalformed */
  authorize(asked: Asked): Promise<AuthorizedPayment>;
  /** @throws SigningRefused, NoPayer, RequestMalformed, NodeTrouble */
  send(asked: Asked): Promise<SignerReplies['send_payment']>;
  /** Payments that failed count no more for the limits; says whether there were any. */
  giveBackFailed(): Promise<boolean>;
  authorized(after: number): Promise<SignerReplies['authorized_payments']>;
  node(): Promise<SignerReplies['paying_node']>;
  knownChannels(node: string): Promise<SignerReplies['known_channels']>;
  track(paymentHash: string): Promise<SignerReplies['track_payment']>;
  payments(after: string): Promise<SignerReplies['node_payments']>;
};

type Asked = { readonly payoutId: unknown; readonly leaseEpoch: unknown };

/** This signer has no Lightning node to pay with. */
export class NoPayerTrouble extends Error {}

const PAGE = 500;

/**
 * Payments over Lightning by the signer: compared and journalled before the node is asked, one at a time, so that the limits of the second
 * see what the first has taken.
 */
export function createPaying(options: PayingOptions): Paying {
  /** One at a time: the second sees what the first has journalled. */
  const inTurn = createTurns();
  function payer(): LightningPayer {
    if (options.payer !== null) return options.payer;
    throw new NoPayerTrouble('no Lightning node to pay with: BURSAR_LND_PAY_MACAROON is not set for the signer');
  }

  const failed = createFailedPayments(options);
  async function giveBackFailed(): Promise<boolean> {
    return options.payer !== null && failed.giveBack(options.payer, await options.journal());
  }

  async function authorize({ payoutId, leaseEpoch }: { payoutId: string; leaseEpoch: bigint }): Promise<AuthorizedPayment> {
    const node = payer();
    const journal = await options.journal();
    const facts = await factsOf(options, payoutId, leaseEpoch);
    // held, or cancelled, since it was leased: nobody has written into the database
    if (facts.step !== 'queued') throw new SigningRefused('stopped', `payout ${payoutId} is ${facts.status}, ${facts.step}`);
    if (facts.status !== 'processing' || facts.state !== 'waiting')
      throw wrong(payoutId, `is ${facts.status}, ${facts.step}, ${facts.state}`);
    const { hash } = await checked(options, node, facts);
    // by the hash of the database everybody asks what has become of it: of another one nobody would
    if (hash !== facts.paymentHash)
      throw new SigningRefused('invoice', `the Lightning node reads the payment hash ${hash} in it, and we ${facts.paymentHash}`);
    const before = journal.ofPayout(payoutId);
    // only it can ever be paid for this payout, and it counted then
    if (before !== null && before.paymentHash !== hash) throw wrong(payoutId, 'was authorized with another payment hash');
    if (before !== null) return before;
    if (facts.isStopped) throw new SigningRefused('stopped', 'payouts are stopped');
    if (facts.owes) throw new SigningRefused('stopped', `the merchant of payout ${payoutId} owes something`);
    const takes = facts.held;
    await refuseReturned(node, journal, facts);
    const leaving = {
      network: options.network,
      currency: facts.currency as UtxoCode,
      batchId: payoutId,
      payouts: [{ id: payoutId, amount: takes }],
      ...timeOf(options),
    };
    const counted = () =>
      options.countedAlone(async () => {
        checkLimits(options.limits, leaving, { leavingOf: () => 0n, leaving: journal.leaving }, await options.leftBesides());
        return dated(options, journal, (authorizedAtMs) =>
          journal.append({
            payoutId,
            paymentHash: hash,
            takes: takes.toString(),
            ...(facts.reimburses === null ? {} : { reimburses: facts.reimburses }),
            authorizedAtMs,
          }),
        );
      });
    const made = await withinLimits(counted, giveBackFailed);
    await options.reached?.('authorized');
    return made;
  }

  /** As `checkReimbursed` of what leaves on a chain; whether an earlier one failed the node says. */
  async function refuseReturned(node: LightningPayer, journal: PaymentJournal, facts: PayerFacts): Promise<void> {
    const { id, reimburses, received, others, approval, held } = facts;
    if (reimburses === null) return;
    const before = journal.reimbursementsOf(reimburses, others).filter((one) => one.payoutId !== id);
    if (before.length === 0 || isApproved({ network: options.network, payoutId: id, approval }, await options.intentKeys()))
      return;
    let sent = 0n;
    for (const payment of before) if (!(await failed.hasFailed(node, payment))) sent = plus(sent, BigInt(payment.takes));
    refuseTwice({ id, reimburses, received, total: held, sent });
  }

  type Sending = { readonly payoutId: string; readonly leaseEpoch: bigint };
  /** Whoever looks for failed payments sees it from before it reads that the hold is open. */
  async function send(asked: Sending): Promise<SignerReplies['send_payment']> {
    const ended = failed.asking(asked.payoutId, Number.POSITIVE_INFINITY);
    try {
      return await sent(asked);
    } finally {
      ended();
    }
  }

  async function sent({ payoutId, leaseEpoch }: Sending): Promise<SignerReplies['send_payment']> {
    const node = payer();
    const journal = await options.journal();
    const facts = await factsOf(options, payoutId, leaseEpoch);
    const isOpen = facts.status === 'processing' && facts.step === 'batched' && facts.state === 'sent';
    if (!isOpen) throw wrong(payoutId, `is ${facts.status}, ${facts.step}, ${facts.state}`);
    const { hash, hasAmount, sends } = await checked(options, node, facts);
    if (hash !== facts.paymentHash) throw wrong(payoutId, `is to be paid as ${facts.paymentHash}, and its invoice has ${hash}`);
    if (journal.ofPayout(payoutId)?.paymentHash !== hash)
      throw new SigningRefused('journal', `the journal does not have payout ${payoutId}: it was lost, or is an older copy`);
    // one that failed may have been followed by another
    await refuseReturned(node, journal, facts);
    const identity = await node.identity();
    if (identity !== facts.node) throw wrong(payoutId, `belongs to node ${facts.node}, and this is ${identity}`);
    if (facts.leaseUntilMs === null) throw new SigningRefused('lease', `payout ${payoutId} has no lease`);
    // whoever owns the database can end a hold and open it again
    if (failed.isGone(payoutId))
      throw new SigningRefused('limit', `payout ${payoutId} has failed, and no longer counts for the limits`);
    const answered = failed.asking(payoutId, facts.leaseUntilMs);
    const answer = await node.send({
      paymentRequest: facts.paymentRequest as string,
      amount: hasAmount ? null : sends,
      feeLimit: facts.feeMax,
      notAfterMs: facts.leaseUntilMs,
    });
    if (answer.state !== 'unanswered') answered();
    return answer;
  }

  return {
    authorize: (asked) => {
      const request = readAsked(asked);
      return inTurn(() => authorize(request));
    },
    send: (asked) => send(readAsked(asked)),
    giveBackFailed,
    async authorized(after) {
      const payments = (await options.journal()).after(after, PAGE + 1);
      return { payments: payments.slice(0, PAGE), more: payments.length > PAGE };
    },
    async node() {
      const said = await payer().node();
      // before anything is paid over them
      await (await options.channels()).add(
        said.identity,
        said.channels.map(({ point }) => point),
      );
      return said;
    },
    knownChannels: async (node) => ({ points: (await options.channels()).of(node) }),
    track: async (paymentHash) => payer().track(paymentHash),
    payments: async (after) => ({ payments: await payer().payments(BigInt(after)) }),
  };
}

const wrong = (payoutId: string, what: string): SigningRefused => new SigningRefused('payout', `payout ${payoutId} ${what}`);

function readAsked({ payoutId, leaseEpoch }: Asked): { readonly payoutId: string; readonly leaseEpoch: bigint } {
  if (typeof payoutId !== 'string' || !/^[\x21-\x7e]{1,100}$/.test(payoutId))
    throw new RequestMalformed('payoutId must be printable characters, at most 100');
  if (typeof leaseEpoch !== 'string' || !/^\d{1,18}$/.test(leaseEpoch))
    throw new RequestMalformed('leaseEpoch must be a whole number as text');
  return { payoutId, leaseEpoch: BigInt(leaseEpoch) };
}

async function factsOf({ db }: PayingOptions, payoutId: string, leaseEpoch: bigint): Promise<PayerFacts> {
  const facts = await readPayerFacts(db, payoutId);
  if (facts === null) throw wrong(payoutId, 'is not in the database');
  if (facts.leaseEpoch !== leaseEpoch)
    throw new SigningRefused('lease', `payout ${payoutId} is at lease ${facts.leaseEpoch}, and the request is of ${leaseEpoch}`);
  return facts;
}

/** What must be true of a payout whenever the node is asked to pay it. */
async function checked(
  { network, intentKeys }: PayingOptions,
  node: LightningPayer,
  facts: PayerFacts,
): Promise<{ readonly hash: string; readonly hasAmount: boolean; readonly sends: bigint }> {
  const { id, paymentRequest, amount, feeMax, reimburses } = facts;
  // of a reimbursement the fee is inside the amount
  const sends = reimburses === null ? amount : minus(amount, feeMax);
  if (paymentRequest === null || facts.internalTo !== null) throw wrong(id, 'is not paid over Lightning');
  const intent = intentOf(facts, { network, destination: paymentRequest });
  checkIntent(await intentKeys(), intent, facts.intentKey, facts.intent);
  if (facts.held !== plus(sends, feeMax))
    throw new SigningRefused('hold', `payout ${id} has no hold of its amount and highest fee`);
  if (facts.isHoldEnded) throw new SigningRefused('hold', `the hold of payout ${id} was released or paid out`);
  const read = await node.decode(paymentRequest);
  if ('refused' in read) throw new SigningRefused('invoice', `the Lightning node cannot read the invoice: ${read.refused}`);
  if (read.amountMsat !== null && read.amountMsat !== mulDivDown(sends, MSAT, 1n))
    throw new SigningRefused('destination', `the invoice of payout ${id} is for another amount`);
  return { hash: read.paymentHash, hasAmount: read.amountMsat !== null, sends };
}
