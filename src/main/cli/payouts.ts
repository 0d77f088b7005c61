// `bursar payout list|show|approve|cancel|resolve|recover`: payouts of all merchants, and what an operator decides about them.
import { userInfo } from 'node:os';
import { type Command, Option } from 'commander';
import { maskedAccount } from '../../core/ach/bank-account.ts';
import { LEDGER_CODES } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import type { IntentKey } from '../../core/payouts/intent.ts';
import { PAYOUT_STATUSES, type PayoutStatus } from '../../core/payouts/states.ts';
import { openText } from '../../core/sealed-text.ts';
import type { Context } from '../../flow/context.ts';
import type { Track } from '../../flow/lightning/may-arrive.ts';
import { approvePayout, cancelByOperator } from '../../flow/payouts/cancel-and-approve.ts';
import { resolvePayout } from '../../flow/payouts/resolve.ts';
import { createSignerClient, SignerTrouble } from '../../outside/signer-client.ts';
import { readPaymentState } from '../../store/lightning/payment-rows.ts';
import { type ListedPayout, listAllPayouts, type PayoutDetails, readPayoutDetails } from '../../store/payouts/reads.ts';
import type { Config } from '../config/variables.ts';
import { openIntentKey, readIntentPublicKey } from '../wiring/intent-key.ts';
import { signerSocketOf } from '../wiring/signer-paths.ts';
import { addGiveUp } from './give-up.ts';
import { CommandFailed, calledWrongly, evidenceOf, group, leaf, print, table } from './output.ts';
import { addRecover } from './recover.ts';
import { withBooks, withNodes } from './service-access.ts';

type JsonOption = { readonly json?: boolean };
const LISTED = 1_000;

/** Adds `payout …`: what is not over, one payout whole, and what only an operator may decide of it. */
export function addPayoutCommands(bursar: Command): void {
  const payout = group(bursar, 'payout', 'Payouts of all merchants.');
  leaf(payout, 'list', 'Lists payouts and reimbursements that are not over, the oldest first.')
    .addOption(new Option('--status <status>', 'those of one status instead').choices(PAYOUT_STATUSES))
    .action(list);
  leaf(payout, 'show <payout_id>', 'Shows everything of a payout: history, transactions, entries.').action(show);
  leaf(payout, 'approve <payout_id>', 'Approves a payout that waits for it.').action(approve);
  leaf(payout, 'cancel <payout_id>', 'Cancels a payout or reimbursement that is pending: nothing was signed for it.').action(
    cancel,
  );
  leaf(payout, 'resolve <payout_id>', 'Decides a payout whose outcome is unknown (held_reason unknown_outcome).')
    .option(
      '--paid',
      'the destination has the money (by ach: the bank has it to execute, which a recipient knows only once that has settled)',
    )
    .option('--failed', 'the money can no longer leave')
    .option('--node-gone', 'with --failed, over Lightning: the node that was asked is gone for good, so nobody can ask it')
    .requiredOption('--evidence <text>', 'what shows it; stays in the history')
    .action(resolve);
  addRecover(payout);
  addGiveUp(payout);
}

async function list({ json, status }: JsonOption & { status?: PayoutStatus }): Promise<void> {
  const payouts = await withBooks(async (ctx) => {
    const found = await listAllPayouts(ctx.db, { status: status ?? null, limit: LISTED });
    return found.map((one) => ({ ...one, destination: shownDestination(ctx, one) }));
  });
  const head = ['payout', 'merchant', 'status', 'waits for', 'method', 'amount', 'destination', 'requested'];
  const rows = payouts.map((one) => [
    one.id,
    one.affiliateId,
    one.status,
    one.heldReason ?? '-',
    one.method,
    `${one.amountText} ${one.currency}`,
    one.destination,
    new Date(one.createdAtMs).toISOString(),
  ]);
  const none = status === undefined ? 'No payout is open.' : `No payout is ${status}.`;
  print(json, { data: payouts.map(onTheWire) }, rows.length === 0 ? [none] : table(head, rows));
}

function onTheWire(one: ListedPayout): object {
  return {
    payout_id: one.id,
    affiliate_id: one.affiliateId,
    method: one.method,
    amount: one.amountText,
    currency: one.currency,
    status: one.status,
    held_reason: one.heldReason,
    destination: one.destination,
    ...carriedBy(one),
    fee: one.fee === null ? null : formatAmount(one.fee, one.currency),
    error: one.error,
    created_at: new Date(one.createdAtMs).toISOString(),
    completed_at: one.completedAtMs === null ? null : new Date(one.completedAtMs).toISOString(),
  };
}

/** By what it is found outside: over Lightning, also a reimbursement, it has a payment hash and no transaction. */
function carriedBy({ method, trace, paymentHash, txid }: ListedPayout): object {
  if (paymentHash !== null) return { payment_hash: paymentHash };
  return method === 'ach' ? { trace } : { txid };
}

async function show(payoutId: string, { json }: JsonOption): Promise<void> {
  const found = await withBooks(async (ctx) => {
    const read = await readPayoutDetails(ctx.db, payoutId);
    return read === null ? null : { ...read, destination: shownDestination(ctx, read) };
  });
  if (found === null) throw new CommandFailed(`there is no payout ${payoutId}`);
  print(json, detailsOnTheWire(found), linesOf(found));
}

/** The destination; the last four digits of a bank account suffice. */
function shownDestination({ ports }: Pick<Context, 'ports'>, { id, destination }: ListedPayout): string {
  return maskedAccount(openText(ports.sealing, destination, id));
}

/** In the currency of its account, which is the last part of its code before `outbound`. */
function postedAmount({ account, amount }: PayoutDetails['entries'][number]['postings'][number]): string {
  const currency = LEDGER_CODES.find(
    (code) =>
      code ===
      account
        .replace(/:outbound$/, '')
        .split(':')
        .at(-1),
  );
  return currency === undefined ? amount.toString() : formatAmount(amount, currency);
}

function detailsOnTheWire(one: PayoutDetails): object {
  const amount = (minor: bigint): string => formatAmount(minor, one.currency);
  return {
    ...onTheWire(one),
    step: one.step,
    fee_max: amount(one.feeMax),
    not_arrived: one.kept === null ? null : amount(one.kept),
    usd_amount: one.usdMinor === null ? null : formatAmount(one.usdMinor, 'USD'),
    automatic: one.automatic,
    approved_by: one.approvedBy,
    batch_id: one.batchId,
    trouble: one.trouble,
    given_up: one.givenUp,
    events: one.events.map(({ type, status, reason, at }) => ({ type, status, reason, at: at.toISOString() })),
    attempts: one.attempts.map((attempt) => ({
      number: attempt.number,
      txid: attempt.txid,
      fee: amount(attempt.fee),
      share: amount(attempt.share),
      signed_at: attempt.signedAt.toISOString(),
      sent_at: attempt.sentAt?.toISOString() ?? null,
      height: attempt.height,
    })),
    entries: one.entries.map((entry) => ({
      entry_id: String(entry.entryId),
      kind: entry.kind,
      created_at: entry.at.toISOString(),
      postings: entry.postings.map((posting) => ({ account: posting.account, amount: postedAmount(posting) })),
    })),
  };
}

function linesOf(one: PayoutDetails): string[] {
  const amount = (minor: bigint): string => formatAmount(minor, one.currency);
  const waits = one.heldReason === null ? '' : `, waits for ${one.heldReason}`;
  const facts: readonly (readonly [string, string | null])[] = [
    ['payout', `${one.id}, ${one.status} (${one.step})${waits}`],
    ['merchant', one.affiliateId],
    ['amount', `${amount(one.amount)} ${one.currency} by ${one.method}${one.automatic ? ', automatic' : ''}`],
    ['fee', one.fee === null ? `not known yet, at most ${amount(one.feeMax)}` : amount(one.fee)],
    ['not arrived', one.kept === null ? null : `${amount(one.kept)}: its token's contract has kept it, or done something else`],
    ['destination', one.destination],
    ['payment hash', one.paymentHash],
    ['approved by', one.approvedBy],
    ['error', one.error],
    ['trouble', one.trouble],
    ['given up', one.givenUp],
  ];
  const attempts = one.attempts.map((attempt) => [
    String(attempt.number),
    attempt.txid,
    amount(attempt.share),
    attempt.signedAt.toISOString(),
    attempt.sentAt?.toISOString() ?? '-',
    attempt.height === null ? '-' : String(attempt.height),
  ]);
  const entries = one.entries.flatMap((entry) =>
    entry.postings.map((posting, n) => [
      n === 0 ? String(entry.entryId) : '',
      n === 0 ? entry.kind : '',
      posting.account,
      postedAmount(posting),
      n === 0 ? entry.at.toISOString() : '',
    ]),
  );
  return [
    ...facts.flatMap(([name, text]) => (text === null ? [] : [`${name.padEnd(13)}${text}`])),
    '',
    ...table(
      ['when', 'what', 'reason'],
      one.events.map((event) => [event.at.toISOString(), event.type, event.reason]),
    ),
    ...(attempts.length === 0
      ? []
      : ['', ...table(['number', 'transaction', 'share of fee', 'signed', 'sent', 'height'], attempts)]),
    ...(entries.length === 0 ? [] : ['', ...table(['entry', 'kind', 'account', 'debit +, credit -', 'when'], entries)]),
  ];
}

async function approve(payoutId: string, { json }: JsonOption): Promise<void> {
  const after = await withBooks(async (ctx, { dataFolder }) => {
    // whoever moves the money believes the key of an API, and not the database
    const intentKey = await ownIntentKey(dataFolder);
    return approvePayout({ ...ctx, ports: { ...ctx.ports, intentKey } }, { payoutId, by: userInfo().username });
  });
  const waits = after.heldReason === null ? '' : ` and waits for ${after.heldReason}`;
  print(json, { payout_id: payoutId, status: after.status, held_reason: after.heldReason }, [
    `${payoutId} is approved; it is ${after.status}${waits}.`,
  ]);
}

async function cancel(payoutId: string, { json }: JsonOption): Promise<void> {
  const after = await withBooks((ctx) => cancelByOperator(ctx, { payoutId, by: userInfo().username }));
  print(json, { payout_id: payoutId, status: after.status }, [`${payoutId} is cancelled.`]);
}

/** The key of the API of this data folder; without one, an approval that needs it fails. */
async function ownIntentKey(dataFolder: string): Promise<IntentKey> {
  if ((await readIntentPublicKey(dataFolder)) !== null) return openIntentKey(dataFolder);
  return {
    sign() {
      throw new CommandFailed(
        `no API has a key in ${dataFolder}: approve on the server and as the user of one (BURSAR_DATA_DIR)`,
      );
    },
  };
}

type ResolveOptions = JsonOption & {
  readonly paid?: boolean;
  readonly failed?: boolean;
  readonly nodeGone?: boolean;
  readonly evidence: string;
};

async function resolve(payoutId: string, options: ResolveOptions): Promise<void> {
  const { json, paid = false, failed = false, nodeGone: isNodeGone = false, evidence } = options;
  if (paid === failed) throw calledWrongly('exactly one of --paid and --failed is required');
  if (paid && isNodeGone) throw calledWrongly('--node-gone goes with --failed');
  const text = evidenceOf(evidence);
  // over Lightning the node is asked whether it may still be paid; of what nobody was asked to pay, whether it was
  const state = await withBooks((ctx) => readPaymentState(ctx.db, payoutId));
  const asksNode = failed ? state !== null : state === 'waiting';
  const resolution = { payoutId, outcome: paid ? 'paid' : 'failed', evidence: text, isNodeGone } as const;
  const after = await (asksNode
    ? withNodes((ctx, config) => resolvePayout(ctx, resolution, (paymentHash) => trackedBySigner(config, paymentHash)))
    : withBooks((ctx) => resolvePayout(ctx, resolution)));
  print(json, { payout_id: payoutId, status: after.status }, [`${payoutId} is ${after.status}.`]);
}

/** What the node that pays says of a payment, or why the signer, or the node, cannot be asked. */
async function trackedBySigner(config: Config, paymentHash: string): ReturnType<Track> {
  const client = createSignerClient(signerSocketOf(config));
  try {
    return await client.ask<'track_payment'>({ op: 'track_payment', paymentHash });
  } catch (error) {
    if (error instanceof SignerTrouble) return { unasked: error.message };
    throw error;
  } finally {
    client.close();
  }
}
