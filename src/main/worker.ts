// The worker's process: watches the chains, asks the price sources, lets the judge decide what is due, and audits. Any number may run on
// one database. `npm start` runs it, or `bursar worker` by itself.
import { hostname } from 'node:os';
import { LIGHTNING } from '../core/currencies/lightning.ts';
import type { CurrencyCode } from '../core/currency.ts';
import { watchedCodes } from '../flow/context.ts';
import { askToSign, createSignerClient, type SignerClient } from '../outside/signer-client.ts';
import { createWebhookSender } from '../outside/webhooks/sender.ts';
import { Alarm } from '../worker/alarm.ts';
import { createWatchedScripts } from '../worker/chain/watch-list.ts';
import { createChainWatcher } from '../worker/chain/watcher.ts';
import { createDeliveries } from '../worker/deliveries/deliveries.ts';
import { type OverLightning, workerJobs } from '../worker/jobs.ts';
import { createLightningWatcher } from '../worker/lightning/watcher.ts';
import { startLoop } from '../worker/loop.ts';
import type { Signing } from '../worker/payouts/driver-options.ts';
import { identityOf, isAlive } from './process/identity.ts';
import { isSupervised, type Running, runProcess } from './process/life.ts';
import { openLog } from './process/log.ts';
import { createOutageLog } from './process/outage-log.ts';
import { type Opened, onOpened } from './process/setup.ts';
import { failpoints } from './sandbox/failpoints.ts';
import { sandboxEndpoint, untilSandboxAnswers } from './sandbox/paths.ts';
import { bankOf } from './wiring/bank.ts';
import { prepareSeals } from './wiring/credential-key.ts';
import { openDatabaseMemory } from './wiring/database-memory.ts';
import { intentTrust } from './wiring/intent-trust.ts';
import { wire } from './wiring/nodes.ts';
import { signerSocketOf } from './wiring/signer-paths.ts';
import { openWebhookSealing } from './wiring/webhook-key.ts';

const DATABASE_SESSIONS = 10;
const SANDBOX_WITHIN_MS = 20_000;
const SIGNER_WITHIN_MS = 15_000;
/** Deliveries under way when the worker stops; one that takes longer is repeated by the next worker. */
const DELIVERIES_WITHIN_MS = 2_000;

async function start({ config, database }: Opened): Promise<Running> {
  const log = openLog('worker');
  // it starts together with us: its nodes not being there yet is no error
  if (config.network === 'sandbox' && isSupervised())
    await untilSandboxAnswers(() => sandboxEndpoint(config.dataFolder), SANDBOX_WITHIN_MS);
  const wired = await wire(config, {
    applicationName: 'bursar worker',
    maxConnections: DATABASE_SESSIONS,
    checksIdentity: true,
    webhookSealing: await openWebhookSealing(config),
  });
  const { ctx } = wired;
  const memory = await openDatabaseMemory(ctx.db, config.dataFolder, (line) => log.error(line));
  await prepareSeals(config, ctx);
  const scripts = createWatchedScripts(ctx);
  const watchers = new Map(
    [...ctx.ports.chains.keys()].map((currency: CurrencyCode) => [currency, createChainWatcher(ctx, currency, { scripts })]),
  );
  const outage = createOutageLog(ctx.db, log);
  const report = (job: string, error: unknown): void =>
    error instanceof Alarm ? log.error({ reason: error.message }, job) : outage.report({ err: error }, job);
  const signer = createSignerClient(signerSocketOf(config), { timeoutMs: SIGNER_WITHIN_MS });
  const signing: Signing = {
    sign: (request) => askToSign(signer, request),
    signed: (asked) => signer.ask<'signed'>({ op: 'signed', ...asked }),
  };
  const intents = intentTrust(signer);
  const here = `${hostname()} `;
  const owner = here + (identityOf(process.pid) ?? process.pid);
  const reached = failpoints(config.network, config.dataFolder);
  const overLightning = ctx.ports.lightning === null ? null : payingThrough(signer);
  const payouts = {
    signing,
    overLightning,
    owner,
    // the words of another machine's worker say nothing here
    isGone: (other: string) =>
      other.startsWith(here) && /^\d+-\w+$/.test(other.slice(here.length)) && !isAlive(other.slice(here.length)),
    intents,
    ach: bankOf(config, intents),
    ...(reached === undefined ? {} : { reached }),
  };
  const deliveries = createDeliveries(ctx, createWebhookSender(ctx.ports.outbound), report);
  const { lightning: port } = ctx.ports;
  const lightning = port === null ? null : { port, watcher: createLightningWatcher(ctx, port) };
  const loop = startLoop([...workerJobs(ctx, watchers, report, payouts, lightning), deliveries.job, memory.job], report);
  lightning?.watcher.onHint(() => loop.wake(`chain ${LIGHTNING.code}`));
  for (const [currency, watcher] of watchers) watcher.onHint(() => loop.wake(`chain ${currency}`));
  ctx.db.identity.onChanged((evidence) => {
    if (evidence === null) return;
    log.error(
      { evidence },
      'the database was replaced: what was written last before may be missing in it; everything is read again',
    );
    memory.replaced(evidence).catch((error) => report('replaced database', error));
    loop.hurry();
  });
  const stopListening = await ctx.db.listen(
    ['hurry', 'judge'],
    (channel, jobs) => {
      const named = channel === 'judge' ? [channel] : jobs.split(',').filter(Boolean);
      for (const job of named) loop.hurry(job);
      if (named.length === 0) loop.hurry();
    },
    () => loop.hurry(),
  );
  return {
    note: `watching ${watchedCodes(ctx).join(', ') || 'no chain'}`,
    async stop() {
      await stopListening();
      await loop.stop();
      await deliveries.finish(AbortSignal.timeout(DELIVERIES_WITHIN_MS));
      await memory.note().catch((error) => report('note the database', error));
      signer.close();
      outage.close();
      for (const watcher of watchers.values()) await watcher.close();
      await lightning?.watcher.close();
      await wired.close();
      await database.close();
    },
  };
}

/** Paying over Lightning, which only the signer's process can do. */
function payingThrough(signer: SignerClient): OverLightning {
  return {
    node: () => signer.ask<'paying_node'>({ op: 'paying_node' }),
    authorize: (payment) => signer.ask<'authorize_payment'>({ op: 'authorize_payment', ...payment }),
    send: (payment) => signer.ask<'send_payment'>({ op: 'send_payment', ...payment }),
    authorized: (after) => signer.ask<'authorized_payments'>({ op: 'authorized_payments', after }),
    channels: async (node) => (await signer.ask<'known_channels'>({ op: 'known_channels', node })).points,
    track: (paymentHash) => signer.ask<'track_payment'>({ op: 'track_payment', paymentHash }),
    payments: async (after) => (await signer.ask<'node_payments'>({ op: 'node_payments', after: after.toString() })).payments,
  };
}

await runProcess('worker', () => onOpened(start));
