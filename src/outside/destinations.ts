// Whether a payout destination is valid, as far as its text shows: checksums, network, form.
import { bech32 } from '@scure/base';
import { evmScript } from '../core/currencies/evm.ts';
import { type CurrencyCode, chainNetwork, isUtxo, type Network } from '../core/currency.ts';
import { PAYOUT_UNITS } from '../core/payouts/units.ts';
import { type Destinations, isInvoice } from '../core/payouts/validation.ts';
import { addressProblem as evmAddressProblem } from './evm/address.ts';
import { decodeInvoice } from './lightning/bolt11.ts';
import { decodeAddress } from './utxo/address.ts';

/** An invoice is read for its form and for what it says, and again when its request is repeated: its signature alone costs milliseconds. */
const MOST_READ = 100;

type Decode = (text: string) => ReturnType<typeof decodeInvoice>;

function createInvoices(network: Network): Decode {
  const read = new Map<string, ReturnType<typeof decodeInvoice>>();
  return (text) => {
    const before = read.get(text);
    if (before !== undefined) return before;
    const decoded = decodeInvoice(chainNetwork(network), text);
    if (read.size >= MOST_READ) read.clear();
    read.set(text, decoded);
    return decoded;
  };
}

/** @param network whose addresses and invoices are accepted */
export function createDestinations(network: Network): Destinations {
  const readInvoice = createInvoices(network);
  function addressProblem(currency: CurrencyCode, address: string): string | null {
    if (!isUtxo(currency)) return evmAddressProblem(address);
    const decoded = decodeAddress(currency, network, address);
    return 'problem' in decoded ? decoded.problem : null;
  }
  return {
    problem(method, text) {
      if (method === 'usdt') return evmAddressProblem(text);
      if (method === 'lightning') return lightningProblem(network, text, readInvoice);
      return addressProblem(PAYOUT_UNITS.bitcoin.code, text);
    },
    addressProblem,
    outputScript(currency, address) {
      if (!isUtxo(currency)) return Buffer.from(evmScript(address), 'hex');
      const decoded = decodeAddress(currency, network, address);
      if ('problem' in decoded) throw new Error(decoded.problem);
      return decoded.script;
    },
    invoice(text) {
      if (!isInvoice(text)) return null;
      const invoice = readInvoice(text);
      return 'problem' in invoice ? null : invoice;
    },
    lnurl(text) {
      if (isInvoice(text) || lightningProblem(network, text, readInvoice) !== null) return null;
      return text.includes('@') ? addressUrl(network, text) : decodedLnurl(text);
    },
  };
}

function lightningProblem(network: Network, text: string, readInvoice: Decode): string | null {
  if (text.includes('@')) return lightningAddressProblem(text);
  if (/^lnurl1/i.test(text)) return lnurlProblem(network, text);
  if (/^ln/i.test(text)) {
    const decoded = readInvoice(text);
    return 'problem' in decoded ? decoded.problem : null;
  }
  return 'lightning takes a BOLT11 invoice, an LNURL or a Lightning address';
}

/** LUD-16; the host may name a port. */
function lightningAddressProblem(text: string): string | null {
  const host = /^[a-z0-9_.+-]{1,64}@([a-z0-9.-]{1,253})(?::\d{1,5})?$/i.exec(text)?.[1];
  const named = host?.split('.').every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/i.test(label)) === true;
  return named ? null : 'a Lightning address is name@host';
}

/** LUD-16: over TLS, except for onion hosts and, where currencies are worth nothing, this machine. */
function addressUrl(network: Network, text: string): string {
  const [name = '', host = ''] = text.toLowerCase().split('@');
  const isHere = chainNetwork(network) === 'regtest' && /^(?:localhost|127(?:\.\d+){3})(?::\d+)?$/.test(host);
  const isOnion = /\.onion(?::\d+)?$/.test(host);
  return `${isHere || isOnion ? 'http' : 'https'}://${host}/.well-known/lnurlp/${encodeURIComponent(name)}`;
}

/** Null where the text is no LNURL. */
function decodedLnurl(text: string): string | null {
  const decoded = bech32.decodeUnsafe(text, false);
  const bytes = decoded === undefined ? undefined : bech32.fromWordsUnsafe(decoded.words);
  return bytes === undefined || bytes === null ? null : new TextDecoder().decode(bytes);
}

/** LUD-01: a URL in bech32, of any length; over TLS, except for onion hosts and networks whose currencies are worth nothing. */
function lnurlProblem(network: Network, text: string): string | null {
  const decoded = decodedLnurl(text);
  if (decoded === null) return 'the checksum or the characters of this LNURL are wrong';
  const url = URL.parse(decoded);
  const plain = url?.protocol === 'http:' && (chainNetwork(network) === 'regtest' || url.hostname.endsWith('.onion'));
  return url?.protocol === 'https:' || plain ? null : 'this LNURL does not contain an https URL';
}
