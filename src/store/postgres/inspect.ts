// What a database holds, read without changing anything: for `bursar config check --nodes`.
import pg from 'pg';
import type { CurrencyCode, Network } from '../../core/currency.ts';
import { MIGRATIONS_FOLDER, networkOf, pendingMigrations } from './migrate.ts';

export type Inspection = {
  /** The network that it belongs to; null when it is new. */
  readonly network: Network | null;
  /** How many files of db/ are not applied yet. */
  readonly pending: number;
  /** The currencies that addresses may be derived for now. */
  readonly receiving: readonly CurrencyCode[];
};

/** Reads only. Throws what the connection threw, and MigrationRefused when this version cannot continue the database. */
export async function inspectDatabase(url: string): Promise<Inspection> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'bursar config check',
    connectionTimeoutMillis: 5_000,
  });
  client.on('error', () => undefined);
  await client.connect();
  try {
    const network = await networkOf(client);
    const pending = await pendingMigrations(client, MIGRATIONS_FOLDER);
    const there = await client.query<{ there: boolean }>("select to_regclass('public.account_xpubs') is not null as there");
    const keys =
      there.rows[0]?.there === true
        ? await client.query<{ currency: CurrencyCode }>(
            `select currency from account_xpubs where retired_at is null and (origin = 'imported' or confirmed_at is not null)`,
          )
        : { rows: [] };
    return { network, pending: pending.length, receiving: keys.rows.map(({ currency }) => currency) };
  } finally {
    await client.end().catch(() => undefined);
  }
}
