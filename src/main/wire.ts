// Builds the object graph of a process: database, clock, nodes, price sources, keys, and the context of all verbs. The only place that
// creates these things; called once by each process entry of src/main.
import { type UtxoCode, WATCHED_CODES } from '../core/currency.ts';
import type { Clock, Ports, RateFeed } from '../core/ports.ts';
import { type AddressPool, createAddressPool } from '../flow/address-pool.ts';
import type { Context } from '../flow/context.ts';
import { createDesk } from '../flow/desk.ts';
import type { SignInContext } from '../flow/token-pair.ts';
import { createAddressDerivers } from '../outside/address-derivers.ts';
import { createChainNodes } from '../outside/by-currency.ts';
import { openMovableClock, systemClock } from '../outside/clock.ts';
import { createDestinations } from '../outside/destinations.ts';
import { createTokens } from '../outside/jwt.ts';
import { createPasswords } from '../outside/password.ts';
import { fixedFeed, rateFeeds } from '../outside/rate-feeds.ts';
import { RATE_SOURCES, type RateSourceName } from '../outside/rate-sources.ts';
import { systemRng } from '../outside/rng.ts';
import { connect, type Database } from '../store/connect.ts';
import { configuredNodes } from './config-nodes.ts';
import type { Config } from './config-table.ts';
import { clockFile, type SandboxEndpoint, sandboxEndpoint, sandboxNodeUrl, sandboxRateUrl } from './sandbox-place.ts';

export type WireOptions = {
  /** What the database's list of sessions shows. */
  readonly applicationName: string;
  readonly maxConnections: number;
  /** How long a database that does not answer is waited for; as long as it takes when it is left out. */
  readonly answersWithinMs?: number;
  /** The clock to use, where the process has its hands on it (the sandbox moves it); else it is opened here. */
  readonly clock?: Clock;
  /** How long a sandbox that is being made is waited for. */
  readonly sandboxWithinMs?: number;
};

export type Wired<C> = { readonly ctx: C; close(): Promise<void> };

/** Address indexes reserved at once: what a restart can lose, against one write to the database for as many addresses. */
const ADDRESS_RANGE = 200;

/** What it takes to make merchants and users and to sign in. `config.databaseUrl` must be given. */
export function wireSignIn(config: Config, options: WireOptions): Wired<SignInContext> {
  const { clock: given, sandboxWithinMs: _within, ...session } = options;
  const db = connect({ url: databaseUrl(config), role: 'bursar_app', ...session });
  const clock = given === undefined ? serviceClock(config) : { ...given, close: () => undefined };
  const ports = {
    clock,
    rng: systemRng,
    passwords: createPasswords(),
    tokens: createTokens({ clock, audience: config.network }),
  };
  return {
    ctx: { db, ports, network: config.network },
    async close() {
      await db.close();
      clock.close();
    },
  };
}

/** The whole context. `config.databaseUrl` must be given; in the sandbox, waits until its nodes' address is known. */
export async function wire(config: Config, options: WireOptions): Promise<Wired<Context>> {
  const sandbox = config.network === 'sandbox' ? await sandboxEndpoint(config.dataFolder, options.sandboxWithinMs) : null;
  const signIn = wireSignIn(config, options);
  const { db } = signIn.ctx;
  const { clock } = signIn.ctx.ports;
  const nodes = createChainNodes({ network: config.network, clock, urls: nodeUrls(config, sandbox) });
  const ports: Ports = {
    ...signIn.ctx.ports,
    chains: nodes.chains,
    rateFeeds: pricing(config, clock, sandbox),
    addresses: createAddressDerivers(config.network),
    destinations: createDestinations(config.network),
  };
  const ctx = contextOf(config, db, ports);
  return {
    ctx,
    async close() {
      await nodes.close();
      await signIn.close();
    },
  };
}

/** The context without nodes and prices, for commands that work on the books only: nobody has to run beside them. */
export function wireBooks(config: Config, options: WireOptions): Wired<Context> {
  const signIn = wireSignIn(config, options);
  const { db, ports } = signIn.ctx;
  const addresses = createAddressDerivers(config.network);
  const destinations = createDestinations(config.network);
  return {
    ctx: contextOf(config, db, { ...ports, chains: new Map(), rateFeeds: [], addresses, destinations }),
    close: signIn.close,
  };
}

function contextOf(config: Config, db: Database, ports: Ports): Context {
  const pools = new Map<UtxoCode, AddressPool>(
    WATCHED_CODES.map((currency) => [currency, createAddressPool({ db, ports }, currency, { rangeSize: ADDRESS_RANGE })]),
  );
  return {
    db,
    ports,
    network: config.network,
    feeBps: config.feeBps,
    contestedLimitMinor: config.contestedLimitMinor,
    settlementSeconds: config.settlementSeconds,
    desk: createDesk(db, async (currency) => pools.get(currency)!.next()),
  };
}

function databaseUrl(config: Config): string {
  if (config.databaseUrl === null) throw new Error('the database must be opened before anything is wired to it');
  return config.databaseUrl;
}

function serviceClock(config: Config): Clock & { close(): void } {
  return config.network === 'sandbox'
    ? openMovableClock(clockFile(config.dataFolder))
    : { ...systemClock, close: () => undefined };
}

function nodeUrls(config: Config, sandbox: SandboxEndpoint | null): ReadonlyMap<UtxoCode, readonly string[]> {
  if (sandbox !== null) return new Map(WATCHED_CODES.map((currency) => [currency, [sandboxNodeUrl(sandbox, currency)]]));
  return configuredNodes(config);
}

/** In the sandbox its own exchanges, elsewhere the configured ones, or prices that the operator has fixed. */
function pricing({ rateSources, fixedRates }: Config, clock: Clock, sandbox: SandboxEndpoint | null): readonly RateFeed[] {
  const names = Object.keys(RATE_SOURCES) as RateSourceName[];
  const at = (url: (name: RateSourceName) => string) => Object.fromEntries(names.map((name) => [name, url(name)]));
  if (sandbox !== null) return rateFeeds({ clock, urls: at((name) => sandboxRateUrl(sandbox, name)), tradesAll: true });
  if (fixedRates !== null) return [fixedFeed(clock, fixedRates)];
  return rateFeeds({ clock, urls: rateSources ?? at((name) => RATE_SOURCES[name].url) });
}
