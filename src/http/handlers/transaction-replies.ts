// Results as replies (behaviour §1: decimal strings, UTC with milliseconds).
import { rawJson } from '../../contract/raw-json.ts';
import type { checkedTransaction, createdTransaction, entryList, transactionList } from '../../contract/replies.ts';
import type { TypeOf } from '../../contract/shapes.ts';
import { formatAmount, formatMinor } from '../../core/money.ts';
import { type PaymentChain, paymentUri } from '../../core/payment-uri.ts';
import { formatRate } from '../../core/rate.ts';
import type { TransactionStatus } from '../../core/transaction-states.ts';
import { type RefundShown, readRefund } from '../../flow/payouts/reimbursements.ts';
import type { CreatedTransaction } from '../../flow/transactions/create-cancel-resolve.ts';
import {
  expandTransaction,
  type listBalanceEntries,
  type TransactionList,
  type TransactionView,
} from '../../flow/transactions/reads.ts';
import type { OpenCall } from '../operation.ts';
import { qrDataUri } from '../qr/data-uri.ts';

/** UTC, ISO 8601 with milliseconds and Z. */
export function isoTime(ms: number): string {
  return new Date(ms).toISOString();
}

/** A price in the form in which sources are stored with it. */
export function rateReply(rate: { readonly usd: bigint; readonly atMs: number; readonly sources: unknown }) {
  return {
    usd: formatRate(rate.usd),
    at: isoTime(rate.atMs),
    sources: rate.sources as { source: string; usd: string; at: string }[],
  };
}

/** The answer of `/create_transaction`: exactly the fields of behaviour §8. */
export function createdReply(made: CreatedTransaction): TypeOf<typeof createdTransaction> {
  return {
    transaction_id: made.transactionId,
    wallet_address: made.address,
    qr_code: qrDataUri(made.uri),
    crypto_amount: formatAmount(made.amountDue, made.currency),
    usd_amount: formatMinor(made.usdMinor, 2),
    exchange_rate: formatRate(made.rate),
    expires_at: isoTime(made.expiresAtMs),
    status: made.status,
  };
}

/** The answer of `/check_transaction`: exactly the fields of behaviour §8, in every status. */
export function checkedReply(view: TransactionView): TypeOf<typeof checkedTransaction> {
  return {
    transaction_id: view.transactionId,
    status: view.status,
    crypto_amount: formatAmount(view.amountDue, view.currency),
    crypto_received: formatAmount(view.receivedMinor, view.currency),
    confirmations: view.confirmations,
    usd_amount: formatMinor(view.usdMinor, 2),
    created_at: isoTime(view.createdAtMs),
    confirmed_at: view.confirmedAtMs === null ? null : isoTime(view.confirmedAtMs),
  };
}

/** One sentence for each status, for people. */
const SENTENCES: Readonly<Record<TransactionStatus, string>> = {
  started: 'Waiting for the payment.',
  pending: 'A payment was seen and waits for confirmations.',
  confirmed: 'The payment is confirmed.',
  succeeded: 'Paid and credited to the balance.',
  timedout: 'Not paid in time; the address is still watched.',
  cancelled: 'Cancelled by the merchant.',
  declined: 'The wrong amount was received.',
  review: 'Something unexpected was received; the merchant decides.',
  reimbursed: 'Returned to the customer.',
  settled: 'Paid, credited and final.',
  timedout_checked: 'No payment within 24 hours.',
};

/** How many QR codes are drawn before other calls have their turn: some 4 ms. */
const DRAWN_AT_ONCE = 10;

/** A page of a list. Codes that were drawn before are kept (qr/data-uri.ts); the others take time, which other calls must not wait for. */
export async function listReply(list: TransactionList, chain: PaymentChain): Promise<TypeOf<typeof transactionList>> {
  const data: TypeOf<typeof transactionList>['data'][number][] = [];
  for (const item of list.data) {
    if (data.length % DRAWN_AT_ONCE === DRAWN_AT_ONCE - 1) await new Promise(setImmediate);
    data.push({
      ...checkedReply(item),
      wallet_address: item.address,
      qr_code: qrDataUri(paymentUri(item.currency, item.address, item.amountDue, chain)),
      exchange_rate: formatRate(item.rate),
      expires_at: isoTime(item.expiresAtMs),
      message: SENTENCES[item.status],
      crypto_selected: item.currency,
      label: item.label,
    });
  }
  return { success: true, data, has_more: list.hasMore };
}

/** A page of `/list_balance_entries`. Amounts are signed, in the entry's own currency. */
export function entriesReply(entries: Awaited<ReturnType<typeof listBalanceEntries>>): TypeOf<typeof entryList> {
  return {
    success: true,
    data: entries.data.map((entry) => ({
      entry_id: String(entry.entryId),
      currency: entry.currency,
      amount: formatAmount(entry.amount, entry.currency),
      balance_after: formatAmount(entry.balanceAfter, entry.currency),
      kind: entry.kind,
      ...(entry.transactionId === null ? {} : { transaction_id: entry.transactionId }),
      // of a reimbursement only the transaction is shown
      ...(entry.payoutId === null || entry.transactionId !== null ? {} : { payout_id: entry.payoutId }),
      created_at: isoTime(entry.createdAtMs),
    })),
    has_more: entries.hasMore,
  };
}

type Name = 'payments' | 'events' | 'refund' | 'rate' | 'checkout';

type Expanded = Pick<TypeOf<typeof checkedTransaction>, Name>;

function refundReply(refund: RefundShown | null): Exclude<Expanded['refund'], undefined> {
  if (refund === null) return null;
  const { status, amount, fee, currency, destination, txid } = refund;
  return { status, amount: formatAmount(amount, currency), destination, txid, fee: formatAmount(fee, currency) };
}

/** The fields that `expand` names; nothing is read when it names none. What may be long waits for its turn among the merchant's lists. */
export async function expansion(
  { ctx, context, request }: Pick<OpenCall, 'ctx' | 'context' | 'request'>,
  of: { readonly merchantId: bigint; readonly transactionId: string },
  names: readonly Name[] | null,
): Promise<Expanded> {
  if (names === null || names.length === 0) return {};
  const read = () => expandTransaction(ctx, { ...of, names });
  const isLong = names.includes('payments') || names.includes('events');
  // inside a keyed write a connection is held already, and may not wait for others that hold some
  const found = await (isLong && ctx.afterwards === undefined ? context.lists(of.merchantId, read) : read());
  const refund = names.includes('refund') ? refundReply(await readRefund(ctx, of.transactionId)) : null;
  const all: { readonly [N in Name]: () => Expanded[N] } = {
    payments: () => rawJson<Expanded['payments']>(found.payments ?? '[]'),
    events: () => rawJson<Expanded['events']>(found.events ?? '[]'),
    refund: () => refund,
    rate: () => rateReply(found.rate),
    checkout: () => ({ url: `${context.baseUrl(request)}/pay/${context.checkoutTokens.tokenOf(of.transactionId)}` }),
  };
  return Object.fromEntries(names.map((name) => [name, all[name]()]));
}
