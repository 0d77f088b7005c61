// What a transaction of one of our addresses on Ethereum's chain has sent of what the address had, and that was not signed here.
import { type EvmCode, isToken } from '../../core/currency.ts';
import { isOfSender } from '../../core/evm/outcome.ts';
import { sum } from '../../core/money.ts';
import { keptOf } from '../../core/payouts/sweeps.ts';
import type { OutputFacts, TransactionFacts } from '../../core/ports.ts';

/** What it has sent of what the address had: none where it failed, or only others have sent theirs. Null: nobody but a person knows what it has done. */
export function sentBy({
  currency,
  facts,
}: {
  readonly currency: EvmCode;
  readonly facts: TransactionFacts;
}): readonly OutputFacts[] | null {
  const { outcome, outputs } = facts;
  if (outcome === undefined || outcome.result === 'failed') return outcome === undefined ? null : [];
  // what contracts have sent on is theirs, and what somebody lets the address send is his
  const own = isToken(currency) ? outputs.filter(isOfSender) : outputs.filter(({ vout }) => vout === 0);
  if (outcome.result === 'paid' || (own.length === 0 && outputs.length > 0)) return own;
  const byFee = sentByFee(facts);
  return byFee === null ? null : [byFee];
}

/** All together, of which none pays a payout; null: nothing. */
export function together(sent: readonly OutputFacts[]): OutputFacts | null {
  const [first] = sent;
  return first === undefined ? null : { ...first, amountMinor: sum(sent.map(({ amountMinor }) => amountMinor)) };
}

/** Of a transfer of which a token's contract has kept a part: whoever got most was sent all that has left. Null where it is something else. */
function sentByFee(facts: TransactionFacts): OutputFacts | null {
  const amountMinor = sum(facts.outputs.map((output) => output.amountMinor));
  const [payee, ...others] = facts.outputs.toSorted((a, b) => (a.amountMinor > b.amountMinor ? -1 : 1));
  // all may be kept, so that nobody else got any
  const isFee = others.length <= 1 && others.every(({ script }) => script !== payee?.script);
  if (payee === undefined || !isFee || keptOf(facts, { target: Buffer.alloc(0), amount: amountMinor }) === null) return null;
  return { ...payee, amountMinor };
}
