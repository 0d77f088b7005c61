// BOLT11 invoices that are right in their form; nobody can pay them.
import { bech32 } from '@scure/base';

const field = (tag: number, words: readonly number[]) => [tag, words.length >> 5, words.length & 31, ...words];
const HASH = field(
  1,
  Array.from({ length: 52 }, () => 9),
);

/** @param prefix with the amount, such as `lnbcrt25m` */
export function invoice(prefix: string): string {
  return bech32.encode(prefix, [...Array.from({ length: 7 }, () => 1), ...HASH, ...Array.from({ length: 104 }, () => 3)], false);
}
