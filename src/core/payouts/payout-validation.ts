// Whether the fields of a payout fit each other: the amount the unit of its method, the destination the method and the network, the minimum.
import { amountForm, parseAmount } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { PAYOUT_UNITS, type PayoutMethod } from './payout-units.ts';

/** What a payout's destination shows by its text alone. */
export type Destinations = {
  /** Why nothing can be sent there, as one sentence without a full stop; null when checksum, network and form are right. */
  problem(method: Exclude<PayoutMethod, 'ach'>, destination: string): string | null;
  /** The output script of a Bitcoin address; throws for a text of which `problem` names one. */
  bitcoinScript(address: string): Uint8Array;
};

/** An amount in the unit of a method, in minor units. Refused: invalid_amount naming the field. */
export function payoutAmount(method: PayoutMethod, text: string, param: string): bigint {
  const { decimals } = PAYOUT_UNITS[method];
  const parsed = parseAmount(text, decimals);
  if ('minor' in parsed) return parsed.minor;
  throw new Refusal('invalid_amount', { param, message: `${param} must be ${amountForm(decimals).accepted}.` });
}

/** The decimals of the amount (or `all`), then the form of the destination. Refused: invalid_amount, invalid_destination. */
export function checkPayoutForm(
  payout: { readonly method: PayoutMethod; readonly amount: string; readonly destination: string },
  destinations: Destinations,
): void {
  if (payout.amount !== 'all') payoutAmount(payout.method, payout.amount, 'amount');
  checkDestination(payout.method, payout.destination, destinations);
}

/** Refused: invalid_destination for a text of another form, network or checksum. */
export function checkDestination(method: PayoutMethod, destination: string, destinations: Destinations): void {
  const problem = method === 'ach' ? bankProblem(destination) : destinations.problem(method, destination);
  if (problem === null) return;
  throw new Refusal('invalid_destination', { param: 'destination', message: `destination does not fit ${method}: ${problem}.` });
}

/** Refused: payout_below_minimum for an amount below the minimum of its method, which is inclusive. `all` has none yet. */
export function checkMinimum(method: PayoutMethod, amount: string, param: string): void {
  const { minimum, minimumMinor, code } = PAYOUT_UNITS[method];
  if (amount === 'all' || payoutAmount(method, amount, param) >= minimumMinor) return;
  throw new Refusal('payout_below_minimum', { param, message: `The minimum of ${method} is ${minimum} ${code}.` });
}

/** The methods without a rail. Refused: lightning_unavailable, currency_unavailable. */
export function refuseUnbuilt(method: PayoutMethod): asserts method is 'bitcoin' {
  if (method === 'bitcoin') return;
  const code = method === 'lightning' ? 'lightning_unavailable' : 'currency_unavailable';
  throw new Refusal(code, { message: `Payouts by ${method} are not available on this server yet.` });
}

/** An invoice can be paid once: it is no place for payouts that repeat. */
export function isInvoice(destination: string): boolean {
  return /^ln(?!url)/i.test(destination) && !destination.includes('@');
}

function bankProblem(destination: string): string | null {
  if (/^ba_[0-9A-Za-z]+$/.test(destination)) return null;
  const routing = /^ach:(\d{9}):[0-9A-Za-z-]{1,17}(?::checking|:savings)?$/.exec(destination)?.[1];
  if (routing === undefined) return 'it takes a saved bank account ba_… or ach:<routing>:<account>[:checking|savings]';
  return isRouting(routing) ? null : 'the check digit of the routing number is wrong';
}

/** The check digit of an ABA routing number. */
function isRouting(digits: string): boolean {
  const weights = [3, 7, 1, 3, 7, 1, 3, 7, 1];
  return weights.reduce((total, weight, index) => total + weight * Number(digits[index]), 0) % 10 === 0;
}
