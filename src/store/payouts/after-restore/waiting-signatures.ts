// What the signer has signed and this database has not stored: it waits until everything that has left is known, also over a start of the worker.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { Sql } from '../../postgres/connect.ts';

type Signed = { readonly currency: CurrencyCode; readonly txid: string };

/** Notes that one waits. @param sequence the signer's number of it */
export async function insertWaiting(sql: Sql, { currency, txid }: Signed, sequence: number): Promise<void> {
  await sql.query({
    name: 'insert_waiting_signature',
    text: 'insert into waiting_signatures (currency, txid, sequence) values ($1, $2, $3) on conflict do nothing',
    values: [currency, txid, sequence],
  });
}

/** It waits no more. */
export async function dropWaiting(sql: Sql, { currency, txid }: Signed): Promise<void> {
  await sql.query({
    name: 'drop_waiting_signature',
    text: 'delete from waiting_signatures where currency = $1 and txid = $2',
    values: [currency, txid],
  });
}

/** The signer's number of the first one that waits; null = none does. */
export async function firstWaiting(sql: Sql): Promise<number | null> {
  const { rows } = await sql.query<{ first: bigint | null }>({
    name: 'first_waiting_signature',
    text: 'select min(sequence) as first from waiting_signatures',
    values: [],
  });
  const first = rows[0]?.first ?? null;
  return first === null ? null : Number(first);
}
