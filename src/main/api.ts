// The process that faces the internet: the HTTP API. It holds no key that can spend. `npm start` runs it, or `bursar api` by itself, any
// number of times on one database.
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createMetrics } from '../flow/metrics.ts';
import { createAuthenticator } from '../flow/sign-in/sign-in.ts';
import { createDurations } from '../http/metrics/durations.ts';
import { createMetricsServer } from '../http/metrics/server.ts';
import { createServer } from '../http/server.ts';
import { createCheckoutTokens } from '../outside/checkout-tokens.ts';
import { isSupervised, type Running, runProcess } from './process/life.ts';
import { openLog } from './process/log.ts';
import { createOutageLog } from './process/outage-log.ts';
import { type Opened, onOpened } from './process/setup.ts';
import { listenRefused } from './process/start-refused.ts';
import { sandboxForward } from './sandbox/forward.ts';
import { sandboxEndpoint } from './sandbox/paths.ts';
import { untilSandboxIsReady } from './sandbox/ready.ts';
import { openApiPeers } from './wiring/api-peers.ts';
import { runAutomaticPayouts } from './wiring/automatic-payouts.ts';
import { prepareSeals } from './wiring/credential-key.ts';
import { openEventTail } from './wiring/event-tail.ts';
import { openIntentKey } from './wiring/intent-key.ts';
import { openStatusNotifier } from './wiring/status-notifier.ts';
import { tokenPayeesOf } from './wiring/token-payees.ts';
import { openWebhookSealing } from './wiring/webhook-key.ts';
import { wireBooks } from './wiring/wire.ts';

const DATABASE_SESSIONS = 16;
/** A database that does not answer a call of the API in this time makes it 503. */
const ANSWERS_WITHIN_MS = 5_000;
const SANDBOX_READY_WITHIN_MS = 20_000;

async function start({ config, database }: Opened): Promise<Running> {
  const { port, host, network, dataFolder, rateLimits, rateLimitScale, trustedProxies } = config;
  const log = openLog('api');
  const wired = wireBooks(config, {
    applicationName: 'bursar api',
    maxConnections: DATABASE_SESSIONS,
    answersWithinMs: ANSWERS_WITHIN_MS,
    byIndex: true,
    addressesReady: true,
    intentKey: await openIntentKey(dataFolder),
    webhookSealing: await openWebhookSealing(config),
  });
  const tokenPayees = tokenPayeesOf(config);
  const ctx = { ...wired.ctx, ports: { ...wired.ctx.ports, tokenPayees } };
  await prepareSeals(config, ctx);
  const outage = createOutageLog(ctx.db, log);
  const authenticator = createAuthenticator(ctx);
  const { sharedLimits, join, leave } = openApiPeers(ctx.db, ctx.ports.clock.now, (error) =>
    outage.report({ err: error }, 'API peers'),
  );
  const [{ notifier: statusNotifier, close: closeNotifier }] = await Promise.all([
    openStatusNotifier(ctx.db),
    authenticator.listen(),
  ]);
  const eventTail = openEventTail(ctx.db, (error) => outage.report({ err: error }, 'streams of events'));
  const durations = createDurations();
  const server = createServer({
    ctx,
    authenticator,
    statusNotifier,
    eventTail,
    network,
    rateLimits: rateLimits ?? {},
    rateLimitScale,
    sharedLimits,
    trustedProxies: trustedProxies ?? [],
    publicUrl: config.publicUrl?.replace(/\/+$/, '') ?? null,
    sandbox: network === 'sandbox' ? sandboxForward(() => sandboxEndpoint(dataFolder)) : null,
    report: (what, message) => outage.report(what, message),
    version: version(),
    checkoutTokens: createCheckoutTokens(ctx.ports.seals),
    ...(config.metricsPort === null ? {} : { durations }),
  });
  const endpoint = () => sandboxEndpoint(dataFolder);
  const waitsForSandbox = network === 'sandbox' && isSupervised();
  await Promise.all([
    join(),
    server.ready(),
    waitsForSandbox ? untilSandboxIsReady(ctx, endpoint, SANDBOX_READY_WITHIN_MS) : null,
  ]);
  const stopAutomatic = await runAutomaticPayouts(ctx, (what, message) => outage.report(what, message));
  try {
    await server.listen({ port, host });
  } catch (error) {
    throw listenRefused(host, port, error);
  }
  const stopMetrics = await listenForMetrics(config, {
    metrics: createMetrics(ctx),
    durations,
    report: (what, message) => outage.report(what, message),
  });
  return {
    note: listeningUrl(host, server.server.address()),
    async stop() {
      await stopMetrics();
      await server.close();
      await stopAutomatic();
      outage.close();
      await Promise.all([closeNotifier(), eventTail.close()]);
      await leave();
      await authenticator.close();
      await tokenPayees.close();
      await wired.close();
      await database.close();
    },
  };
}

/** @returns what ends it */
async function listenForMetrics(
  { host, metricsPort }: Opened['config'],
  parts: Parameters<typeof createMetricsServer>[0],
): Promise<() => Promise<void>> {
  if (metricsPort === null) return async () => undefined;
  const metrics = createMetricsServer(parts);
  try {
    metrics.listen(metricsPort, host);
    await once(metrics, 'listening');
  } catch (error) {
    throw listenRefused(host, metricsPort, error, 'BURSAR_METRICS_PORT');
  }
  return async () => {
    metrics.close();
    metrics.closeAllConnections();
  };
}

function listeningUrl(host: string, address: unknown): string {
  const { port } = address as { port: number };
  return `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
}

function version(): string {
  return (JSON.parse(readFileSync(new URL('../../package.json', import.meta.url), 'utf8')) as { version: string }).version;
}

await runProcess('api', () => onOpened(start));
