// The API on a free port over a real database, with the real ports and a clock that the test moves, for the tests of http. Two merchants,
// one of them with a user for each set of scopes; BTC and LTC can be paid with, at the test's own rates.
import { once } from 'node:events';
import { connect as openSocket } from 'node:net';
import pg from 'pg';
import type { RateLimits } from '../../src/contract/endpoint.ts';
import { type CurrencyCode, type Network, UTXO_CODES, type UtxoCode } from '../../src/core/currency.ts';
import { parseRate, type Rate } from '../../src/core/rate.ts';
import { type AddressPool, createAddressPool } from '../../src/flow/addresses/pool.ts';
import type { Context } from '../../src/flow/context.ts';
import { addMerchant, addUser } from '../../src/flow/merchants/merchants.ts';
import { createAuthenticator } from '../../src/flow/sign-in/sign-in.ts';
import { createTransactionBatches } from '../../src/flow/transactions/request-batches.ts';
import type { ConnectionLimits } from '../../src/http/connections.ts';
import type { Durations } from '../../src/http/metrics/durations.ts';
import type { RequestLimits } from '../../src/http/requests-in-progress.ts';
import { createServer } from '../../src/http/server.ts';
import type { SandboxForward } from '../../src/http/server-context.ts';
import { NOT_SHARED, type SharedLimits } from '../../src/http/shared-limits.ts';
import type { PlaceLimits } from '../../src/http/stream-places.ts';
import { openEventTail } from '../../src/main/wiring/event-tail.ts';
import { openStatusNotifier } from '../../src/main/wiring/status-notifier.ts';
import { createCheckoutTokens } from '../../src/outside/checkout-tokens.ts';
import { recordCondition } from '../../src/store/chain/node-conditions.ts';
import { addSignerKey } from '../../src/store/chain/xpubs.ts';
import { createBatchOfKey } from '../../src/store/postgres/batch.ts';
import { saveRates } from '../../src/store/transactions/rates.ts';
import { regtestAccountKey } from '../keys/vectors.ts';
import { markWatched } from '../support/mark-watched.ts';
import { portsFor, SEALS } from '../support/ports.ts';
import { freshDatabase } from '../support/postgres.ts';
import { openSigner } from '../support/signer.ts';

export const PASSWORD = 'correct horse battery';
export const BTC_RATE = '65000.00';
export const LTC_RATE = '80.00';

export type Reply = {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  // biome-ignore lint/suspicious/noExplicitAny: whatever the server said, for the test to look at
  readonly json: any;
};
export type ApiServer = Awaited<ReturnType<typeof makeApi>>;
export type ApiOptions = {
  readonly network?: Network;
  readonly publicUrl?: string;
  readonly rateLimitScale?: number;
  readonly rateLimits?: RateLimits;
  readonly trustedProxies?: readonly string[];
  readonly sandbox?: SandboxForward | null;
  readonly sharedLimits?: SharedLimits;
  readonly connectionLimits?: ConnectionLimits;
  readonly requestLimits?: RequestLimits;
  readonly streamLimits?: PlaceLimits;
  readonly checkoutLimits?: PlaceLimits;
  readonly durations?: Durations;
};

async function context(network: Network, now: () => number) {
  const fresh = await freshDatabase();
  const { url, db } = fresh;
  const ports = portsFor(network, { now });
  const pools = new Map<CurrencyCode, AddressPool>(
    UTXO_CODES.map((code) => [code, createAddressPool({ db, ports }, code, { ready: 50 })]),
  );
  const batches = createTransactionBatches(db, SEALS, async (currency) => pools.get(currency)!.next());
  const ctx: Context = {
    db,
    ports,
    network,
    currencies: ['BTC', 'LTC'],
    tokenContract: null,
    feeBps: 0,
    settlementSeconds: 86_400,
    contestedLimitMinor: 1_000_00n,
    unfinalPayoutMinor: null,
    exposureMinor: null,
    hasBank: true,
    batches,
    batchOfKey: createBatchOfKey(),
  };
  const signer = await openSigner(db);
  const drop = async () => {
    await signer.close();
    await fresh.drop();
  };
  return { ctx, url, drop };
}

/** Node conditions and rates as the worker would leave them at this moment. */
async function openForBusiness(ctx: Context, now: number): Promise<void> {
  const hash = '00'.repeat(32);
  for (const code of UTXO_CODES) {
    await recordCondition(ctx.db, code, { state: 'ready', height: 100, hash, tipTimeMs: now, peers: 1 }, now);
  }
  await markWatched(ctx.db);
  const rates = new Map<UtxoCode, Rate>([
    ['BTC', parseRate(BTC_RATE)!],
    ['LTC', parseRate(LTC_RATE)!],
  ]);
  const judgements = [...rates].map(([currency, usd]) => ({
    currency,
    usd,
    used: [{ source: 'kraken', usd, atMs: now }],
    leftOut: [],
  }));
  await saveRates(ctx.db, SEALS, judgements as never, now);
}

export async function makeApi(options: ApiOptions = {}) {
  const network = options.network ?? 'sandbox';
  let nowMs = Date.now();
  const { ctx, url, drop } = await context(network, () => nowMs);
  for (const currency of UTXO_CODES) {
    // outside mainnet all currencies have coin type 1: each gets its own account
    const xpub = regtestAccountKey(`m/84'/1'/${UTXO_CODES.indexOf(currency)}'`);
    await addSignerKey(ctx.db, { currency, xpub, at: new Date(nowMs) });
  }
  await openForBusiness(ctx, nowMs);
  const shop = { username: 'shop', password: PASSWORD, email: 'shop@example.com', businessName: 'The Shop' };
  const { affiliateId } = await addMerchant(ctx, shop);
  for (const scope of ['read', 'payments', 'payouts']) {
    await addUser(ctx, { affiliateId, username: `only.${scope}`, password: PASSWORD, scopes: [scope] });
  }
  const other = await addMerchant(ctx, { ...shop, username: 'other', email: 'other@example.com' });

  const bugs: unknown[] = [];
  const authenticator = createAuthenticator(ctx);
  await authenticator.listen();
  const opened = await openStatusNotifier(ctx.db);
  const { notifier: statusNotifier } = opened;
  const eventTail = openEventTail(ctx.db, (error) => bugs.push(error));
  const app = createServer({
    ctx,
    authenticator,
    statusNotifier,
    eventTail,
    network,
    publicUrl: options.publicUrl ?? null,
    rateLimits: options.rateLimits ?? {},
    rateLimitScale: options.rateLimitScale ?? 10_000,
    sharedLimits: options.sharedLimits ?? NOT_SHARED,
    trustedProxies: options.trustedProxies ?? [],
    sandbox: options.sandbox ?? null,
    report: ({ error }) => bugs.push(error),
    version: '0.0.0-test',
    checkoutTokens: createCheckoutTokens(SEALS),
    ...(options.connectionLimits === undefined ? {} : { connectionLimits: options.connectionLimits }),
    ...(options.requestLimits === undefined ? {} : { requestLimits: options.requestLimits }),
    ...(options.durations === undefined ? {} : { durations: options.durations }),
    ...(options.checkoutLimits === undefined ? {} : { checkoutLimits: options.checkoutLimits }),
    ...(options.streamLimits === undefined ? {} : { streamLimits: options.streamLimits }),
  });
  const base = await app.listen({ port: 0, host: '127.0.0.1' });

  /** Sends these bytes (or this value as JSON) and reads whatever comes back. */
  async function send(path: string, body: unknown, headers: Record<string, string> = {}, method = 'POST'): Promise<Reply> {
    const bytes = body === undefined ? {} : { body: raw(body) };
    const response = await fetch(base + path, { method, headers: { 'content-type': 'application/json', ...headers }, ...bytes });
    const text = await response.text();
    return { status: response.status, headers: response.headers, text, json: asJson(text) };
  }
  const tokens = new Map<string, string>();
  /** An access token of this user, signed in over the API once. */
  async function tokenOf(username: string): Promise<string> {
    const known = tokens.get(username);
    if (known !== undefined) return known;
    const { json } = await send('/auth', { username, password: PASSWORD });
    tokens.set(username, json.access_token);
    return json.access_token;
  }
  /** Calls an operation as this user. */
  async function call(path: string, body: object, headers: Record<string, string> = {}, username = 'shop'): Promise<Reply> {
    return await send(path, { access_token: await tokenOf(username), ...body }, headers);
  }
  const operator = new pg.Client({ connectionString: url });
  await operator.connect();

  return {
    ctx,
    /** Of the database. */
    url,
    base,
    app,
    bugs,
    affiliateId,
    otherAffiliateId: other.affiliateId,
    send,
    call,
    tokenOf,
    /** Access tokens by username, to be used by `call`. */
    tokens,
    advance: (seconds: number) => {
      nowMs += seconds * 1000;
    },
    now: () => nowMs,
    reopen: () => openForBusiness(ctx, nowMs),
    /** Runs SQL as the operator. */
    sql: async (text: string, values: unknown[] = []) => (await operator.query(text, values)).rows,
    /** How many rows every table of public has. */
    async rowCounts(): Promise<Record<string, number>> {
      const names = await operator.query<{ name: string }>(
        `select tablename as name from pg_tables where schemaname in ('public', 'ledger') order by 1`,
      );
      const counts: Record<string, number> = {};
      for (const { name } of names.rows) {
        const schema = (await operator.query(`select 1 from pg_tables where schemaname = 'public' and tablename = $1`, [name]))
          .rowCount;
        const { rows } = await operator.query<{ n: number }>(
          `select count(*)::int as n from ${schema ? 'public' : 'ledger'}.${name}`,
        );
        counts[name] = rows[0]?.n ?? 0;
      }
      return counts;
    },
    /** Only the server, as a process that ends does first. */
    close: () => app.close(),
    async end() {
      await app.close();
      await opened.close();
      await eventTail.close();
      await authenticator.close();
      await operator.end();
      await drop();
    },
  };
}

function raw(body: unknown): string | Buffer<ArrayBuffer> {
  if (typeof body === 'string') return body;
  return Buffer.isBuffer(body) ? Buffer.from(body) : JSON.stringify(body);
}

function asJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function wholeAnswers(text: string): number {
  let count = 0;
  for (let rest = Buffer.from(text); ; count++) {
    const end = rest.indexOf('\r\n\r\n');
    const length = /content-length: (\d+)/i.exec(rest.toString('latin1', 0, Math.max(end, 0)))?.[1];
    if (length === undefined || rest.length < end + 4 + Number(length)) return count;
    rest = rest.subarray(end + 4 + Number(length));
  }
}

/** Writes bytes to the port and reads until the server closes or as many whole answers are there. */
export async function speak(base: string, bytes: string, answers = 1): Promise<string> {
  const { port } = new URL(base);
  const socket = openSocket(Number(port), '127.0.0.1');
  await once(socket, 'connect');
  socket.write(bytes);
  let answer = '';
  for await (const chunk of socket) {
    answer += chunk;
    if (wholeAnswers(answer) >= answers) break;
  }
  socket.destroy();
  return answer;
}
