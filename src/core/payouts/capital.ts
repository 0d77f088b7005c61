// The service's own capital on a chain, as entries: it is here, or a reorganisation has taken it away.
import type { CurrencyCode } from '../currency.ts';
import type { Entry } from '../judge/case.ts';
import { negated } from '../money.ts';

/** An output at an address of the service's own; `lost`: how often a reorganisation has taken it out of its block. */
export type CapitalOutput = { readonly txid: string; readonly vout: number; readonly amount: bigint; readonly lost: number };

/** Capital of the service that arrived at an address of its own, or is back there. */
export function capitalEntry(currency: CurrencyCode, output: CapitalOutput): Entry {
  return capitalMoved(currency, output, { kind: 'capital', amount: output.amount });
}

/** Capital whose block was replaced: nobody owes it to us. */
export function capitalLostEntry(currency: CurrencyCode, output: CapitalOutput): Entry {
  return capitalMoved(currency, output, { kind: 'capital_lost', amount: negated(output.amount) });
}

function capitalMoved(
  currency: CurrencyCode,
  { txid, vout, lost }: CapitalOutput,
  { kind, amount }: { readonly kind: 'capital' | 'capital_lost'; readonly amount: bigint },
): Entry {
  return {
    key: `${kind}:${currency.toLowerCase()}:${txid}:${vout}${lost === 0 ? '' : `#${lost + 1}`}`,
    kind,
    postings: [
      { account: `asset:chain:${currency}`, amount },
      { account: `equity:operator:${currency}`, amount: negated(amount) },
    ],
    parts: [],
  };
}
