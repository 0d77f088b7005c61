// The list of all currencies, and what is derived from their rows: codes, networks, decimals, the meaning of a customer's choice. What
// differs between currencies is in currencies/<code>.ts.
import { BCH } from './currencies/bch.ts';
import { BTC } from './currencies/btc.ts';
import { DASH } from './currencies/dash.ts';
import type { CurrencyDefinition } from './currencies/definition.ts';
import { DOGE } from './currencies/doge.ts';
import { ETH } from './currencies/eth.ts';
import type { EvmParameters } from './currencies/evm.ts';
import { LIGHTNING } from './currencies/lightning.ts';
import { LTC } from './currencies/ltc.ts';
import { USDT } from './currencies/usdt.ts';
import type { UtxoParameters } from './currencies/utxo.ts';

/** In the order of a balances answer. */
const ROWS = [BTC, LTC, ETH, BCH, DASH, DOGE, USDT] as const;

export type Network = 'mainnet' | 'testnet' | 'regtest' | 'sandbox';
/** The currencies that have a balance. */
export type CurrencyCode = (typeof ROWS)[number]['code'];
export type UtxoCode = Extract<(typeof ROWS)[number], { readonly family: 'utxo' }>['code'];
export type EvmCode = Exclude<CurrencyCode, UtxoCode>;
/** What a ledger amount can be in: the currencies, and the US dollars of the bank account. */
export type LedgerCurrency = CurrencyCode | 'USD';
/** What a customer can be asked to pay with, and what a payment is in: the currencies, and Lightning, whose balance is Bitcoin's. */
export type PaymentMethod = CurrencyCode | typeof LIGHTNING.code;
export type CurrencyRow = CurrencyDefinition & { readonly code: PaymentMethod };

/** All currencies by code, in the order of a balances answer, and Lightning behind them. */
export const CURRENCIES: Readonly<Record<PaymentMethod, CurrencyRow>> = Object.fromEntries(
  ([...ROWS, LIGHTNING] as readonly CurrencyRow[]).map((row) => [row.code, row]),
) as Record<PaymentMethod, CurrencyRow>;
export const CURRENCY_CODES: readonly CurrencyCode[] = ROWS.map((row) => row.code);
/** What an amount of the ledger can be in. */
export const LEDGER_CODES: readonly LedgerCurrency[] = [...CURRENCY_CODES, 'USD'];
/** The currencies of Bitcoin's family. */
export const UTXO_CODES: readonly UtxoCode[] = ROWS.flatMap((row) => (row.family === 'utxo' ? [row.code] : []));
/** The currencies on Ethereum's chain: ether and its tokens. */
export const EVM_CODES: readonly EvmCode[] = ROWS.flatMap((row) => (row.family === 'utxo' ? [] : [row.code]));
/** What a customer can be asked to pay with, by `crypto_selected`'s main name. */
export const PAYMENT_METHODS: readonly PaymentMethod[] = [...CURRENCY_CODES, LIGHTNING.code];

/** The currency that a method pays out in. */
export type PayoutCurrency<Method extends string> = Extract<
  (typeof ROWS)[number],
  { readonly payouts: Readonly<Record<Method, unknown>> }
>['code'];

/** The currency that a method of payouts is in, with its minimum in minor units. */
export function payoutCurrency<Method extends 'lightning' | 'bitcoin' | 'usdt'>(
  method: Method,
): { readonly code: PayoutCurrency<Method>; readonly decimals: number; readonly minimumMinor: bigint } {
  for (const row of ROWS as readonly CurrencyRow[]) {
    const found = row.payouts[method];
    if (found !== undefined) return { code: row.code as PayoutCurrency<Method>, decimals: row.decimals, ...found };
  }
  throw new Error(`no currency is paid out by ${method}`);
}

/** The balances that an ach payout is paid from while it names none, in this order; then the others, the largest first. */
export const ACH_SOURCES: readonly CurrencyCode[] = (ROWS as readonly CurrencyRow[])
  .filter((row) => row.achOrder !== null)
  .sort((one, other) => Number(one.achOrder) - Number(other.achOrder))
  .map((row) => balanceOf(row.code));

/** A currency of Bitcoin's family with its parameters; throws for any other currency. */
export function utxoRow(code: CurrencyCode): CurrencyRow & { utxo: UtxoParameters } {
  const row = CURRENCIES[code];
  if (row.utxo === null) throw new Error(`${code} is not a UTXO currency`);
  return row as CurrencyRow & { utxo: UtxoParameters };
}

/** A currency on Ethereum's chain with its parameters; throws for any other currency. */
export function evmRow(code: CurrencyCode): CurrencyRow & { evm: EvmParameters } {
  const row = CURRENCIES[code];
  if (row.evm === null) throw new Error(`${code} is not on Ethereum's chain`);
  return row as CurrencyRow & { evm: EvmParameters };
}

/** The currency whose nodes show this one's chain: a token lives on those of its chain's own currency. */
export function nodesOf(code: CurrencyCode): CurrencyCode {
  const { evm } = CURRENCIES[code];
  return evm?.token ? ETHER : code;
}

/** The currency that gas is paid in on Ethereum's chain. */
export const ETHER: EvmCode = EVM_CODES.find((code) => evmRow(code).evm.token === null) as EvmCode;
/** The token of its chain that is taken. */
export const TOKEN: EvmCode = EVM_CODES.find((code) => evmRow(code).evm.token !== null) as EvmCode;

/** Whether a currency of Ethereum's chain is a token of a contract. */
export function isToken(code: CurrencyCode): boolean {
  return CURRENCIES[code].evm?.token != null;
}

/** What the chains of all families have. */
export function chainRow(code: CurrencyCode): UtxoParameters | EvmParameters {
  const { utxo, evm } = CURRENCIES[code];
  const chain = utxo ?? evm;
  if (chain === null) throw new Error(`${code} has no chain`);
  return chain;
}

/** Whether a currency is of Bitcoin's family: its chain keeps outputs, not balances of addresses. */
export function isUtxo(code: CurrencyCode): code is UtxoCode {
  return CURRENCIES[code].utxo !== null;
}

/** Whether a payment by this method is made on Ethereum's chain, which keeps balances of addresses. */
export function isEvm(method: PaymentMethod): boolean {
  return CURRENCIES[method].evm !== null;
}

/** The chain parameters that a network uses: the sandbox uses those of regtest. */
export function chainNetwork(network: Network): 'mainnet' | 'testnet' | 'regtest' {
  return network === 'sandbox' ? 'regtest' : network;
}

/** Decimals of the minor unit of a ledger currency. */
export function decimalsOf(currency: LedgerCurrency): number {
  return currency === 'USD' ? 2 : CURRENCIES[currency].decimals;
}

const ALIASES: ReadonlyMap<string, PaymentMethod> = new Map([
  ...([...ROWS, LIGHTNING] as readonly CurrencyRow[]).flatMap((row) => row.aliases.map((alias) => [alias, row.code] as const)),
]);
/** Every name that a customer's choice may have, in capitals. */
export const PAYMENT_METHOD_NAMES: readonly string[] = [...PAYMENT_METHODS, ...ALIASES.keys()];

/** What `crypto_selected` means, in any case and with its aliases; null for an unknown code. */
export function paymentMethod(text: string): PaymentMethod | null {
  // toUpperCase would turn a dotless ı into I
  if (!/^[A-Za-z0-9_-]+$/.test(text)) return null;
  const code = text.toUpperCase();
  return PAYMENT_METHODS.find((method) => method === code) ?? ALIASES.get(code) ?? null;
}

/** The balance that a payment method pays into: Lightning's is Bitcoin's. */
export function balanceOf(method: PaymentMethod): CurrencyCode {
  return method === LIGHTNING.code ? LIGHTNING.balance : method;
}
