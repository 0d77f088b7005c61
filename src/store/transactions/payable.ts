// What is needed to pay a transaction, whoever it belongs to: for the sandbox's controls, which act as the customer.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type Payable = {
  readonly currency: CurrencyCode;
  /** The output script of its address, hex. */
  readonly script: string;
  readonly address: string;
  readonly amountDue: bigint;
  readonly receivedMinor: bigint;
};

/** The transactions with these ids, in their order; null for one that does not exist, or is not paid by an on-chain output. */
export async function findPayables(sql: Sql, ids: readonly string[]): Promise<readonly (Payable | null)[]> {
  const { rows } = await sql.query<{
    id: string;
    currency: CurrencyCode;
    script: string;
    address: string;
    amount_due: string;
    received: string;
  }>({
    name: 'find_payables',
    text: `select id, currency, encode(script, 'hex') as script, address, amount_due, crypto_received as received
             from transactions where id = any ($1) and script is not null`,
    values: [ids.map((id) => id.replaceAll('\0', '?'))],
  });
  const found = new Map(
    rows.map(({ id, currency, script, address, amount_due: amountDue, received }) => [
      id,
      { currency, script, address, amountDue: BigInt(amountDue), receivedMinor: BigInt(received) },
    ]),
  );
  return ids.map((id) => found.get(id) ?? null);
}
