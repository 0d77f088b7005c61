// The service's database: DATABASE_URL, or the embedded PostgreSQL of BURSAR_DATA_DIR. The first process starts the embedded one and the
// last one stops it; a server that outlived a kill -9 of its users is taken over.
import { existsSync, mkdirSync, readdirSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { ensureDatabase, ensureServiceLogin, serverVersion } from '../../store/postgres/server.ts';
import type { Config } from '../config/variables.ts';
import { identityOf, isAlive, lock } from '../process/identity.ts';
import { StartRefused } from '../process/start-refused.ts';
import { clusterUrl, makeCluster, runningServer, startCluster, stopCluster } from './cluster.ts';
import { clusterPaths } from './cluster-paths.ts';

export type OpenDatabase = {
  /** URL of the database; its user may migrate it. */
  readonly url: string;
  /** URL for the service's own sessions. In the embedded database its login can do no more than their roles; otherwise it equals `url`. */
  readonly serviceUrl: string;
  /** One line for the operator that describes it. */
  readonly description: string;
  /** Whether the embedded server is alive; always true for DATABASE_URL (its sessions show it). */
  isAlive(): boolean;
  /** Starts the embedded server again after it died. */
  restart(): Promise<void>;
  /** Leaves; the embedded server is stopped when no other process uses it. */
  close(): Promise<void>;
};

const DATABASE = 'bursar';
/** A login of the embedded database, only through the socket's folder. */
const SERVICE_LOGIN = 'bursar_service';
const LOCK = 'postgres';

/** Opens the database; resolves when it accepts statements. Throws StartRefused with one clear line when it cannot be opened. */
export async function openDatabase(config: Pick<Config, 'databaseUrl' | 'dataFolder'>): Promise<OpenDatabase> {
  return config.databaseUrl === null ? openEmbedded(config.dataFolder) : openGiven(config.databaseUrl);
}

async function openGiven(url: string): Promise<OpenDatabase> {
  try {
    const version = await serverVersion(url, 5000);
    if (version.number < 150_000)
      throw new StartRefused(`DATABASE_URL: PostgreSQL ${version.text} is too old; accepted is 15 or newer`);
    return {
      url,
      serviceUrl: url,
      description: `PostgreSQL ${version.text} of DATABASE_URL`,
      isAlive: () => true,
      restart: () => Promise.resolve(),
      close: () => Promise.resolve(),
    };
  } catch (error) {
    if (error instanceof StartRefused) throw error;
    throw new StartRefused(`DATABASE_URL: the database at ${withoutPassword(url)} cannot be reached: ${reason(error)}`, {
      cause: error,
    });
  }
}

async function openEmbedded(dataFolder: string): Promise<OpenDatabase> {
  const paths = clusterPaths(dataFolder);
  const data = realpathSync(dataFolder);
  const users = usersFolder(data);
  const me = join(users, myName());
  const options = { paths, durable: true, logFile: join(data, 'postgres.log') };
  mkdirSync(users, { recursive: true });

  async function locked<T>(work: () => Promise<T>): Promise<T> {
    const held = await lock(data, LOCK);
    try {
      return await work();
    } finally {
      await held.release();
    }
  }

  async function ready(): Promise<void> {
    await startCluster(options);
    await ensureDatabase(clusterUrl(paths, 'postgres'), DATABASE);
    await ensureServiceLogin(clusterUrl(paths, 'postgres'), SERVICE_LOGIN);
  }

  const how = await locked(async () => {
    writeFileSync(me, '');
    const made = await makeCluster(options);
    const running = runningServer(paths);
    await ready().catch(async (error) => {
      // what was found alive was about to die
      if (running === null || runningServer(paths) === running) throw error;
      await ready();
    });
    return made ? 'made' : running === null ? 'started' : 'joined';
  });
  return {
    url: clusterUrl(paths, DATABASE),
    serviceUrl: clusterUrl(paths, DATABASE, SERVICE_LOGIN),
    description: `embedded PostgreSQL, ${how}`,
    isAlive: () => runningServer(paths) !== null,
    restart: () =>
      locked(async () => {
        await startCluster(options);
      }),
    close: () =>
      locked(async () => {
        rmSync(me, { force: true });
        if (livingUsers(users).length === 0) await stopCluster(paths);
      }),
  };
}

/**
 * For a process that must end now, whatever it was doing: leaves the embedded server of a data folder, opened or still opening. When no other
 * process uses it, it is ended without writing everything to its tables first: the next start does that from its log.
 */
export async function endServer(dataFolder: string): Promise<void> {
  const users = usersFolder(realpathSync(dataFolder));
  if (!existsSync(users)) return;
  rmSync(join(users, myName()), { force: true });
  if (livingUsers(users).length === 0) await stopCluster(clusterPaths(dataFolder), 0);
}

const usersFolder = (dataFolder: string): string => join(dataFolder, 'run', 'postgres-users');
const myName = (): string => identityOf(process.pid) ?? String(process.pid);

function livingUsers(folder: string): string[] {
  return readdirSync(folder).filter((identity) => {
    if (isAlive(identity)) return true;
    rmSync(join(folder, identity), { force: true });
    return false;
  });
}

function withoutPassword(url: string): string {
  const parsed = new URL(url);
  return `${parsed.host || parsed.searchParams.get('host') || 'localhost'}${parsed.pathname}`;
}

function reason(error: unknown): string {
  const { code, message, errors } = error as { code?: string; message?: string; errors?: Error[] };
  return (message || errors?.map((one) => one.message).join(', ') || code || String(error)).split('\n')[0]!;
}
