// The keys that addresses come from, and the addresses that were given out.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type UsableKey = {
  readonly id: bigint;
  readonly xpub: string;
  /** No index below this is given out any more, not even one that a pool keeps ready. */
  readonly startIndex: number;
};

/** The key that addresses may be derived from now; null when there is none. */
export async function usableKey(sql: Sql, currency: CurrencyCode): Promise<UsableKey | null> {
  const result = await sql.query<{ id: bigint; xpub: string; start_index: bigint }>({
    name: 'usable_key',
    text: `select id, xpub, start_index from account_xpubs
            where currency = $1 and retired_at is null and (origin = 'imported' or confirmed_at is not null)`,
    values: [currency],
  });
  const [row] = result.rows;
  return row === undefined ? null : { id: row.id, xpub: row.xpub, startIndex: Number(row.start_index) };
}

/** The currencies that addresses may be derived for now. */
export async function receivingCurrencies(sql: Sql): Promise<ReadonlySet<CurrencyCode>> {
  const { rows } = await sql.query<{ currency: CurrencyCode }>({
    name: 'receiving_currencies',
    text: `select currency from account_xpubs where retired_at is null and (origin = 'imported' or confirmed_at is not null)`,
    values: [],
  });
  return new Set(rows.map(({ currency }) => currency));
}

/** The lowest index of each currency that a transaction of this database has. */
export async function usedIndexes(sql: Sql): Promise<ReadonlyMap<CurrencyCode, { readonly lowest: number }>> {
  const { rows } = await sql.query<{ currency: CurrencyCode; lowest: bigint }>({
    name: 'used_indexes',
    text: 'select currency, min(address_index) as lowest from transactions where address_index is not null group by currency',
    values: [],
  });
  return new Map(rows.map(({ currency, lowest }) => [currency, { lowest: Number(lowest) }]));
}

export type GivenAddress = {
  readonly transactionId: string;
  readonly currency: CurrencyCode;
  readonly address: string;
  readonly script: Uint8Array;
  readonly index: number;
};

/** Addresses that were given out, newest first, for the self-check. */
export async function givenAddresses(sql: Sql, limit: number): Promise<readonly GivenAddress[]> {
  const result = await sql.query<{ id: string; currency: CurrencyCode; address: string; script: Buffer; address_index: bigint }>({
    name: 'given_addresses',
    text: `select id, currency, address, script, address_index from transactions
            where address_index is not null and script is not null order by created_at desc, id desc limit $1`,
    values: [limit],
  });
  return result.rows.map((row) => ({
    transactionId: row.id,
    currency: row.currency,
    address: row.address,
    script: row.script,
    index: Number(row.address_index),
  }));
}
