// Fills the service's tables with old transactions by SQL, to see whether anything slows down at a million.
import pg from 'pg';

const BATCH = 100_000;

/** Adds rows until there are at least `rows` transactions, all of one merchant, created 31 to 396 days ago and finished. */
export async function fillTransactions(databaseUrl: string, rows: number): Promise<void> {
  const client = new pg.Client({ connectionString: databaseUrl });
  await client.connect();
  const { rows: counted } = await client.query<{ n: number }>('select count(*)::int as n from transactions');
  let filled = 0;
  const missing = Math.max(0, rows - (counted[0]?.n ?? 0));
  const { rows: begun } = await client.query<{ n: number }>(`select count(*)::int as n from transactions where id < 'txn_00001'`);
  const from = begun[0]?.n ?? 0;
  while (filled < missing) {
    const batch = Math.min(BATCH, missing - filled);
    await client.query({
      text: `
        with made as (
          insert into transactions (id, merchant_id, currency, status, usd_minor, amount_due, rate, rate_at, rate_sources, tolerance_bps, late_payments, label,
                                    address, script, address_index, created_at, window_ends_at)
          select 'txn_00000' || lpad(n::text, 17, '0'), (select min(id) from merchants), 'BTC', 'timedout_checked', 2500, 38462, 65000, made_at,
                 '[{"source": "kraken", "usd": "65000.00", "at": "2026-01-01T00:00:00.000Z"}]', 100, 'accept', 'order ' || n,
                 'fill' || n, decode('0014' || md5(n::text) || substr(md5('x' || n), 1, 8), 'hex'), null, made_at, made_at + interval '15 minutes'
            from generate_series($1::int, $2::int) n, lateral (select now() - interval '396 days' + n * interval '31 seconds' as made_at) t
          returning merchant_id, id, created_at
        )
        insert into events (merchant_id, object_id, sequence, type, status, reason, at)
        select merchant_id, id, 1, 'transaction.started', 'started', 'created', created_at from made`,
      values: [from + filled + 1, from + filled + batch],
    });
    filled += batch;
  }
  await client.query('vacuum analyze transactions');
  await client.query('vacuum analyze events');
  await client.query('checkpoint');
  await client.end();
}
