import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import pg from 'pg';
import { clusterUrl, ensureDatabase, makeCluster, startCluster, stopCluster } from '../src/main/postgres-cluster.ts';
import { placePostgres } from '../src/main/postgres-place.ts';
import { migrate } from '../src/store/migrate.ts';
import { postgresCpuMicros } from './processes.ts';
const data = mkdtempSync('/tmp/bursar-bench-'); chmodSync(data, 0o711);
const place = placePostgres(data);
const o = { place, durable: true, logFile: `${data}/pg.log` };
makeCluster(o); const pm = await startCluster(o); await ensureDatabase(place, 'bursar');
const url = clusterUrl(place, 'bursar'); await migrate({ url });
const c = new pg.Client({ connectionString: url }); await c.connect();
await c.query(`insert into merchants (affiliate_id,email,business_name,created_at) values ('a','b','c',now())`);
await c.query(`insert into merchant_settings (merchant_id) select id from merchants`);
const sources = JSON.stringify(['kraken','coinbase','bitstamp','bitfinex'].map((source) => ({ source, usd: '65000.00', at: '2027-01-01T00:00:00.000Z' })));
let n = 0;
const { rows: all } = await c.query(`select (select id from merchants) as m`);
async function run(label: string, batches: number, size: number, text: string, values: (rows: number[]) => unknown[], explain = false) {
  for (let w = 0; w < 20; w++) await c.query({ name: label, text, values: values(Array.from({ length: size }, () => n++)) });
  const a = postgresCpuMicros(pm);
  for (let w = 0; w < batches; w++) await c.query({ name: label, text, values: values(Array.from({ length: size }, () => n++)) });
  console.log(label, 'pg µs/row', ((postgresCpuMicros(pm) - a) / batches / size).toFixed(1));
  if (explain) { const r = await c.query({ text: `explain (analyze, costs off) ${text}`, values: values(Array.from({ length: size }, () => n++)) }); console.log(r.rows.map((x: any) => x['QUERY PLAN']).join('\n')); }
}
const iso = () => new Date().toISOString();
const make = (srcs: boolean) => `
      with input as (
        select * from unnest($1::text[], $2::bigint[], $3::text[], $4::bigint[], $5::numeric[], $6::numeric[], $7::timestamptz[], ${srcs ? '$8::jsonb[]' : '$8::int[]'},
                             $9::text[], $10::text[], $11::text[], $12::bytea[], $13::bigint[], $14::timestamptz[], $15::timestamptz[])
          as t(id, merchant_id, currency, usd_minor, need, rate, rate_at, rate_sources, label, email, address, script, address_index, created_at, window_ends_at)
      ), made as (
        insert into transactions (id, merchant_id, currency, status, usd_minor, need, rate, rate_at, rate_sources, label, email, address, script,
                                  address_index, created_at, window_ends_at, due_at, tolerance_bps, late_payments)
        select i.id, i.merchant_id, i.currency, 'started', i.usd_minor, i.need, i.rate, i.rate_at, ${srcs ? 'i.rate_sources' : '($16::jsonb[])[i.rate_sources]'}, i.label, i.email, i.address, i.script,
               i.address_index, i.created_at, i.window_ends_at, i.window_ends_at, s.tolerance_bps, s.late_payments
          from input i join merchant_settings s using (merchant_id)
        returning id, merchant_id, created_at
      )
      insert into events (merchant_id, object_id, sequence, type, status, reason, at)
      select merchant_id, id, 1, 'transaction.started', 'started', 'created', created_at from made
      returning object_id`;
const vals = (srcs: boolean) => (r: number[]) => [r.map((i) => `txn_0${String(i).padStart(21, '0')}`), r.map(() => 1n), r.map(() => 'BTC'), r.map(() => 2500n), r.map(() => 38462n), r.map(() => '65000.00'), r.map(iso), r.map(() => srcs ? sources : 1), r.map((i) => `label ${i}`), r.map(() => null), r.map((i) => `bcrt1qmf3t2xzw9002s5n7khn6z223h9vue5p74kf${i}`), r.map((i) => { const b = Buffer.alloc(22); b.writeUInt32BE(Math.imul(i, 2654435761) >>> 0, 2); b.writeUInt32BE(i, 8); return b; }), r.map((i) => i), r.map(iso), r.map(iso), ...(srcs ? [] : [[sources]])];
await run('as is', 300, 32, make(true), vals(true), true);
await run('sources once', 300, 32, make(false), vals(false));
await c.query('alter table events drop constraint events_merchant_id_fkey');
await run('no fk on events', 300, 32, make(false), vals(false));
await c.query('alter table transactions drop constraint transactions_merchant_id_fkey');
await run('no fk at all', 300, 32, make(false), vals(false));
await c.query('drop index events_merchant');
await run('no events_merchant', 300, 32, make(false), vals(false));
await c.query('drop index transactions_due');
await run('no due', 300, 32, make(false), vals(false));
await c.query('drop index transactions_merchant');
await run('no tx merchant', 300, 32, make(false), vals(false));
await c.end(); await stopCluster(place); rmSync(data, { recursive: true });
