// `bursar review list|accept|decline|reimburse`: the operator's decision on transactions that wait for one.
import { type Command, Option } from 'commander';
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import { formatAmount } from '../../core/money.ts';
import { reimburseTransaction } from '../../flow/payouts/reimbursements.ts';
import { resolveTransaction } from '../../flow/transactions/create-cancel-resolve.ts';
import { listReviews, type Review } from '../../store/transactions/reviews.ts';
import { openIntentKey } from '../wiring/intent-key.ts';
import { group, leaf, print, table, watchedCode } from './output.ts';
import { withBooks } from './service-access.ts';

type JsonOption = { readonly json?: boolean };
const LISTED = 1_000;

/**
 * Adds `review list`, `review accept`, `review decline` and `review reimburse`: rules 12 to 14 by the operator, with the refusals of
 * `/resolve_transaction`.
 */
export function addReviewCommands(bursar: Command): void {
  const review = group(bursar, 'review', 'Transactions that wait for a decision.');
  leaf(review, 'list', 'Lists transactions in review, the oldest first.')
    .option('--declined', 'also declined ones that have payments in suspense')
    .option('--currency <code>', `only what was asked for in one of ${CURRENCY_CODES.join(', ')}`, watchedCode)
    .action(async ({ json, declined, currency }: JsonOption & { declined?: boolean; currency?: CurrencyCode }) => {
      const wanted = { declined: declined === true, currency, limit: LISTED };
      const reviews = await withBooks((ctx) => listReviews(ctx.db, wanted));
      const head = ['transaction', 'merchant', 'status', 'asked', 'received', 'suspense', 'reason'];
      const rows = reviews.map((one) => [
        one.transactionId,
        one.affiliateId,
        one.status,
        `${formatAmount(one.amountDue, one.currency)} ${one.currency}`,
        formatAmount(one.received, one.currency),
        one.suspense.map(({ currency, amount }) => `${formatAmount(amount, currency)} ${currency}`).join(', ') || '-',
        one.reason ?? '-',
      ]);
      print(json, { data: reviews.map(onTheWire) }, rows.length === 0 ? ['Nothing is in review.'] : table(head, rows));
    });
  leaf(review, 'accept <transaction_id>', 'Credits the payments in suspense to the merchant.')
    .addOption(new Option('--part <part>', 'only what is in suspense, the status stays').choices(['excess']))
    .action((id: string, options: JsonOption & { part?: 'excess' }) => resolve(id, 'accept', options));
  leaf(review, 'decline <transaction_id>', 'Refuses the transaction; its payments stay in suspense.').action(
    (id: string, options: JsonOption) => resolve(id, 'decline', options),
  );
  leaf(review, 'reimburse <transaction_id>', 'Sends what came in back to the customer, less the network fee.')
    .requiredOption(
      '--destination <address>',
      "the customer's address; over Lightning an invoice, a Lightning address or an LNURL",
    )
    .addOption(new Option('--part <part>', 'only what is in suspense, the status stays').choices(['excess']))
    .option('--currency <code>', "the currency that goes back, if not the transaction's", watchedCode)
    .action(reimburse);
}

async function resolve(
  transactionId: string,
  action: 'accept' | 'decline',
  options: JsonOption & { part?: 'excess' },
): Promise<void> {
  const part = options.part ?? null;
  const { status } = await withBooks((ctx) => resolveTransaction(ctx, { merchantId: null, transactionId, action, part }));
  print(options.json, { transaction_id: transactionId, status }, [`${transactionId} is ${status}.`]);
}

type ReimburseOptions = JsonOption & { destination: string; part?: 'excess'; currency?: CurrencyCode };

/** With the key of the API beside it: the signer acts on no other. */
async function reimburse(transactionId: string, options: ReimburseOptions): Promise<void> {
  const { destination, part = null, currency = null } = options;
  const request = { merchantId: null, transactionId, destination, part, currency };
  const { status } = await withBooks(async (ctx, config) => {
    const intentKey = await openIntentKey(config.dataFolder);
    return reimburseTransaction({ ...ctx, ports: { ...ctx.ports, intentKey } }, request);
  });
  print(options.json, { transaction_id: transactionId, status }, [
    `The reimbursement of ${transactionId} is taken; it leaves when its payments are final. The transaction is ${status} until then.`,
  ]);
}

function onTheWire(one: Review): unknown {
  return {
    transaction_id: one.transactionId,
    affiliate_id: one.affiliateId,
    status: one.status,
    crypto_selected: one.currency,
    usd_amount: formatAmount(one.usdMinor, 'USD'),
    crypto_amount: formatAmount(one.amountDue, one.currency),
    crypto_received: formatAmount(one.received, one.currency),
    suspense: Object.fromEntries(one.suspense.map(({ currency, amount }) => [currency, formatAmount(amount, currency)])),
    reason: one.reason,
    created_at: one.createdAt.toISOString(),
  };
}
