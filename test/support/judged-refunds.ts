// What happens to the reimbursements of a judged transaction: taken, in a batch, confirmed, impossible, displaced.
import type { CurrencyCode } from '../../src/core/currency.ts';
import type { Case, Refund } from '../../src/core/judge/case.ts';
import { reimburse } from '../../src/core/judge/refunds.ts';
import type { Books } from './books.ts';
import type { JudgedTransaction } from './judged-transaction.ts';

/** @param at the refunds of whose end the judge has taken no note, and how the judge is asked */
export function refundMoves(at: {
  readonly currency: CurrencyCode;
  readonly books: Books;
  read(): readonly Refund[];
  write(refunds: readonly Refund[]): void;
  settle(word?: (it: Case) => void): void;
}) {
  let ids = 0;
  const first = (): Refund => at.read()[0] as Refund;

  /** Out of what is payable, to the customer; or back. */
  function move({ id, currency }: Refund, amount: bigint): void {
    const postings = [
      { account: `refund_payable:txn_1:${currency}`, amount },
      { account: `sent:${currency}`, amount: -amount },
    ];
    at.books.post({ key: `po:${id}:${amount > 0n ? 'final' : 'return'}`, kind: 'reimbursement', parts: [], postings });
  }
  function end(ended: Refund): void {
    // the oldest first, as the store reads them
    at.write([ended, ...at.read().filter((refund) => refund.id !== ended.id)]);
    at.settle();
  }

  return {
    /** A reimbursement is taken: its payments wait to be sent. */
    openRefund(part: Refund['part'] = 'whole', currency: CurrencyCode = at.currency, least = 1n): void {
      ids += 1;
      at.settle((it) => void reimburse(it, { id: `refund_${ids}`, currency, part, least }));
    },
    /** It is in a batch: from here on only the chain ends it. */
    commitRefund(): void {
      at.write(at.read().map((refund) => ({ ...refund, state: 'committed' })));
    },
    /** It is confirmed on chain (rule 13). */
    finishRefund(): Refund {
      const refund = first();
      move(refund, refund.total);
      end({ ...refund, state: 'completed' });
      return refund;
    },
    /** None of its transactions can be mined any more. */
    failRefund: (): void => end({ ...first(), state: 'failed' }),
    /** One that was confirmed never arrived, for good. */
    displaceRefund(refund: Refund): void {
      move(refund, -refund.total);
      end({ ...refund, state: 'failed' });
    },
    /** Those of whose end the judge has taken no note. */
    refundStates: () => at.read().map((refund) => refund.state),
  };
}

/** What waits to go back, and where everything is: available, suspense, payable, receivable. */
export const payable = (judged: JudgedTransaction, code = 'BTC') => judged.books.of(`refund_payable:txn_1:${code}`);
export const places = (judged: JudgedTransaction) => [
  judged.available(),
  judged.suspense(),
  payable(judged),
  judged.receivable(),
];

/** The code of what a decision is refused with. */
export const refusal = (work: () => void): string => {
  try {
    work();
  } catch (error) {
    return (error as { code: string }).code;
  }
  return 'nothing was refused';
};
