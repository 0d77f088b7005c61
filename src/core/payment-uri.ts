// What a customer's wallet reads from the QR code.
import { LIGHTNING } from './currencies/lightning.ts';
import { CURRENCIES, chainNetwork, type Network, type PaymentMethod } from './currency.ts';
import { formatAmount } from './money.ts';

/** Where a currency on Ethereum's chain is paid. */
export type PaymentChain = {
  readonly network: Network;
  /** The contract of USDT, with its checksum (EIP-55). */
  readonly tokenContract: string | null;
};

/**
 * BIP 321: scheme, address, amount in whole units; a CashAddr already has its prefix, which is the scheme. ERC-681 for ether (`value` in wei)
 * and for a token (a call of its contract's transfer, the amount in minor units). Of a Lightning invoice, which names its amount itself, all
 * in capitals: the code that is drawn of it is smaller.
 */
export function paymentUri(currency: PaymentMethod, address: string, amountMinor: bigint, chain: PaymentChain): string {
  const { evm, uriScheme } = CURRENCIES[currency];
  if (currency === LIGHTNING.code) return `${uriScheme}:${address.toUpperCase()}`;
  if (evm === null) {
    const body = address.slice(address.indexOf(':') + 1);
    const scheme = address.includes(':') ? address.slice(0, address.indexOf(':')) : uriScheme;
    return `${scheme}:${body}?amount=${formatAmount(amountMinor, currency)}`;
  }
  const chainId = evm.chainId[chainNetwork(chain.network)];
  if (evm.token === null) return `${uriScheme}:${address}@${chainId}?value=${amountMinor}`;
  if (chain.tokenContract === null) throw new Error(`the contract of ${currency} is not known`);
  return `${uriScheme}:${chain.tokenContract}@${chainId}/transfer?address=${address}&uint256=${amountMinor}`;
}
