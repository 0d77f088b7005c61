// The chain below under the currency's own names: its genesis, its block versions and its way to hash a header. Each header is written anew on top of
// the renamed parent, a proof of merged mining put behind it where the currency has one; the transactions and their Merkle root stay.

import { nameOfHeader, rawAuxPow } from '../raw-blocks.ts';
import { reversed } from '../raw-bytes.ts';
import type { CurrencyFacts } from './currencies.ts';

export type HeaderMap = {
  /** Learns a block of the chain below and all that are under it. */
  learn(hash: string): Promise<void>;
  /** Hashes of blocks, in the currency's names and in those of the chain below; other texts stay. */
  toCurrency(text: string): string;
  toBitcoin(text: string): string;
  /** The raw block (or header) of the chain below, in the currency's form. */
  rewritten(hash: string, raw: Buffer): Buffer;
};

type Named = { readonly name: string; readonly head: Buffer };

const HEADER = 80;
const BITCURRENCY_GENESIS = '0f9188f13cb7b2c71f2a335e3a4fc328bf5beb436012afca590b1a11466e2206';

/** @param readHeader the 80 bytes of a block of the chain below */
export function headerMap(facts: CurrencyFacts, readHeader: (hash: string) => Promise<Buffer>): HeaderMap {
  const named = new Map<string, Named>();
  const below = new Map<string, string>([[facts.genesis, BITCURRENCY_GENESIS]]);

  const nameOf = (hash: string): string | undefined => (hash === BITCURRENCY_GENESIS ? facts.genesis : named.get(hash)?.name);

  function take(hash: string, header: Buffer): void {
    const head = Buffer.from(header);
    if (facts.blockVersion !== null) head.writeInt32LE(facts.blockVersion, 0);
    reversed(nameOf(parentOf(header)) as string).copy(head, 4);
    const bytes = nameOfHeader(head, facts.headerHash);
    const proof = facts.currency === 'DOGE' ? rawAuxPow(bytes) : Buffer.alloc(0);
    const name = Buffer.from(bytes).reverse().toString('hex');
    named.set(hash, { name, head: Buffer.concat([head, proof]) });
    below.set(name, hash);
  }

  return {
    async learn(hash) {
      const unknown: { hash: string; header: Buffer }[] = [];
      for (let at = hash; nameOf(at) === undefined; ) {
        const header = await readHeader(at);
        unknown.push({ hash: at, header });
        at = parentOf(header);
      }
      for (const one of unknown.reverse()) if (nameOf(one.hash) === undefined) take(one.hash, one.header);
    },
    toCurrency: (text) => nameOf(text) ?? text,
    toBitcoin: (text) => below.get(text) ?? text,
    rewritten(hash, raw) {
      const one = named.get(hash);
      return one === undefined ? raw : Buffer.concat([one.head, raw.subarray(HEADER)]);
    },
  };
}

const parentOf = (header: Buffer): string => Buffer.from(header.subarray(4, 36)).reverse().toString('hex');
