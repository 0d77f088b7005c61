// What the service shows and has booked of an order, against what the rules of rules.ts say; and whether the audit that recomputes decisions agrees
// at every moment, also while the judge has not looked yet.
import { checkTransaction } from '../../src/flow/transactions/reads.ts';
import { ask } from '../../src/store/ledger/audit.ts';
import { OF_DERIVED } from '../../src/store/ledger/derived-audit.ts';
import { type ChainCode, finalDepthOf } from './behaviour.ts';
import type { Order, View } from './orders.ts';
import { confirmations, received } from './rules.ts';
import type { SimulatedService } from './simulated-service.ts';

type Compared = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly order: Order;
  readonly view: View;
  /** Nobody can read the order's chain: how deep its payments are is as it was. */
  readonly isDown: boolean;
};
const UNCONFIRMED = ['started', 'timedout', 'timedout_checked', 'cancelled', 'pending'];

/** Every difference, in words. */
export async function differences(service: Pick<SimulatedService, 'ctx' | 'db'>, compared: Compared): Promise<string[]> {
  const { id, merchantId, order, view, isDown } = compared;
  const shown = await checkTransaction(service.ctx, { merchantId, transactionId: id });
  const { rows: sums } = await service.db.query<{ currency: ChainCode; kind: string; amount: string }>({
    text: `select p.currency, a.kind, sum(-p.amount)::text as amount from ledger.entry e join ledger.posting p on p.entry_id = e.id
             join ledger.account a on a.id = p.account_id where e.transaction_id = $1 group by 1, 2`,
    values: [id],
  });
  const booked = (code: ChainCode, ...kinds: string[]): bigint =>
    sums.filter((row) => row.currency === code && kinds.includes(row.kind)).reduce((sum, row) => sum + BigInt(row.amount), 0n);
  const wrong: string[] = [];
  const expect = (what: string, is: unknown, must: unknown): void => {
    if (String(is) !== String(must)) wrong.push(`${what} is ${is}, by the rules ${must}`);
  };
  expect('status', shown.status, order.status);
  for (const code of service.ctx.currencies as readonly ChainCode[]) {
    const own = order.arrived.filter((one) => one.currency === code);
    const of = (part: 'credit' | 'suspense'): bigint => own.reduce((sum, { booked: at }) => sum + (at?.[part] ?? 0n), 0n);
    expect(`credit in ${code}`, booked(code, 'available', 'receivable', 'income'), of('credit'));
    expect(`suspense in ${code}`, booked(code, 'suspense'), of('suspense'));
  }
  expect('crypto_received', shown.receivedMinor, received(order));
  const final = finalDepthOf(order.terms.currency);
  if (!isDown && !order.isAmbiguous && !order.wasRefunded)
    expect('confirmations', Math.min(shown.confirmations, final), Math.min(confirmations(order, view), final));
  const isConfirmed = ['succeeded', 'settled'].includes(order.status);
  if (isConfirmed || UNCONFIRMED.includes(order.status)) expect('confirmed_at is set', shown.confirmedAtMs !== null, isConfirmed);
  return wrong;
}

/** What BOOK-15 to BOOK-21 find. @param when told with each */
export async function redAnswers(service: Pick<SimulatedService, 'ctx' | 'db'>, when: string): Promise<string[]> {
  const answers = await ask(service.db, OF_DERIVED, null);
  return answers.flatMap(({ id, findings }) => findings.map((finding) => `${when} ${id} is red: ${finding}`));
}
