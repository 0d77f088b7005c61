// Receiving addresses of an account-level extended public key: BIP32 public derivation of chain 0 (m/purpose'/coin'/account'/0/i), about 30
// µs per child with libsecp256k1.
import { hash } from 'node:crypto';
import { createRequire } from 'node:module';
import { secp256k1 as noble } from '@noble/curves/secp256k1.js';
import { createBase58check } from '@scure/base';
import { AccountKeyProblem, BIP32_VERSIONS, UnderivableIndex } from '../../core/account-key.ts';
import type { ExtendedKeyForm } from '../../core/currencies/utxo.ts';
import { CURRENCY_CODES, type CurrencyCode, chainRow, type Network } from '../../core/currency.ts';
import type { AddressDeriver } from '../../core/ports.ts';
import { encoderOf } from './address-encoder.ts';

/** Adds tweak × G to a point (SEC 1, compressed or not) and compresses the sum; null when the tweak is not below the group's order or the sum is the point at infinity. */
export type Curve = { readonly name: 'native' | 'noble'; tweakAdd(point: Uint8Array, tweak: Uint8Array): Uint8Array | null };

type NativeSecp256k1 = { publicKeyTweakAdd(point: Uint8Array, tweak: Uint8Array, compressed: boolean): Uint8Array };

/** libsecp256k1 from the prebuilt addon; null where there is none for this platform. */
export function nativeCurve(): Curve | null {
  let addon: NativeSecp256k1;
  try {
    const require = createRequire(import.meta.url);
    addon = require('secp256k1/bindings.js') as NativeSecp256k1;
  } catch {
    return null;
  }
  return {
    name: 'native',
    tweakAdd(point, tweak) {
      try {
        return addon.publicKeyTweakAdd(point, tweak, true);
      } catch (error) {
        if ((error as Error).message.startsWith('The tweak was out of range')) return null;
        throw error;
      }
    },
  };
}

/** The same in plain JavaScript, fifteen times slower. */
export const nobleCurve: Curve = {
  name: 'noble',
  tweakAdd(point, tweak) {
    const scalar = BigInt(`0x${Buffer.from(tweak).toString('hex')}`);
    if (scalar >= noble.Point.Fn.ORDER) return null;
    const parent = noble.Point.fromBytes(point);
    const sum = scalar === 0n ? parent : parent.add(noble.Point.BASE.multiply(scalar));
    return sum.is0() ? null : sum.toBytes(true);
  },
};

let loaded: Curve | undefined;
function curve(): Curve {
  loaded ??= nativeCurve() ?? nobleCurve;
  return loaded;
}

export type ExtendedPublicKey = { readonly point: Uint8Array; readonly chainCode: Uint8Array };

/**
 * Makes BIP32's CKDpub for one parent: non-hardened indexes only. It throws UnderivableIndex where BIP32 defines no key for the index.
 * HMAC-SHA512 is built from two one-shot hashes: a quarter of the time of Node's streaming HMAC.
 */
export function childrenOf(parent: ExtendedPublicKey, on: Curve = curve()): (index: number) => ExtendedPublicKey {
  const inner = padded(parent.chainCode, 0x36, 37);
  const outer = padded(parent.chainCode, 0x5c, 64);
  inner.set(parent.point, HMAC_BLOCK);
  // with both coordinates given, the addon need not take a square root for each child
  const whole = noble.Point.fromBytes(parent.point).toBytes(false);
  return (index) => {
    if (!Number.isInteger(index) || index < 0 || index >= HARDENED)
      throw new RangeError('index must be an integer from 0 to 2147483647');
    inner.writeUInt32BE(index, HMAC_BLOCK + 33);
    outer.set(hash('sha512', inner, 'buffer'), HMAC_BLOCK);
    const mac = hash('sha512', outer, 'buffer');
    const point = on.tweakAdd(whole, mac.subarray(0, 32));
    if (point === null) throw new UnderivableIndex(index);
    return { point, chainCode: mac.subarray(32) };
  };
}

const HMAC_BLOCK = 128;
function padded(key: Uint8Array, pad: number, messageBytes: number): Buffer {
  const block = Buffer.alloc(HMAC_BLOCK + messageBytes, pad);
  key.forEach((byte, index) => {
    block[index] = byte ^ pad;
  });
  return block;
}

const HARDENED = 0x8000_0000;
const ACCOUNT_DEPTH = 3;
const CHAIN_CODE_AT = 13;
const base58check = createBase58check((bytes: Uint8Array) => hash('sha256', bytes, 'buffer'));

type VersionRow = ExtendedKeyForm & { readonly of: readonly CurrencyCode[] };

/** Version bytes in use: BIP32's, which every currency accepts, and those of the currencies' own rows; regtest uses those of testnet. */
const VERSIONS: readonly VersionRow[] = [
  { form: 'xpub', ...BIP32_VERSIONS.mainnet, mainnet: true, of: CURRENCY_CODES },
  { form: 'tpub', ...BIP32_VERSIONS.test, mainnet: false, of: CURRENCY_CODES },
  ...CURRENCY_CODES.flatMap((code) => chainRow(code).extendedKeys.map((key) => ({ ...key, of: [code] }))),
];
const CANONICAL = { mainnet: BIP32_VERSIONS.mainnet.public, other: BIP32_VERSIONS.test.public };

/** The forms of key that a currency accepts on a network, for messages. */
export function acceptedForms(currency: CurrencyCode, network: Network): readonly string[] {
  const rows = VERSIONS.filter((row) => row.mainnet === (network === 'mainnet') && row.of.includes(currency));
  return rows.map((row) => row.form);
}

export type AccountKey = ExtendedPublicKey & {
  /** The key in its canonical form (xpub on mainnet, tpub elsewhere): what is stored and compared. */
  readonly xpub: string;
  /** The form in which it was given, for example `zpub`. */
  readonly form: string;
};

/**
 * Reads an account-level extended public key (depth 3, BIP32 serialisation, base58check).
 * Throws AccountKeyProblem for a private key, a key of another network or currency, another depth; never repeats the text.
 */
export function readAccountKey(currency: CurrencyCode, network: Network, text: string): AccountKey {
  const accepted = acceptedForms(currency, network).join(', ');
  let bytes: Uint8Array;
  try {
    bytes = base58check.decode(text);
  } catch {
    throw new AccountKeyProblem(
      'malformed',
      `xpub is not an extended public key: accepted are ${accepted} in base58 with a right checksum`,
    );
  }
  if (bytes.length !== 78)
    throw new AccountKeyProblem('malformed', `xpub has a wrong length: accepted are ${accepted} of 78 bytes`);
  const view = new DataView(bytes.buffer, bytes.byteOffset, 78);
  const version = view.getUint32(0);
  if (VERSIONS.some((row) => row.private === version) || bytes[45] === 0) {
    bytes.fill(0);
    throw new AccountKeyProblem(
      'private',
      `xpub is a PRIVATE key. It was not stored. Whoever has seen this command line can spend from it: give the public form (${accepted})`,
    );
  }
  const form = checkVersion(version, currency, network, accepted);
  checkDepth(bytes[4], view.getUint32(9), currency);
  const point = bytes.slice(45);
  if (!isPoint(point)) throw new AccountKeyProblem('not-on-curve', 'xpub holds no point of secp256k1');
  view.setUint32(0, network === 'mainnet' ? CANONICAL.mainnet : CANONICAL.other);
  return { point, chainCode: bytes.slice(CHAIN_CODE_AT, 45), xpub: base58check.encode(bytes), form };
}

/**
 * Whether two account keys in canonical form derive the same addresses: wallets write the fingerprint of the parent and the number of the
 * account, which nothing is derived from, in different ways, often as zero.
 */
export function isSameAccount(xpub: string, other: string): boolean {
  const [mine, theirs] = [xpub, other].map((text) => Buffer.from(base58check.decode(text)).subarray(CHAIN_CODE_AT)) as [
    Buffer,
    Buffer,
  ];
  return mine.equals(theirs);
}

function checkDepth(depth: number | undefined, index: number, currency: CurrencyCode): void {
  const { purpose } = chainRow(currency);
  if (depth !== ACCOUNT_DEPTH) {
    throw new AccountKeyProblem(
      'wrong-depth',
      `xpub is of depth ${depth}: accepted is an account's key, depth 3 (m/${purpose}'/coin'/account')`,
    );
  }
  if (index < HARDENED) {
    throw new AccountKeyProblem(
      'wrong-depth',
      `xpub is of account ${index}, which is not hardened: accepted is the key of a hardened account (m/${purpose}'/coin'/${index}')`,
    );
  }
}

function checkVersion(version: number, currency: CurrencyCode, network: Network, accepted: string): string {
  const rows = VERSIONS.filter((row) => row.public === version);
  const first = rows[0];
  if (first === undefined) throw new AccountKeyProblem('malformed', `xpub has unknown version bytes: accepted are ${accepted}`);
  const ours = rows.find((row) => row.of.includes(currency));
  if (ours === undefined)
    throw new AccountKeyProblem('wrong-currency', `xpub is a ${first.form}, not of ${currency}: accepted are ${accepted}`);
  if (ours.mainnet !== (network === 'mainnet')) {
    const there = ours.mainnet ? 'mainnet' : 'a test network';
    throw new AccountKeyProblem(
      'wrong-network',
      `xpub is a ${ours.form} of ${there}, but this is ${network}: accepted are ${accepted}`,
    );
  }
  return ours.form;
}

function isPoint(bytes: Uint8Array): boolean {
  try {
    noble.Point.fromBytes(bytes);
    return true;
  } catch {
    return false;
  }
}

/**
 * Makes the deriver of an account's addresses: of the receiving chain (0), or of the change chain (1).
 * @param from.xpub an account-level extended public key in any accepted form; throws AccountKeyProblem otherwise
 */
export function createAddressDeriver(from: {
  readonly currency: CurrencyCode;
  readonly network: Network;
  readonly xpub: string;
  readonly chain?: 0 | 1;
  readonly on?: Curve;
}): AddressDeriver {
  const on = from.on ?? curve();
  const chain = childrenOf(readAccountKey(from.currency, from.network, from.xpub), on)(from.chain ?? 0);
  const child = childrenOf(chain, on);
  const encode = encoderOf(from.currency, from.network);
  return {
    currency: from.currency,
    derive: (index) => ({ ...encode(child(index).point), index }),
  };
}
