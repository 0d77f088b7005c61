// What the chain watchers need of the context: the database, the clock and the nodes. Every Context is one.
import type { CurrencyCode } from '../../core/currency.ts';
import type { ChainPort, PayingPort, Ports } from '../../core/ports.ts';
import type { Context } from '../../flow/context.ts';

export type ChainContext = Pick<Context, 'db'> & { readonly ports: Pick<Ports, 'clock' | 'chains'> };

/** @throws when no node is configured for the currency */
export function portOf(ctx: ChainContext, currency: CurrencyCode): ChainPort {
  const port = ctx.ports.chains.get(currency);
  if (port === undefined) throw new Error(`no node is configured for ${currency}`);
  return port;
}

/** What sends transactions of a currency. */
export function sendingPortOf(ctx: ChainContext, currency: CurrencyCode): Pick<PayingPort, 'send'> {
  const port = portOf(ctx, currency);
  if (!('send' in port)) throw new Error(`no transaction of ${currency} can be sent`);
  return port as PayingPort;
}

/** The same for a chain of Bitcoin's family. */
export function payingPortOf(ctx: ChainContext, currency: CurrencyCode): PayingPort {
  return sendingPortOf(ctx, currency) as PayingPort;
}
