// Output scripts and addresses of Bitcoin's family, both ways, by the parameters of the currency's row: base58check, bech32 and bech32m
// (BIP173, BIP350), CashAddr.
import { hash } from 'node:crypto';
import { bech32, bech32m, createBase58check } from '@scure/base';
import type { AddressParameters } from '../../core/currencies/utxo.ts';
import { CURRENCIES, chainNetwork, type Network, type UtxoCode, utxoRow } from '../../core/currency.ts';
import { decodeCashAddress, encodeCashAddress } from './cashaddr.ts';

const base58check = createBase58check((bytes: Uint8Array) => hash('sha256', bytes, 'buffer'));

/** ripemd160(sha256(bytes)). */
export function hash160(bytes: Uint8Array): Uint8Array {
  return hash('ripemd160', hash('sha256', bytes, 'buffer'), 'buffer');
}

const OP = {
  zero: 0x00,
  one: 0x51,
  dup: 0x76,
  equal: 0x87,
  equalVerify: 0x88,
  hash160: 0xa9,
  hash256: 0xaa,
  checkSig: 0xac,
} as const;

function p2pkhScript(keyHash: Uint8Array): Uint8Array {
  return Uint8Array.of(OP.dup, OP.hash160, 20, ...keyHash, OP.equalVerify, OP.checkSig);
}
function p2shScript(scriptHash: Uint8Array): Uint8Array {
  return scriptHash.length === 32
    ? Uint8Array.of(OP.hash256, 32, ...scriptHash, OP.equal)
    : Uint8Array.of(OP.hash160, 20, ...scriptHash, OP.equal);
}
function witnessScript(version: number, program: Uint8Array): Uint8Array {
  const script = new Uint8Array(2 + program.length);
  script[0] = version === 0 ? OP.zero : OP.one - 1 + version;
  script[1] = program.length;
  script.set(program, 2);
  return script;
}

export type EncodedAddress = { readonly address: string; readonly script: Uint8Array };

/** Makes the function from a compressed public key to the address and script kind of the currency. */
export function addressEncoder(currency: UtxoCode, network: Network): (publicKey: Uint8Array) => EncodedAddress {
  const { addressKind, address } = utxoRow(currency).utxo;
  const parameters = address[chainNetwork(network)];
  switch (addressKind) {
    case 'p2wpkh': {
      const prefix = parameters.bech32 ?? '';
      return (publicKey) => {
        const program = hash160(publicKey);
        return { address: bech32.encode(prefix, [0, ...bech32.toWords(program)]), script: witnessScript(0, program) };
      };
    }
    case 'cashaddr-p2pkh': {
      const prefix = parameters.cashaddr ?? '';
      return (publicKey) => {
        const keyHash = hash160(publicKey);
        return { address: encodeCashAddress(prefix, 'p2pkh', keyHash), script: p2pkhScript(keyHash) };
      };
    }
    case 'p2pkh':
      return (publicKey) => {
        const keyHash = hash160(publicKey);
        return { address: base58check.encode(Uint8Array.of(parameters.pubKeyHash, ...keyHash)), script: p2pkhScript(keyHash) };
      };
  }
}

export type AddressKind = 'p2pkh' | 'p2sh' | 'p2wpkh' | 'p2wsh' | 'p2tr';
export type DecodedAddress = { readonly script: Uint8Array; readonly kind: AddressKind } | { readonly problem: string };

/**
 * Reads an address of a currency on a network into its output script, or says in one sentence why it is none. Accepted: P2PKH and P2SH
 * (BCH: as CashAddr only, with or without the prefix), and for currencies with segwit P2WPKH, P2WSH and P2TR. Refused: other networks and
 * currencies, mixed case, MWEB, witness versions above 1 and unknown CashAddr types.
 */
export function decodeAddress(currency: UtxoCode, network: Network, text: string): DecodedAddress {
  const where = chainNetwork(network);
  const parameters = utxoRow(currency).utxo.address[where];
  if (text.length === 0 || text.length > 130)
    return { problem: `a ${currency} address has at most 130 characters and at least one` };
  if (parameters.cashaddr !== null) return decodeCash(currency, parameters.cashaddr, text);
  const separator = text.lastIndexOf('1');
  const prefix = separator > 0 ? text.slice(0, separator).toLowerCase() : '';
  if (utxoRow(currency).utxo.unpayablePrefixes.includes(prefix)) return { problem: 'MWEB addresses cannot be paid from here' };
  if (parameters.bech32 !== null && BECH32_PREFIXES.has(prefix)) return decodeSegwit(currency, parameters.bech32, text);
  return decodeBase58(currency, parameters, text);
}

const BECH32_PREFIXES: ReadonlySet<string | null> = new Set(
  Object.values(CURRENCIES).flatMap(({ utxo }) => Object.values(utxo?.address ?? {}).map(({ bech32 }) => bech32)),
);

function decodeSegwit(currency: UtxoCode, prefix: string, text: string): DecodedAddress {
  if (text.length > 90) return { problem: `a segwit address of ${currency} has at most 90 characters` };
  const plain = bech32.decodeUnsafe(text);
  const decoded = plain ?? bech32m.decodeUnsafe(text);
  if (decoded === undefined) return { problem: `the checksum or the characters of this ${currency} address are wrong` };
  if (decoded.prefix !== prefix)
    return { problem: `this address starts with ${decoded.prefix}1: ${currency} takes ${prefix}1 here` };
  const [version, ...words] = decoded.words;
  if (version === undefined || version > 16) return { problem: 'the witness version is not from 0 to 16' };
  const program = bech32.fromWordsUnsafe(words) ?? undefined;
  if (program === undefined || program.length < 2 || program.length > 40)
    return { problem: 'the witness program is not of 2 to 40 bytes' };
  if ((version === 0) !== (plain !== undefined)) {
    return {
      problem: `a witness version ${version} address must be in ${version === 0 ? 'bech32 (BIP173)' : 'bech32m (BIP350)'}`,
    };
  }
  const script = witnessScript(version, program);
  if (version === 0 && program.length === 20) return { script, kind: 'p2wpkh' };
  if (version === 0 && program.length === 32) return { script, kind: 'p2wsh' };
  if (version === 1 && program.length === 32) return { script, kind: 'p2tr' };
  return {
    problem: `witness version ${version} with ${program.length} bytes has no meaning yet: what is sent there could be lost`,
  };
}

function decodeBase58(currency: UtxoCode, parameters: AddressParameters, text: string): DecodedAddress {
  let bytes: Uint8Array;
  try {
    bytes = base58check.decode(text);
  } catch {
    return { problem: `this is not an address of ${currency}: the checksum or the characters are wrong` };
  }
  if (bytes.length !== 21)
    return { problem: `this is not an address of ${currency}: it holds ${bytes.length} bytes instead of 21` };
  const payload = bytes.subarray(1);
  if (bytes[0] === parameters.pubKeyHash) return { script: p2pkhScript(payload), kind: 'p2pkh' };
  if (bytes[0] === parameters.scriptHash || bytes[0] === parameters.legacyScriptHash)
    return { script: p2shScript(payload), kind: 'p2sh' };
  return { problem: `this address is not of ${currency} on this network` };
}

function decodeCash(currency: UtxoCode, prefix: string, text: string): DecodedAddress {
  const decoded = decodeCashAddress(prefix, text);
  if ('problem' in decoded) return { problem: `this is not an address of ${currency}: ${decoded.problem}` };
  return decoded.kind === 'p2pkh'
    ? { script: p2pkhScript(decoded.payload), kind: 'p2pkh' }
    : { script: p2shScript(decoded.payload), kind: 'p2sh' };
}
