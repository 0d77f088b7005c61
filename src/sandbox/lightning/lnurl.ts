// LNURL-pay services of the outside world (LUD-06) with a Lightning address each (LUD-16), honest or not in one way. lnurl-server.ts answers for them.
import { randomBytes } from 'node:crypto';

/** What such a service does: `html` for JSON, an invoice for another amount, or for something else than it described, or a redirect. */
export const LNURL_BEHAVIOURS = ['pay', 'html', 'other_amount', 'other_hash', 'redirect'] as const;
export type LnurlBehaviour = (typeof LNURL_BEHAVIOURS)[number];

export type Lnurl = {
  readonly name: string;
  readonly minMsat: bigint;
  readonly maxMsat: bigint;
  readonly behaviour: LnurlBehaviour;
  /** The payment hashes of the invoices that it gave. */
  readonly given: string[];
};
export type LnurlLine =
  | {
      readonly kind: 'lnurl';
      readonly name: string;
      readonly minMsat: string;
      readonly maxMsat: string;
      readonly behaviour: LnurlBehaviour;
    }
  | { readonly kind: 'lnurl_invoice'; readonly name: string; readonly hash: string };

/**
 * The LNURLs of the outside world (LUD-06, LUD-16), honest or not as their `behaviour` says.
 * @param write puts a line into the journal and applies it
 */
export function createLnurls(write: (line: LnurlLine) => void) {
  const byName = new Map<string, Lnurl>();
  return {
    apply(line: LnurlLine): void {
      if (line.kind === 'lnurl') {
        const { name, behaviour } = line;
        byName.set(name, { name, behaviour, minMsat: BigInt(line.minMsat), maxMsat: BigInt(line.maxMsat), given: [] });
      } else byName.get(line.name)?.given.push(line.hash);
    },
    make(of: Pick<Lnurl, 'minMsat' | 'maxMsat' | 'behaviour'>): Lnurl {
      const name = `shop${randomBytes(5).toString('hex')}`;
      write({ kind: 'lnurl', name, behaviour: of.behaviour, minMsat: String(of.minMsat), maxMsat: String(of.maxMsat) });
      return byName.get(name) as Lnurl;
    },
    gave: (name: string, hash: string): void => write({ kind: 'lnurl_invoice', name, hash }),
    find: (name: string): Lnurl | null => byName.get(name) ?? null,
  };
}
