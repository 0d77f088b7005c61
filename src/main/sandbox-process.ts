// The sandbox's own process: simulated nodes, exchanges and controls on loopback. It gives the controls what they need of the service: the
// transaction to pay, merchants and users, and the wait until everything due has been done; and it creates the demo merchant when asked for
// its login. Only in the sandbox.
import type { RateFeed } from '../core/rate-feed.ts';
import type { Context } from '../flow/context.ts';
import { addMerchant, addUser, UsernameTaken } from '../flow/merchants/merchants.ts';
import { openMovableClock } from '../outside/clock.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import type { SandboxService } from '../sandbox/service-side.ts';
import { readPayout } from '../store/payouts/reads.ts';
import { createBatch } from '../store/postgres/batch.ts';
import { findPayables } from '../store/transactions/payable.ts';
import { pollRates } from '../worker/rate-poller.ts';
import { tryLock } from './process/identity.ts';
import { type Running, runProcess } from './process/life.ts';
import { createOutageLog } from './process/outage-log.ts';
import { type Opened, open } from './process/setup.ts';
import { StartRefused } from './process/start-refused.ts';
import { giveCapital } from './sandbox/capital.ts';
import { prepareDemo } from './sandbox/demo-merchant.ts';
import { clockFile, sandboxFolder } from './sandbox/paths.ts';
import { settle, untilBankRead, untilHandedOver, untilRead } from './sandbox/settle.ts';
import { prepareSeals } from './wiring/credential-key.ts';
import { wireBooks } from './wiring/wire.ts';

const DATABASE_SESSIONS = 4;
/** A database that does not answer a control in this time makes it 503. */
const ANSWERS_WITHIN_MS = 5_000;

type Fields = { readonly reason?: string; readonly error?: Error; readonly seconds?: number };
/** One line each; only a bug has its stack. */
const PLAIN_LOG = {
  error: ({ reason, error }: Fields, message: string) => console.error(`sandbox: ${message}: ${reason ?? error?.stack}`),
  info: ({ seconds }: Fields, message: string) => console.error(`sandbox: ${message} (after ${seconds} s)`),
};

async function start(): Promise<Running> {
  const { config, database } = await open();
  const { dataFolder } = config;
  if (config.network !== 'sandbox') throw new StartRefused(`BURSAR_NETWORK is ${config.network}: it has no sandbox`);
  const lock = await tryLock(dataFolder, 'sandbox');
  if (lock === null) throw new StartRefused(`a sandbox already runs on ${dataFolder}`);
  const clock = openMovableClock(clockFile(dataFolder));
  const wired = wireBooks(config, {
    applicationName: 'bursar sandbox',
    maxConnections: DATABASE_SESSIONS,
    answersWithinMs: ANSWERS_WITHIN_MS,
    clock,
  });
  const { ctx } = wired;
  await prepareSeals(config, ctx);
  const outage = createOutageLog(ctx.db, PLAIN_LOG);
  const sandbox = await createSandbox({
    folder: sandboxFolder(dataFolder),
    blockSeconds: config.sandboxBlockSeconds,
    clock,
    service: serviceSide(config, ctx),
    log: (line, error) => outage.report({ error }, line),
    onEnd(reason) {
      console.error(`sandbox: ${reason}`);
      process.exit(1);
    },
  });
  const ending = new AbortController();
  const report = (error: unknown): void => outage.report({ error: error as Error }, 'capital');
  const capital = giveCapital(ctx, sandbox, { signal: ending.signal, report });
  return {
    note: sandbox.url,
    answer: () => prepareDemo(config, ctx),
    async stop() {
      ending.abort();
      await capital;
      await sandbox.close();
      outage.close();
      await wired.close();
      clock.close();
      await database.close();
      await lock.release();
    },
  };
}

function serviceSide(config: Opened['config'], ctx: Context): SandboxService {
  let prices: Promise<readonly RateFeed[]> | null = null;
  return {
    findTransaction: createBatch(2, (ids: readonly string[]) => findPayables(ctx.db, ids)),
    async addMerchant({ username, password, email, businessName }) {
      const given = { email: email ?? 'merchant@example.com', businessName: businessName ?? 'Sandbox Shop' };
      return unlessTaken(async () => {
        const { affiliateId } = await addMerchant(ctx, { username, password, ...given });
        return { affiliate_id: affiliateId };
      });
    },
    async addUser({ affiliateId, username, password, scopes }) {
      return unlessTaken(async () => {
        await addUser(ctx, { affiliateId, username, password, scopes });
        return { affiliate_id: affiliateId, username, scopes };
      });
    },
    untilRead: (...asked) => untilRead(ctx, ...asked),
    async findBankEntry(payoutId) {
      const found = await readPayout(ctx.db, payoutId);
      return found === null ? null : { trace: found.trace };
    },
    untilBankRead: (timeoutMs) => untilBankRead(ctx, timeoutMs),
    untilHandedOver: (timeoutMs) => untilHandedOver(ctx, timeoutMs),
    settle: (timeoutMs) => settle(ctx, timeoutMs),
    async refreshRates() {
      // loaded by the first control that needs them: the exchanges' clients are a good part of this process
      const { priceSources } = await import('./wiring/nodes.ts');
      prices ??= priceSources(config, ctx.ports.clock);
      await pollRates({ ...ctx, ports: { ...ctx.ports, rateFeeds: await prices } });
    },
  };
}

async function unlessTaken<T>(work: () => Promise<T>): Promise<T | null> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof UsernameTaken) return null;
    throw error;
  }
}

await runProcess('sandbox', start);
