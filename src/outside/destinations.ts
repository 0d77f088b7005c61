// Whether a payout destination is valid, as far as its text shows: checksums, network, form.
import { bech32 } from '@scure/base';
import { chainNetwork, type Network, type UtxoCode } from '../core/currency.ts';
import { PAYOUT_UNITS } from '../core/payouts/payout-units.ts';
import type { Destinations } from '../core/payouts/payout-validation.ts';
import { addressProblem as evmAddressProblem } from './evm/address.ts';
import { decodeAddress } from './utxo/address.ts';

/** @param network whose addresses and invoices are accepted */
export function createDestinations(network: Network): Destinations {
  function addressProblem(currency: UtxoCode, address: string): string | null {
    const decoded = decodeAddress(currency, network, address);
    return 'problem' in decoded ? decoded.problem : null;
  }
  return {
    problem(method, text) {
      if (method === 'usdt') return evmAddressProblem(text);
      if (method === 'lightning') return lightningProblem(network, text);
      return addressProblem(PAYOUT_UNITS.bitcoin.code, text);
    },
    addressProblem,
    outputScript(currency, address) {
      const decoded = decodeAddress(currency, network, address);
      if ('problem' in decoded) throw new Error(decoded.problem);
      return decoded.script;
    },
  };
}

function lightningProblem(network: Network, text: string): string | null {
  if (text.includes('@')) return lightningAddressProblem(text);
  if (/^lnurl1/i.test(text)) return lnurlProblem(network, text);
  if (/^ln/i.test(text)) return invoiceProblem(network, text);
  return 'lightning takes a BOLT11 invoice, an LNURL or a Lightning address';
}

/** LUD-16; the host may name a port. */
function lightningAddressProblem(text: string): string | null {
  const host = /^[a-z0-9_.+-]{1,64}@([a-z0-9.-]{1,253})(?::\d{1,5})?$/i.exec(text)?.[1];
  const named = host?.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(label)) === true;
  return named ? null : 'a Lightning address is name@host';
}

/** LUD-01: a URL in bech32, of any length; over TLS, except for onion hosts and networks whose currencies are worth nothing. */
function lnurlProblem(network: Network, text: string): string | null {
  const decoded = bech32.decodeUnsafe(text, false);
  const bytes = decoded === undefined ? undefined : bech32.fromWordsUnsafe(decoded.words);
  if (bytes === undefined || bytes === null) return 'the checksum or the characters of this LNURL are wrong';
  const url = URL.parse(new TextDecoder().decode(bytes));
  const plain = url?.protocol === 'http:' && (chainNetwork(network) === 'regtest' || url.hostname.endsWith('.onion'));
  return url?.protocol === 'https:' || plain ? null : 'this LNURL does not contain an https URL';
}

const INVOICE_PREFIX = { mainnet: 'bc', testnet: 'tb', regtest: 'bcrt' } as const;
const TIMESTAMP_WORDS = 7;
const SIGNATURE_WORDS = 104;
const PAYMENT_HASH = { tag: 1, words: 52 } as const;

/** BOLT11: bech32 of any length, the prefix of the network with an amount, a time, tagged fields with one payment hash, a signature. */
function invoiceProblem(network: Network, text: string): string | null {
  const decoded = bech32.decodeUnsafe(text, false);
  if (decoded === undefined) return 'the checksum or the characters of this invoice are wrong';
  const chain = INVOICE_PREFIX[chainNetwork(network)];
  const amount = new RegExp(`^ln${chain}(.*)$`).exec(decoded.prefix)?.[1];
  // "lnbcrt…" begins like "lnbc…": what follows the prefix must be an amount or nothing
  if (amount === undefined || !/^(?:[1-9]\d*(?:[mnu]|0p)?|)$/.test(amount)) {
    return `an invoice of this network starts with ln${chain} and its amount`;
  }
  const fields = decoded.words.slice(TIMESTAMP_WORDS, -SIGNATURE_WORDS);
  let hashes = 0;
  for (let at = 0; at < fields.length; ) {
    const [tag, high, low] = fields.slice(at, at + 3);
    if (tag === undefined || high === undefined || low === undefined) return 'a field of this invoice is cut off';
    const length = high * 32 + low;
    at += 3 + length;
    if (at > fields.length) return 'a field of this invoice is cut off';
    if (tag === PAYMENT_HASH.tag && length === PAYMENT_HASH.words) hashes += 1;
  }
  return hashes === 1 ? null : 'this invoice has no payment hash';
}
