// What the chain watchers need of the context: the database, the clock and the nodes. Every Context is one.
import type { UtxoCode } from '../../core/currency.ts';
import type { ChainPort, Ports } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';

export type ChainContext = Pick<Context, 'db'> & { readonly ports: Pick<Ports, 'clock' | 'chains'> };

/** @throws when no node is configured for the currency */
export function portOf(ctx: ChainContext, currency: UtxoCode): ChainPort {
  const port = ctx.ports.chains.get(currency);
  if (port === undefined) throw new Error(`no node is configured for ${currency}`);
  return port;
}
