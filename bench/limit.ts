// Starts the limit server on its own database in the measured cluster, filled with rows to find.
import { fork } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { fileURLToPath } from 'node:url';
import { HDKey } from '@scure/bip32';
import pg from 'pg';
import type { LimitStart } from './limit-server.ts';

export type Limit = {
  readonly port: number;
  readonly pid: number;
  /** A token that the server accepts as a signed-in caller's; as long as a real one. */
  readonly token: string;
  /** Ids that it finds. */
  readonly ids: readonly string[];
  stop(): void;
};

const ROWS = 10_000;
const ID = `'txn_' || md5(n::text)`;

/** @param databaseUrl an empty database whose tables the caller drops */
export async function startLimit(databaseUrl: string): Promise<Limit> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`
    create table limit_transactions (
      id text collate "C" primary key, address text unique, script bytea unique, address_index bigint, status text not null default 'started',
      crypto_amount text not null default '0.00038462', crypto_received text not null default '0.00000000', confirmations integer not null default 0,
      usd_amount text not null default '25.00', created_at text not null default '2027-01-01T00:00:00.000Z', confirmed_at text);
    create table limit_outbox (id bigint generated always as identity primary key, transaction_id text not null);
    insert into limit_transactions (id, address, script, address_index)
      select ${ID}, 'fill' || n, decode(md5(n::text), 'hex'), n from generate_series(1, ${ROWS}) n;
    analyze limit_transactions;`);
  const { rows } = await client.query<{ id: string }>(`select ${ID} as id from generate_series(1, 5000) n`);
  await client.end();

  const master = HDKey.fromMasterSeed(randomBytes(32), { public: 0x043587cf, private: 0x04358394 });
  const start: LimitStart = {
    databaseUrl,
    token: randomBytes(190).toString('base64url'),
    xpub: master.derive("m/84'/1'/0'").publicExtendedKey,
  };
  const child = fork(fileURLToPath(new URL('limit-server.ts', import.meta.url)));
  const port = await new Promise<number>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the limit server ended with ${code}`)));
    child.once('message', (message) => resolve((message as { port: number }).port));
    child.send(start);
  });
  child.removeAllListeners('exit');
  return { port, pid: child.pid as number, token: start.token, ids: rows.map((row) => row.id), stop: () => child.disconnect() };
}
