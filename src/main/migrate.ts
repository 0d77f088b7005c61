// `bursar migrate`: brings the database to today's schema and says what was applied. The start does the same by itself.
import { open } from './opened.ts';

/** Migrates the configured database; throws StartRefused with one clear line when that cannot be. */
export async function migrateOnce(): Promise<void> {
  const { database } = await open();
  await database.close();
}
