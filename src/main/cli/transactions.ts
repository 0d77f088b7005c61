// `bursar transaction show|decide`: all that an operator needs to answer a customer or a merchant, and what to do about a transaction that
// was set aside.
import type { Command } from 'commander';
import { formatAmount } from '../../core/money.ts';
import { reconsiderLarge } from '../../flow/transactions/create-cancel-resolve.ts';
import { describeUnprotected } from '../../store/chain/unprotected-payments.ts';
import {
  type FoundEarlyPayment,
  type FoundTransaction,
  findTransactions,
  readFoundTransaction,
} from '../../store/transactions/lookup.ts';
import { unprotectedValue } from './chain.ts';
import { CommandFailed, group, leaf, print, table } from './output.ts';
import { withBooks } from './service-access.ts';

type JsonOption = { readonly json?: boolean };
const SHOWN = 20;

/** Adds `transaction show` and `transaction decide`. */
export function addTransactionCommands(bursar: Command): void {
  const transaction = group(bursar, 'transaction', 'Transactions of all merchants.');
  leaf(
    transaction,
    'show <what>',
    `Shows everything of the transactions with this id, address, label or a payment of this txid; the newest ${SHOWN}.`,
  ).action(show);
  leaf(
    transaction,
    'decide <transaction_id>',
    'Decides now what is due for a transaction that was set aside, however many payments it has; it may need much time and memory.',
  ).action(decideNow);
}

async function decideNow(transactionId: string, { json }: JsonOption): Promise<void> {
  const status = await withBooks((ctx) => reconsiderLarge(ctx, transactionId));
  if (status === null) throw new CommandFailed(`there is no transaction ${transactionId}`);
  print(json, { transaction_id: transactionId, status }, [`${transactionId} is ${status}.`]);
}

async function show(what: string, { json }: JsonOption): Promise<void> {
  const found = await withBooks(async (ctx) => {
    const ids = await findTransactions(ctx.db, what, SHOWN);
    const all = await Promise.all(ids.map((id) => readFoundTransaction(ctx.db, id)));
    return all.filter((one) => one !== null);
  });
  if (found.length === 0)
    throw new CommandFailed(`no transaction has ${what} as its id, address or label, or a payment of that txid`);
  print(
    json,
    { data: found.map(onTheWire) },
    found.flatMap((one, n) => [...(n === 0 ? [] : ['']), ...linesOf(one)]),
  );
}

function onTheWire(one: FoundTransaction): unknown {
  const { currency } = one;
  return {
    transaction_id: one.id,
    affiliate_id: one.affiliateId,
    status: one.status,
    crypto_selected: currency,
    usd_amount: formatAmount(one.usdMinor, 'USD'),
    crypto_amount: formatAmount(one.amountDue, currency),
    crypto_received: formatAmount(one.received, currency),
    exchange_rate: one.rate,
    tolerance_percent: formatAmount(BigInt(one.toleranceBps), 'USD'),
    late_payments: one.latePayments,
    label: one.label,
    email: one.email,
    wallet_address: one.address,
    created_at: one.createdAt.toISOString(),
    expires_at: one.windowEndsAt.toISOString(),
    confirmed_at: one.confirmedAt?.toISOString() ?? null,
    succeeded_at: one.succeededAt?.toISOString() ?? null,
    events: one.events.map((event) => ({ ...event, at: event.at.toISOString() })),
    payments: one.payments.map((payment) => ({
      currency: payment.currency,
      txid: payment.txid,
      vout: payment.vout,
      amount: formatAmount(payment.amount, payment.currency),
      state: payment.state,
      lock: payment.lock,
      height: payment.height,
      confirmations: payment.confirmations,
      seen_at: payment.seenAt.toISOString(),
      counted: payment.counted,
      available: formatAmount(payment.inAvailable, payment.currency),
      suspense: formatAmount(payment.inSuspense, payment.currency),
      replaced_by: payment.conflictTxid,
    })),
    early_payments: one.earlyPayments.map((payment) => ({
      currency: payment.currency,
      txid: payment.txid,
      vout: payment.vout,
      amount: formatAmount(payment.amount, payment.currency),
      height: payment.height,
      noted_at: payment.notedAt.toISOString(),
      state: payment.state,
    })),
    unprotected: one.unprotected.map(unprotectedValue),
    entries: one.entries.map((entry) => ({
      entry_id: String(entry.entryId),
      kind: entry.kind,
      key: entry.key,
      created_at: entry.createdAt.toISOString(),
      postings: entry.postings.map((posting) => ({ ...posting, amount: formatAmount(posting.amount, posting.currency) })),
    })),
  };
}

function linesOf(one: FoundTransaction): string[] {
  const { currency } = one;
  const asked = `${formatAmount(one.usdMinor, 'USD')} USD = ${formatAmount(one.amountDue, currency)} ${currency} at ${one.rate}`;
  const facts: readonly (readonly [string, string])[] = [
    ['transaction', `${one.id}, ${one.status}`],
    ['merchant', one.affiliateId],
    ['asked', `${asked}, tolerance ${formatAmount(BigInt(one.toleranceBps), 'USD')} %`],
    ['received', `${formatAmount(one.received, currency)} ${currency}`],
    ['address', one.address],
    ['window', `${one.createdAt.toISOString()} to ${one.windowEndsAt.toISOString()}; late payments: ${one.latePayments}`],
    ...(one.label === null ? [] : [['label', one.label] as const]),
    ...(one.email === null ? [] : [['email', one.email] as const]),
  ];
  const events = one.events.map((event) => [
    event.at.toISOString(),
    event.type === `transaction.${event.status}` ? event.status : event.type,
    event.reason,
  ]);
  const payments = one.payments.map((payment) => [
    `${payment.txid}:${payment.vout}`,
    `${formatAmount(payment.amount, payment.currency)} ${payment.currency}`,
    payment.conflictTxid === null ? payment.state : `${payment.state} (by ${payment.conflictTxid})`,
    String(payment.confirmations),
    payment.lock ?? '-',
    formatAmount(payment.inAvailable, payment.currency),
    formatAmount(payment.inSuspense, payment.currency),
    payment.seenAt.toISOString(),
  ]);
  const entries = one.entries.flatMap((entry) =>
    entry.postings.map((posting, n) => [
      n === 0 ? String(entry.entryId) : '',
      n === 0 ? entry.kind : '',
      posting.account,
      `${formatAmount(posting.amount, posting.currency)} ${posting.currency}`,
      n === 0 ? entry.createdAt.toISOString() : '',
    ]),
  );
  return [
    ...facts.map(([name, text]) => `${name.padEnd(12)}${text}`),
    '',
    ...table(['when', 'status', 'reason'], events),
    '',
    ...(payments.length === 0
      ? ['No payment was seen.']
      : table(['payment', 'amount', 'state', 'confirmations', 'lock', 'available', 'suspense', 'seen'], payments)),
    ...one.earlyPayments.map(earlyLine),
    ...one.unprotected.map(describeUnprotected),
    ...(entries.length === 0 ? [] : ['', ...table(['entry', 'kind', 'account', 'debit +, credit -', 'when'], entries)]),
  ];
}

function earlyLine({ txid, vout, amount, currency, height, notedAt, state }: FoundEarlyPayment): string {
  const place = height === null ? 'in the mempool' : `in block ${height}`;
  const what = `${txid}:${vout}, ${formatAmount(amount, currency)} ${currency}, found ${place} at ${notedAt.toISOString()}: it was there before this transaction was made`;
  if (state === 'accepted') return `Accepted as a payment by an operator: ${what}.`;
  return `Noted, not a payment: ${what}${state === 'acknowledged' ? '; an operator has acknowledged it' : ''}.`;
}
