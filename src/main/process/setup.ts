// What every process of the service does first: reads its configuration, creates its folder, opens the database (and migrates it, unless a
// supervisor has done so).
import { MigrationRefused } from '../../store/postgres/migrate.ts';
import { readConfig } from '../config/read-config.ts';
import type { Config } from '../config/variables.ts';
import { type OpenDatabase, openDatabase } from '../postgres/embedded.ts';
import { prepareDatabase } from '../wiring/database-memory.ts';
import { makeDataFolder } from './data-folder.ts';
import { isSupervised, whileStarting } from './life.ts';
import { StartRefused } from './start-refused.ts';

export type Opened = {
  /** With the URL for the service's own sessions and the real path of the data folder. */
  readonly config: Config & { readonly databaseUrl: string };
  readonly database: OpenDatabase;
};

/** Joins what runs on this data folder or DATABASE_URL. Throws StartRefused with one clear line, also when it belongs to another network. */
export async function open(): Promise<Opened> {
  const given = readConfig();
  const dataFolder = makeDataFolder(given.dataFolder);
  const opening = openDatabase(given);
  whileStarting(() =>
    opening.then(
      (opened) => opened.close(),
      () => undefined,
    ),
  );
  const database = await opening;
  try {
    if (!isSupervised())
      await prepareDatabase(database, {
        network: given.network,
        dataFolder,
        tell: (line) => console.error(`problem: ${line}`),
      });
  } catch (error) {
    await database.close();
    throw error instanceof MigrationRefused ? new StartRefused(error.message) : error;
  }
  return { config: { ...given, dataFolder, databaseUrl: database.serviceUrl }, database };
}

/** Runs a process's start on what was opened; when it fails or refuses, leaves the database again, so that no server outlives it. */
export async function onOpened<T>(start: (opened: Opened) => Promise<T>): Promise<T> {
  const opened = await open();
  try {
    return await start(opened);
  } catch (error) {
    await opened.database.close();
    throw error;
  }
}
