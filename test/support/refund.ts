// What a reimbursement does to a case, for tests of the judge around one. Reimbursements are not built yet: these are the postings of the
// ledger's templates, each unit taken from where it is.
import { BalancesNeeded, type Case, type Posting } from '../../src/core/judge/case.ts';
import { inQuotedCurrency } from '../../src/core/judge/payments.ts';
import { applyEvent } from '../../src/core/judge/steps.ts';

export function approveRefund(it: Case): void {
  if (it.balances === null) throw new BalancesNeeded();
  const { currency } = it.transaction;
  const coins = it.payments.filter((coin) => inQuotedCurrency(it, coin));
  const sum = (name: 'inAvailable' | 'inSuspense'): bigint => coins.reduce((total, coin) => total + coin[name], 0n);
  const balance = it.balances.get(currency) ?? { available: 0n, receivable: 0n };
  balance.available -= sum('inAvailable');
  post(it, 'approve', [
    { account: `merchant:1:available:${currency}`, amount: sum('inAvailable') },
    { account: `suspense:txn_1:${currency}`, amount: sum('inSuspense') },
    { account: `refund_payable:txn_1:${currency}`, amount: -sum('inAvailable') - sum('inSuspense') },
  ]);
  for (const coin of coins)
    Object.assign(coin, { inRefund: coin.inAvailable + coin.inSuspense, inAvailable: 0n, inSuspense: 0n });
}

export function finishRefund(it: Case): void {
  const { currency } = it.transaction;
  const total = it.payments.reduce((all, coin) => all + coin.inRefund, 0n);
  post(it, 'final', [
    { account: `refund_payable:txn_1:${currency}`, amount: total },
    { account: `sent:${currency}`, amount: -total },
  ]);
  for (const coin of it.payments) Object.assign(coin, { sentBack: coin.sentBack + coin.inRefund, inRefund: 0n });
  if (!applyEvent(it, 'reimbursement_confirmed')) throw new Error('no row for a reimbursement');
}

function post(it: Case, what: string, lines: Posting[]): void {
  it.steps.push({
    kind: 'post',
    entry: {
      key: `rei:${it.transaction.sequence}:${what}`,
      kind: 'reimbursement',
      postings: lines.filter((line) => line.amount !== 0n),
      parts: [],
    },
  });
}
