// Whose an invoice is that somebody wants to have paid.
import type { Sql } from '../postgres/connect.ts';

export type InvoiceOwner = {
  /** The merchant's transaction here that it is for; null when it is of no transaction. */
  readonly merchantId: bigint | null;
  readonly transactionId: string | null;
  /** That transaction still waits for it. */
  readonly isOpen: boolean;
  /** Our own node has made it. */
  readonly isOfOurNode: boolean;
  /** Somebody has written it with the payment hash of an invoice here, and it is not that invoice. */
  readonly isImitation: boolean;
};

export type AskedInvoice = {
  readonly paymentHash: string;
  /** The public key of the node that is paid. */
  readonly payee: string;
  /** BOLT11, in either case. */
  readonly paymentRequest: string;
};

/**
 * Whose an invoice is, by its payment hash (hexadecimal), its payee's node key and its text: a transaction here, our node alone, or nobody
 * here.
 */
export async function readInvoiceOwner(sql: Sql, { paymentHash, payee, paymentRequest }: AskedInvoice): Promise<InvoiceOwner> {
  const { rows } = await sql.query<InvoiceOwner>({
    name: 'invoice_owner',
    text: `select i.merchant_id as "merchantId", i.transaction_id as "transactionId", coalesce(i.state = 'open' and t.status = 'started', false) as "isOpen",
                  exists (select from lightning_nodes n where n.identity = $2) as "isOfOurNode",
                  i.payment_hash is not null and lower(t.address) is distinct from lower($3) as "isImitation"
             from (select $1::text as payment_hash) h left join lightning_invoices i using (payment_hash) left join transactions t on t.id = i.transaction_id`,
    values: [paymentHash, payee, paymentRequest],
  });
  return rows[0] as InvoiceOwner;
}

/** Whether our node was ever asked by somebody who may pay with it. */
export async function hasPayer(sql: Sql): Promise<boolean> {
  const { rows } = await sql.query<{ has: boolean }>({
    name: 'has_lightning_payer',
    text: 'select exists (select from lightning_nodes where pays_at is not null) as has',
    values: [],
  });
  return rows[0]?.has === true;
}
