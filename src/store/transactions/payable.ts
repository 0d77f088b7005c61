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

/** The transaction with this id; null when there is none, or it is not paid by an on-chain output. */
export async function findPayable(sql: Sql, id: string): Promise<Payable | null> {
  const { rows } = await sql.query<{
    currency: CurrencyCode;
    script: string;
    address: string;
    amount_due: string;
    received: string;
  }>({
    name: 'find_payable',
    text: `select currency, encode(script, 'hex') as script, address, amount_due, crypto_received as received
             from transactions where id = $1 and script is not null`,
    values: [id.replaceAll('\0', '?')],
  });
  const row = rows[0];
  if (row === undefined) return null;
  const { currency, script, address, amount_due: amountDue, received } = row;
  return { currency, script, address, amountDue: BigInt(amountDue), receivedMinor: BigInt(received) };
}
