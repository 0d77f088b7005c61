// Base58 addresses of a currency into those of the bitcoind below, and back: only the version byte differs.
import { createHash } from 'node:crypto';
import { createBase58check } from '@scure/base';
import type { CurrencyFacts } from './currencies.ts';

const base58check = createBase58check((bytes: Uint8Array) => createHash('sha256').update(bytes).digest());
const BITCURRENCY = { pubKeyHash: 0x6f, scriptHash: 0xc4 };

export type AddressBook = { toBitcoin(text: string): string; toCurrency(text: string): string };

export function addressBook(facts: CurrencyFacts): AddressBook {
  const pairs = [
    [facts.pubKeyHash, BITCURRENCY.pubKeyHash],
    [facts.scriptHash, BITCURRENCY.scriptHash],
  ] as const;
  const down = new Map(pairs);
  const up = new Map(pairs.map(([own, bitcoin]) => [bitcoin, own] as const));
  return { toBitcoin: (text) => translated(text, down), toCurrency: (text) => translated(text, up) };
}

function translated(text: string, versions: ReadonlyMap<number, number>): string {
  if (text.length < 26 || text.length > 36) return text;
  let bytes: Uint8Array;
  try {
    bytes = base58check.decode(text);
  } catch {
    return text;
  }
  const version = bytes.length === 21 ? versions.get(bytes[0] as number) : undefined;
  return version === undefined ? text : base58check.encode(Uint8Array.of(version, ...bytes.subarray(1)));
}
