// Builds the object graph of a process: database, clock, keys, and the context of all operations; nodes.ts adds nodes and price
// sources. A service's processes create these objects here only, once each; the signer and `config check` make the few that they need themselves.
import { CURRENCY_CODES, type CurrencyCode } from '../../core/currency.ts';
import type { IntentKey } from '../../core/payouts/intent.ts';
import type { Clock, Ports, Sealing } from '../../core/ports.ts';
import { type AddressPool, createAddressPool } from '../../flow/addresses/pool.ts';
import type { Context } from '../../flow/context.ts';
import type { SignInContext } from '../../flow/sign-in/token-pair.ts';
import { createTransactionBatches } from '../../flow/transactions/request-batches.ts';
import { openMovableClock, systemClock } from '../../outside/clock.ts';
import { createDestinations } from '../../outside/destinations.ts';
import { createTokens } from '../../outside/jwt.ts';
import { createOutboundThread } from '../../outside/outbound/outbound-thread.ts';
import { createPasswords } from '../../outside/password.ts';
import { systemRng } from '../../outside/rng.ts';
import { createSealing, unsealed } from '../../outside/sealing.ts';
import { createAddressDerivers } from '../../outside/utxo/address-derivers.ts';
import { currenciesInUse } from '../../store/chain/range-requests.ts';
import { createBatchOfKey } from '../../store/postgres/batch.ts';
import { connect, type Database } from '../../store/postgres/connect.ts';
import { configuredCurrencies, tokenContract } from '../config/configured-nodes.ts';
import type { Config } from '../config/variables.ts';
import { clockFile } from '../sandbox/paths.ts';
import { rowSeals } from './credential-key.ts';
import { lightningOf } from './lightning.ts';

export type WireOptions = {
  /** What the database's list of sessions shows. */
  readonly applicationName: string;
  readonly maxConnections: number;
  /** How long to wait for a database that does not answer; without a limit when absent. */
  readonly answersWithinMs?: number;
  /** Statements find their rows by an index, and no plan reads a table whole. */
  readonly byIndex?: boolean;
  /** It keeps what it has read: a database that was replaced is noticed. */
  readonly checksIdentity?: boolean;
  /** The clock to use, in a process that controls it (the sandbox moves it); otherwise it is opened here. */
  readonly clock?: Clock;
  /** It gives addresses to customers: they are requested before the first customer comes. */
  readonly addressesReady?: boolean;
  /** It takes payouts: what signs them. */
  readonly intentKey?: IntentKey;
  /** It makes or uses the secrets of webhooks. */
  readonly webhookSealing?: Sealing;
};

export type Wired<C> = { readonly ctx: C; close(): Promise<void> };

/**
 * How many addresses of a currency are kept ready in a process, for the time when a signer restarts; a process that ends loses at most
 * twice as many indexes.
 */
const ADDRESSES_READY = 1_000;

/** What is needed to create merchants and users and to sign in. `config.databaseUrl` must be given. */
export function wireSignIn(config: Config, options: WireOptions): Wired<SignInContext> {
  const { clock: given, addressesReady: _ready, intentKey: _key, webhookSealing: _sealing, ...session } = options;
  const db = connect({ url: databaseUrl(config), role: 'bursar_app', ...session });
  const clock = given === undefined ? serviceClock(config) : { ...given, close: () => undefined };
  const ports = {
    clock,
    rng: systemRng,
    passwords: createPasswords(),
    tokens: createTokens({ clock, audience: config.network }),
    seals: rowSeals(config),
  };
  return {
    ctx: { db, ports, network: config.network },
    async close() {
      await db.close();
      clock.close();
    },
  };
}

/** The context without nodes and prices, for the API and for commands: none needs to run beside them. `config.databaseUrl` must be given. */
export function wireBooks(config: Config, options: WireOptions): Wired<Context> {
  const signIn = wireSignIn(config, options);
  const { db, ports } = signIn.ctx;
  const addresses = createAddressDerivers(config.network);
  const destinations = createDestinations(config.network);
  const intentKey = options.intentKey ?? NO_INTENT_KEY;
  const lightning = lightningOf(config);
  const outbound = createOutboundThread(
    config.network === 'sandbox' ? { isSandbox: true } : { isSandbox: false, ports: config.outboundPorts },
  );
  const seals = { sealing: sealingOf(config), webhookSealing: options.webhookSealing ?? NO_WEBHOOK_KEY };
  const reached = { chains: new Map(), lightning, rateFeeds: [], outbound };
  const allPorts = { ...ports, ...reached, addresses, destinations, intentKey, ...seals };
  const pools = addressPools(db, allPorts);
  if (options.addressesReady === true) prepare(db, pools).catch(() => undefined);
  return {
    ctx: contextOf(config, db, allPorts, pools),
    async close() {
      lightning?.close();
      await outbound.close();
      await signIn.close();
    },
  };
}

type AddressPools = ReadonlyMap<CurrencyCode, AddressPool>;

function addressPools(db: Database, ports: Ports): AddressPools {
  const options = { ready: ADDRESSES_READY };
  return new Map(CURRENCY_CODES.map((currency) => [currency, createAddressPool({ db, ports }, currency, options)]));
}

/**
 * Requests addresses of the currencies received before, so that the first customers find them ready; a request that fails is repeated by
 * them.
 */
async function prepare(db: Database, pools: AddressPools): Promise<void> {
  for (const currency of await currenciesInUse(db)) await pools.get(currency)?.prepare();
}

function contextOf(config: Config, db: Database, ports: Ports, pools: AddressPools): Context {
  return {
    db,
    ports,
    network: config.network,
    currencies: configuredCurrencies(config),
    tokenContract: tokenContract(config),
    feeBps: config.feeBps,
    contestedLimitMinor: config.contestedLimitMinor,
    settlementSeconds: config.settlementSeconds,
    unfinalPayoutMinor: unfinalLimit(config),
    exposureMinor: config.exposureMinor,
    sweepGasMultiple: config.sweepGasMultiple,
    hasBank: config.network === 'sandbox' || config.bankFolder !== null,
    batches: createTransactionBatches(db, ports.seals, async (currency) => pools.get(currency)!.next()),
    batchOfKey: createBatchOfKey(),
  };
}

/** In the sandbox nothing is sealed: whoever looks should be able to read. */
export function sealingOf({ network, bankKey }: Config): Sealing {
  return network === 'sandbox' || bankKey === null ? unsealed : createSealing(bankKey);
}

const refusing = (): never => {
  throw new Error('only the API and the worker have the key of the secrets of webhooks');
};
const NO_WEBHOOK_KEY: Sealing = { seal: refusing, open: refusing };

const NO_INTENT_KEY: IntentKey = {
  sign() {
    throw new Error('only the API has the key that signs payouts');
  },
};

const UNFINAL_PAYOUT_MINOR = 10_000_00n;

/** In the sandbox there is no limit unless one is set. */
function unfinalLimit({ network, unfinalPayoutMinor }: Config): bigint | null {
  return unfinalPayoutMinor ?? (network === 'sandbox' ? null : UNFINAL_PAYOUT_MINOR);
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
