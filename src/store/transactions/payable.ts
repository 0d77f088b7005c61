// What is needed to pay a transaction, whoever it belongs to: for the sandbox's controls, which act as the customer.
import type { PaymentMethod } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

export type Payable = {
  readonly currency: PaymentMethod;
  /** The output script of its address, hex; of one over Lightning the payment hash of its invoice. */
  readonly script: string;
  readonly address: string;
  readonly amountDue: bigint;
  readonly receivedMinor: bigint;
};

/** The transactions with these ids, in their order; null for one that does not exist. */
export async function findPayables(sql: Sql, ids: readonly string[]): Promise<readonly (Payable | null)[]> {
  const { rows } = await sql.query<{
    id: string;
    currency: PaymentMethod;
    script: string;
    address: string;
    amount_due: string;
    received: string;
  }>({
    name: 'find_payables',
    text: `select t.id, t.currency, coalesce(encode(t.script, 'hex'), i.payment_hash) as script, t.address, t.amount_due, t.crypto_received as received
             from transactions t left join lightning_invoices i on i.transaction_id = t.id
            where t.id = any ($1) and (t.script is not null or i.payment_hash is not null)`,
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
