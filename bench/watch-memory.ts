// What the worker's memory takes with very many open addresses, watched on five chains: rows in a real database, the service's own lists,
// in a separate process.
import { fork } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { sortableId } from '../src/core/ids.ts';
import type { Figure } from './report.ts';

const BATCH = 100_000;
const TIME_DIGITS = 14;

/** @param databaseUrl a migrated database without transactions */
export async function watchMemory(databaseUrl: string, addresses: number): Promise<Figure> {
  await fill(databaseUrl, addresses);
  const child = fork(fileURLToPath(new URL('watch-process.ts', import.meta.url)), [databaseUrl], { execArgv: [] });
  const grown = await new Promise<{ size: number; rss: number; peak: number }>((resolve, reject) => {
    child.once('message', (message) => resolve(message as { size: number; rss: number; peak: number }));
    child.once('exit', (code) => reject(new Error(`the watch lists ended with ${code}`)));
  });
  if (grown.size !== addresses) throw new Error(`${grown.size} addresses are watched, not ${addresses}`);
  const mib = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MiB`;
  return {
    work: `memory (RSS) of five chains' watch lists, ${addresses.toLocaleString('en')} open addresses`,
    measured: `${mib(grown.rss)} with Node itself, ${mib(grown.peak)} at most while they were read`,
    goal: '≤ 250 MB',
  };
}

/** Open transactions of today. */
async function fill(databaseUrl: string, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(
    `insert into merchants (affiliate_id, email, business_name, created_at) values ('aff_bench', 'a@example.com', 'Bench', now())`,
  );
  const time = sortableId('txn_', Date.now(), new Uint8Array(10)).slice(0, TIME_DIGITS);
  for (let from = 0; from < rows; from += BATCH) {
    await client.query({
      text: `insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments,
                                       address, script, created_at, window_ends_at)
               select $1 || 'z' || lpad(n::text, 11, '0'), (select min(id) from merchants), (array['BTC', 'LTC', 'BCH', 'DASH', 'DOGE'])[1 + n % 5], 'started',
                      2500, 38462, 65000, now(), '[]', 100, 'accept', 'fill' || n, decode('0014' || md5(n::text) || substr(md5('x' || n), 1, 8), 'hex'),
                      now(), now() + interval '15 minutes'
                 from generate_series($2::int, $3::int) n`,
      values: [time, from + 1, Math.min(from + BATCH, rows)],
    });
  }
  await client.end();
}
