// What the chain watchers need of the context: the database, the clock and the nodes. Every Context is one.
import type { Ports } from '../core/ports.ts';
import type { Context } from '../flow/context.ts';

export type ChainContext = Pick<Context, 'db'> & { readonly ports: Pick<Ports, 'clock' | 'chains'> };
