// Output descriptors of our receiving addresses (BIP380, 381, 382), for wallets that watch or spend the payments at them.
import type { OwnAddressKind } from './currencies/utxo.ts';
import { type UtxoCode, utxoRow } from './currency.ts';

/** Where an account's key comes from: the fingerprint of the seed's root (BIP32, hex), and the path from there. */
export type KeyOrigin = { readonly fingerprint: string; readonly path: string };

const FORMS: Readonly<Record<OwnAddressKind, string>> = { p2wpkh: 'wpkh', p2pkh: 'pkh', 'cashaddr-p2pkh': 'pkh' };

/**
 * The descriptor of the receiving chain of an account: `wpkh` where addresses are witness programs, else `pkh`, with its checksum.
 * @param xpub canonical (xpub or tpub)
 * @param origin included where it is known, so that a signing device finds its key
 */
export function receivingDescriptor(currency: UtxoCode, xpub: string, origin: KeyOrigin | null): string {
  const from = origin === null ? '' : `[${origin.fingerprint}${origin.path.slice(1).replaceAll("'", 'h')}]`;
  return withChecksum(`${FORMS[utxoRow(currency).utxo.addressKind]}(${from}${xpub}/0/*)`);
}

const INPUT = `0123456789()[],'/*abcdefgh@:$%{}IJKLMNOPQRSTUVWXYZ&+-.;<=>?!^_|~ijklmnopqrstuvwxyzABCDEFGH\`#"\\ `;
const OUTPUT = 'qpzry9x8gf2tvdw0s3jn54khce6mua7l';
const GENERATOR = [0xf5dee51989n, 0xa9fdca3312n, 0x1bab10e32dn, 0x3706b1677an, 0x644d626ffdn];
const CHECKSUM_LENGTH = 8;

/** Appends the checksum of BIP380 to a descriptor. @throws for a character that no descriptor has */
export function withChecksum(descriptor: string): string {
  let state = 1n;
  const take = (value: number): void => {
    const top = state >> 35n;
    state = ((state & 0x7ffffffffn) << 5n) ^ BigInt(value);
    GENERATOR.forEach((polynomial, bit) => {
      if (((top >> BigInt(bit)) & 1n) === 1n) state ^= polynomial;
    });
  };
  let group = 0;
  let inGroup = 0;
  for (const character of descriptor) {
    const at = INPUT.indexOf(character);
    if (at < 0) throw new RangeError(`a descriptor has no ${JSON.stringify(character)}`);
    take(at & 31);
    group = group * 3 + (at >> 5);
    if (++inGroup === 3) {
      take(group);
      group = 0;
      inGroup = 0;
    }
  }
  if (inGroup > 0) take(group);
  for (let i = 0; i < CHECKSUM_LENGTH; i++) take(0);
  state ^= 1n;
  const symbols = Array.from({ length: CHECKSUM_LENGTH }, (_, i) => OUTPUT[Number((state >> BigInt(5 * (7 - i))) & 31n)]);
  return `${descriptor}#${symbols.join('')}`;
}
