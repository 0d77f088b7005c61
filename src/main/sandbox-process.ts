// The sandbox's own process: simulated nodes, exchanges and controls on loopback. It hands the controls what they need of the service: the
// transaction to pay, merchants and users, and the wait until what is due has been done. Started by `npm start` in the sandbox only.
import { addMerchant, addUser, UsernameTaken } from '../flow/merchants.ts';
import { openMovableClock } from '../outside/clock.ts';
import { createSandbox } from '../sandbox/sandbox.ts';
import type { SandboxService } from '../sandbox/service-side.ts';
import { findPayable } from '../store/payable.ts';
import { pollRates } from '../worker/rate-poller.ts';
import { open } from './opened.ts';
import { tryLock } from './process-identity.ts';
import { type Running, runProcess } from './process-life.ts';
import { clockFile, sandboxFolder } from './sandbox-place.ts';
import { settle, untilRead } from './settle.ts';
import { StartRefused } from './start-refused.ts';
import { wire } from './wire.ts';

const DATABASE_SESSIONS = 4;
/** A database that does not answer a control in this time makes it 503. */
const ANSWERS_WITHIN_MS = 5_000;

async function start(): Promise<Running> {
  const { config, database } = await open();
  const { dataFolder } = config;
  if (config.network !== 'sandbox') throw new StartRefused(`BURSAR_NETWORK is ${config.network}: it has no sandbox`);
  const lock = await tryLock(dataFolder, 'sandbox');
  if (lock === null) throw new StartRefused(`a sandbox already runs on ${dataFolder}`);
  const clock = openMovableClock(clockFile(dataFolder));
  // the price sources that the service asks are this process's own: wired once it is known where they answer
  let wiring: ReturnType<typeof wire> | null = null;
  const wired = () => {
    wiring ??= wire(config, {
      applicationName: 'bursar sandbox',
      maxConnections: DATABASE_SESSIONS,
      answersWithinMs: ANSWERS_WITHIN_MS,
      clock,
    });
    return wiring;
  };
  const sandbox = await createSandbox({
    folder: sandboxFolder(dataFolder),
    blockSeconds: config.sandboxBlockSeconds,
    clock,
    service: serviceSide(async () => (await wired()).ctx),
    log: (line) => console.error(line),
    onEnd(reason) {
      console.error(`sandbox: ${reason}`);
      process.exit(1);
    },
  });
  return {
    note: sandbox.url,
    async stop() {
      await sandbox.close();
      await (await wiring)?.close();
      clock.close();
      await database.close();
      await lock.release();
    },
  };
}

function serviceSide(context: () => Promise<Awaited<ReturnType<typeof wire>>['ctx']>): SandboxService {
  return {
    findTransaction: async (id) => findPayable((await context()).db, id),
    async addMerchant({ username, password, email, businessName }) {
      const given = { email: email ?? 'merchant@example.com', businessName: businessName ?? 'Sandbox Shop' };
      return unlessTaken(async () => {
        const { affiliateId } = await addMerchant(await context(), { username, password, ...given });
        return { affiliate_id: affiliateId };
      });
    },
    async addUser({ affiliateId, username, password, scopes }) {
      return unlessTaken(async () => {
        await addUser(await context(), { affiliateId, username, password, scopes });
        return { affiliate_id: affiliateId, username, scopes };
      });
    },
    untilRead: async (currencies, timeoutMs) => untilRead(await context(), currencies, timeoutMs),
    settle: async (timeoutMs) => settle(await context(), timeoutMs),
    refreshRates: async () => void (await pollRates(await context())),
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
