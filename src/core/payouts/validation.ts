// Whether the fields of a payout fit each other: the amount the unit of its method, the destination the method and the network, the minimum.
import { readBankAccount } from '../ach/bank-account.ts';
import { CURRENCY_CODES, type CurrencyCode } from '../currency.ts';
import type { Invoice } from '../lightning/payer.ts';
import { amountForm, parseAmount } from '../money.ts';
import { Refusal } from '../refusal.ts';
import { PAYOUT_METHODS, PAYOUT_UNITS, type PayoutMethod } from './units.ts';

/** What a payout's destination shows by its text alone. */
export type Destinations = {
  /** Why nothing can be sent there, as one sentence without a full stop; null when checksum, network and form are right. */
  problem(method: Exclude<PayoutMethod, 'ach'>, destination: string): string | null;
  /** The same for an address of a currency. */
  addressProblem(currency: CurrencyCode, address: string): string | null;
  /** The output script of such an address (on Ethereum's chain its form among scripts); throws for a text of which `addressProblem` names one. */
  outputScript(currency: CurrencyCode, address: string): Uint8Array;
  /** A BOLT11 invoice of the network; null for any other text, and for one that cannot be paid. */
  invoice(text: string): Invoice | null;
  /** The URL that a Lightning address (LUD-16) or an LNURL (LUD-01) names; null for any other text. */
  lnurl(text: string): string | null;
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
  const problem = problemOf(method, destination, destinations);
  if (problem === null) return;
  throw new Refusal('invalid_destination', { param: 'destination', message: `destination does not fit ${method}: ${problem}.` });
}

/** Refused: payout_below_minimum for an amount below the minimum of its method, which is inclusive. `all` has none yet. */
export function checkMinimum(method: PayoutMethod, amount: string, param: string): void {
  const { minimum, minimumMinor, code } = PAYOUT_UNITS[method];
  if (amount === 'all' || payoutAmount(method, amount, param) >= minimumMinor) return;
  throw new Refusal('payout_below_minimum', { param, message: `The minimum of ${method} is ${minimum} ${code}.` });
}

/** What this server can pay out by. */
export type Rails = { readonly hasBank: boolean; readonly hasLightning: boolean; readonly currencies: readonly CurrencyCode[] };

/**
 * The methods without a rail; ach has one where a bank is configured, lightning and usdt where a node is.
 * Refused: lightning_unavailable, currency_unavailable.
 */
export function refuseUnbuilt(method: PayoutMethod, { hasBank, hasLightning, currencies }: Rails): void {
  const hasToken = currencies.includes(PAYOUT_UNITS.usdt.code);
  const message = {
    bitcoin: null,
    ach: hasBank ? null : 'Payouts by ach are not available: this server has no bank.',
    lightning: hasLightning ? null : 'Payouts by lightning are not available: this server has no Lightning node.',
    usdt: hasToken ? null : 'Payouts by usdt are not available: this server has no Ethereum node.',
  }[method];
  if (message !== null) throw new Refusal(method === 'lightning' ? 'lightning_unavailable' : 'currency_unavailable', { message });
}

/** An invoice can be paid once: it is no place for payouts that repeat. */
export function isInvoice(destination: string): boolean {
  return /^ln(?!url)/i.test(destination) && !destination.includes('@');
}

/**
 * Each entry of an allow-list must be a place that a payout or a reimbursement can name, in any method or currency: a mistyped one would
 * refuse every payout, and what takes its place waits for a day. Refused: invalid_destination.
 */
export function checkAllowList(list: readonly string[], param: string, destinations: Destinations): void {
  // an invoice is not read here: a hundred of them, whose signatures cost milliseconds each, would hold up other callers
  const fits = (text: string): boolean =>
    isInvoice(text) ||
    PAYOUT_METHODS.some((method) => problemOf(method, text, destinations) === null) ||
    CURRENCY_CODES.some((code) => destinations.addressProblem(code, text) === null);
  const wrong = list.findIndex((text) => !fits(text));
  if (wrong === -1) return;
  const message = `Entry ${wrong + 1} of ${param} is no address, invoice, LNURL, Lightning address or bank account that can be paid from here.`;
  throw new Refusal('invalid_destination', { param, message });
}

/**
 * Whether two texts name one place: a bank account without a kind is a checking account; bech32 and cash addresses are the same in capitals
 * (BIP173), Ethereum's in any case; no other address is without small letters.
 */
export function isSameDestination(one: string, other: string): boolean {
  return spelling(one) === spelling(other);
}

function spelling(text: string): string {
  const account = readBankAccount(text);
  if (!('problem' in account)) return `ach:${account.routing}:${account.account}:${account.kind}`;
  const isAnyCase = text === text.toUpperCase() || /^0x[0-9a-f]{40}$/i.test(text);
  return isAnyCase ? text.toLowerCase() : text;
}

function problemOf(method: PayoutMethod, destination: string, destinations: Destinations): string | null {
  return method === 'ach' ? bankProblem(destination) : destinations.problem(method, destination);
}

function bankProblem(destination: string): string | null {
  const read = readBankAccount(destination);
  return 'problem' in read ? read.problem : null;
}
