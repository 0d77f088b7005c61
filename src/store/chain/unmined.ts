// The payments of a chain that are not in a block, for the comparison with a node's mempool. Anybody can make hundreds of thousands of them
// with a few transactions: so they are compared by txid, and only those are read for which the mempool says something else.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, inParts } from '../postgres/in-parts.ts';
import { FACT_COLUMNS, type PaymentFacts, paymentFacts, type RawFacts } from './payment-facts.ts';

/** Payments that are not in a block, and the transactions that conflict with payments. */
export type UnminedFacts = {
  readonly payments: readonly PaymentFacts[];
  readonly conflicting: readonly string[];
};

/** What a node lists as its mempool. */
export type Listing = {
  readonly txids: ReadonlySet<string>;
  /** The txids that came or left since everything was last compared; null = everything is compared. */
  readonly changed: readonly string[] | null;
};

/**
 * The payments in the mempool, gone since a time, or conflicted by a transaction that is not mined either, for which this mempool may say
 * something else.
 * @param sinceMs payments that have been gone for longer come back only as new sightings
 */
export async function readUnmined(sql: Sql, currency: CurrencyCode, sinceMs: number, mempool: Listing): Promise<UnminedFacts> {
  const since = new Date(sinceMs);
  const { conflicting, txids } = await (mempool.changed === null
    ? differing(sql, currency, since, mempool.txids)
    : conflictingAmong(sql, currency, mempool.changed));
  const departed = conflicting.filter((txid) => !mempool.txids.has(txid));
  const found = new Map<bigint, RawFacts>();
  for (const [name, wanted, keys] of [
    ['read_unmined_payments', `t.txid = k.key and t.state in ('mempool', 'gone', 'conflicted')`, txids],
    ['read_conflicting_payments', `t.conflict_txid = k.key and t.state = 'conflicted'`, departed],
  ] as const) {
    await inParts(keys, CHOSEN_AT_ONCE, async (part) => {
      const { rows } = await sql.query<RawFacts>({
        name,
        text: `select ${FACT_COLUMNS} from unnest($2::text[]) as k(key)
                cross join lateral (select * from payments t where t.currency = $1 and ${wanted} offset 0) p
                where case p.state when 'mempool' then true when 'gone' then p.gone_since >= $3
                        else exists (select 1 from conflicting_transactions r where r.currency = $1 and r.txid = p.conflict_txid and r.height is null) end`,
        values: [currency, part, since],
      });
      for (const row of rows) found.set(row.id, row);
    });
  }
  return { payments: [...found.values()].sort((a, b) => (a.id < b.id ? -1 : 1)).map(paymentFacts), conflicting };
}

type Differing = {
  /** Conflicting transactions that are in no block. */
  readonly conflicting: readonly string[];
  /** Txids of payments to compare with the mempool. */
  readonly txids: readonly string[];
};

/** What has changed in the mempool, and the conflicting transactions in no block among it. */
async function conflictingAmong(sql: Sql, currency: CurrencyCode, changed: readonly string[]): Promise<Differing> {
  const conflicting: string[] = [];
  await inParts(changed, CHOSEN_AT_ONCE, async (part) => {
    const { rows } = await sql.query<{ txid: string }>({
      name: 'read_some_unmined_conflicting',
      text: `select r.txid from unnest($2::text[]) as k(txid)
              cross join lateral (select txid from conflicting_transactions where currency = $1 and txid = k.txid and height is null offset 0) r`,
      values: [currency, part],
    });
    for (const { txid } of rows) conflicting.push(txid);
  });
  return { conflicting, txids: changed };
}

/**
 * All conflicting transactions in no block, and the txids of payments in no block for which the mempool says something else; conflicted ones
 * that came back are among them. One statement: it is asked of every chain while nothing happens.
 */
async function differing(sql: Sql, currency: CurrencyCode, since: Date, listed: ReadonlySet<string>): Promise<Differing> {
  const { rows } = await sql.query<{ txid: string; state: PaymentFacts['state'] | null }>({
    name: 'read_unmined_txids',
    text: `select distinct txid, state from payments
             where currency = $1 and state in ('mempool', 'gone') and (state = 'mempool' or gone_since >= $2)
           union
           select p.txid, p.state from conflicting_transactions r join payments p on p.currency = $1 and p.conflict_txid = r.txid and p.state = 'conflicted'
             where r.currency = $1 and r.height is null
           union
           select txid, null from conflicting_transactions where currency = $1 and height is null`,
    values: [currency, since],
  });
  const payments = rows.filter(({ state }) => state !== null);
  const differ = payments.filter(({ txid, state }) => listed.has(txid) !== (state === 'mempool'));
  return {
    conflicting: rows.filter(({ state }) => state === null).map(({ txid }) => txid),
    txids: [...new Set(differ.map(({ txid }) => txid))],
  };
}
