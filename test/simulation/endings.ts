// Where a purchase must end, as far as behaviour §3 leaves no choice: computed from what was sent, when, and what it was worth, without any
// of the product's rules. For tangled histories only bounds are checked.
import { CODES, type Code, DAY } from './behaviour.ts';
import type { Model, Purchase, Sent } from './model.ts';

export type Life = {
  readonly status: string;
  readonly received: bigint;
  /** Statuses in their order; `rule` is null for the first. */
  readonly steps: readonly { readonly status: string; readonly rule: number | null; readonly at: number }[];
  readonly path: readonly string[];
};
export type Given = { readonly credited: bigint; readonly creditedRight: bigint };

const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
const total = (amounts: readonly bigint[]): bigint => amounts.reduce((sum, amount) => sum + amount, 0n);

/** 1 % (or what the merchant has set) of amountDue, at most what 5 USD buy. */
function enoughOf({ amountDue, price, merchant }: Purchase): { enough: bigint; most: bigint; cents: bigint } {
  const bps = BigInt(merchant.toleranceBps);
  const tolerance = least((amountDue * bps) / 10_000n, (5_00n * 10n ** 8n) / price);
  return { enough: amountDue - tolerance, most: amountDue + tolerance, cents: bps };
}
/** usd − tolerance as base units × price in cents per unit: nothing is rounded. */
const enoughExactly = ({ cents, merchant }: Purchase): bigint =>
  cents * 10n ** 8n - least(cents * BigInt(merchant.toleranceBps) * 10n ** 4n, 5_00n * 10n ** 8n);

/** What is wrong with the status and the credit of a purchase at rest. */
export function expectedEnd(model: Model, purchase: Purchase, life: Life, given: Given): string[] {
  return [...bounds(model, purchase, life, given), ...ending(model, purchase, life, given)];
}

/** What holds however tangled the history was. */
function bounds(model: Model, purchase: Purchase, life: Life, { credited, creditedRight }: Given): string[] {
  const found: string[] = [];
  const { words } = purchase;
  const rules = new Set(life.steps.map((step) => step.rule));
  const { enough } = enoughOf(purchase);
  if (credited < 0n) found.push(`the merchant was given ${credited}`);
  const byWord = words.accepted || words.acceptedExcess;
  if (life.status === 'settled' && !byWord) {
    const worth = creditedRight * model.highest(purchase.currency);
    if (rules.has(11) ? worth < enoughExactly(purchase) : creditedRight < enough) {
      found.push(`it is settled with ${creditedRight} credited of ${enough} at least`);
    }
    if (!rules.has(11) && creditedRight > enoughOf(purchase).most)
      found.push(`${creditedRight} was credited, the price is ${purchase.amountDue}`);
  }
  if (life.status === 'settled' && creditedRight === 0n && !words.accepted) found.push('it is settled without money');
  if (['timedout_checked', 'cancelled'].includes(life.status)) {
    // another currency that came while it was pending changed no status then (rule 18) and lies in suspense
    const elsewhere = life.path.includes('pending') ? [] : CODES.filter((currency) => currency !== purchase.currency);
    const here = [purchase.currency, ...elsewhere].flatMap((currency) => model.outputsAt(purchase, currency));
    if (here.length > 0) found.push(`it is ${life.status}, and ${here} lies at its address`);
  }
  if (['timedout_checked', 'cancelled'].includes(life.status) && !byWord && credited > 0n) found.push(`${credited} was credited`);
  if (life.status === 'declined' && !byWord && !rules.has(17) && credited > 0n) found.push(`${credited} was credited`);
  if (life.status === 'review' && !byWord && !rules.has(17) && credited > 0n)
    found.push(`${credited} was credited without rule 17`);
  return found;
}

type Kind = 'on time' | 'late' | 'unclear';

function kindOf(sent: Sent, purchase: Purchase): Kind {
  if (sent.seen === null || sent.fuzzy) return 'unclear';
  return sent.seen.onTime(purchase) ? 'on time' : 'late';
}

/** The one place to end in, for histories in which nothing that was sent ever left the view of our node. */
function ending(model: Model, purchase: Purchase, life: Life, { creditedRight }: Given): string[] {
  const { words, currency } = purchase;
  const sent = model.sent.filter((one) => one.outputs.some((output) => output.purchase === purchase));
  const must = (...statuses: string[]): string[] =>
    statuses.includes(life.status) ? [] : [`it is ${life.status}, and must be ${statuses.join(' or ')}`];
  if (sent.length === 0) {
    const path = words.cancelled ? 'started,cancelled' : 'started,timedout,timedout_checked';
    return String(life.path) === path ? [] : [`nothing was ever sent: ${path}`];
  }
  if (words.accepted || words.declined) return [];
  const right = sent.filter((one) => one.currency === currency);
  if (sent.some((one) => !one.calm)) return isWholeAgain(model, purchase, life, sent) ? must('settled') : [];
  if (right.length === 0 || words.cancelled) return must('review');
  const kinds = new Set(right.map((one) => kindOf(one, purchase)));
  if (kinds.size > 1 || kinds.has('unclear')) return [];
  const amounts = right.flatMap((one) => amountsTo(one, purchase));
  const { enough, most } = enoughOf(purchase);
  if (kinds.has('late')) return lateEnding(model, purchase, right, must);
  if (total(amounts) < enough) return right.length < sent.length ? must('declined', 'review') : must('declined');
  // the price fell and the block came after a day: rule 24
  if (life.steps.some((step) => step.rule === 24)) return must('review', 'settled');
  const found = must('settled');
  const single = new Set(right.map((one) => one.tx.txid)).size === 1;
  const expected = total(amounts) > most ? purchase.amountDue : total(amounts);
  if (single && !words.acceptedExcess && creditedRight !== expected) found.push(`${creditedRight} was credited, not ${expected}`);
  return found;
}

function lateEnding(
  model: Model,
  purchase: Purchase,
  right: readonly Sent[],
  must: (...statuses: string[]) => string[],
): string[] {
  if (purchase.merchant.policy === 'review') return must('review');
  const worth = total(
    right.flatMap((one) => amountsTo(one, purchase).map((amount) => amount * priceOf(model, one, purchase.currency))),
  );
  return worth >= enoughExactly(purchase) ? must('settled') : must('review');
}

const amountsTo = (sent: Sent, purchase: Purchase): bigint[] =>
  sent.outputs.filter((output) => output.purchase === purchase).map((output) => output.amount);

/** The price at its arrival. */
function priceOf(model: Model, sent: Sent, currency: Code): bigint {
  return model.priceAt(currency, sent.seen?.at ?? DAY);
}

/** Whatever was lost in between: everything was on time, is there now, and is enough. Nobody has decided otherwise meanwhile. */
function isWholeAgain(model: Model, purchase: Purchase, life: Life, sent: readonly Sent[]): boolean {
  const { words, currency } = purchase;
  if (words.cancelled || life.path.includes('declined') || life.steps.some((step) => step.rule === 24)) return false;
  const there = sent.every(
    (one) => one.currency === currency && model.placeOf(one).where === 'chain' && kindOf(one, purchase) === 'on time',
  );
  return there && total(sent.flatMap((one) => amountsTo(one, purchase))) >= enoughOf(purchase).enough;
}
