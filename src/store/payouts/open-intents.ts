// What the audit asks of open payouts besides the ledger: what their API has signed, and which of them take longer than they should.
import type { Sql } from '../postgres/connect.ts';

export type OpenIntent = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly method: string;
  readonly currency: string;
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** As it is stored: a bank account may be sealed. */
  readonly destination: string;
  /** The output script in hex; null for a method without one. */
  readonly script: string | null;
  readonly createdAtMs: number;
  readonly reimburses: string | null;
  readonly intentKey: string;
  readonly intent: Uint8Array;
};

/** Open payouts and reimbursements after one of them, in the order of their ids. */
export async function openIntents(sql: Sql, after: string, limit: number): Promise<readonly OpenIntent[]> {
  type Row = Omit<OpenIntent, 'amount' | 'feeMax' | 'createdAtMs'> & { amount: string; fee_max: string; created_at: Date };
  const { rows } = await sql.query<Row>({
    name: 'open_intents',
    text: `select id, merchant_id as "merchantId", method, currency, amount, fee_max, destination, encode(script, 'hex') as script, created_at,
                  reimburses, intent_key as "intentKey", intent
             from payouts where step <> 'ended' and id > $1 order by id limit $2`,
    values: [after, limit],
  });
  return rows.map(({ amount, fee_max, created_at, ...row }) => ({
    ...row,
    amount: BigInt(amount),
    feeMax: BigInt(fee_max),
    createdAtMs: created_at.getTime(),
  }));
}

/**
 * Payouts that are on their way, or whose outcome is unknown, for longer than so many milliseconds since they were processing last.
 * @param longest by method
 */
export async function latePayouts(
  sql: Sql,
  of: { readonly nowMs: number; readonly longest: Readonly<Record<string, number>>; readonly limit: number },
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ what: string }>({
    name: 'late_payouts',
    text: `select p.id || ' by ' || p.method || ' is ' || p.status || coalesce(', ' || p.held_reason, '') || ' since ' || s.at as what
             from payouts p
             cross join lateral (
               select greatest(p.created_at, (select max(e.at) from events e where e.object_id = p.id and e.type = 'payout.processing')) as at) s
            where p.step <> 'ended' and p.status = 'processing' and s.at < $1::timestamptz - ($2::jsonb ->> p.method)::bigint * interval '1 millisecond'
            order by s.at limit $3`,
    values: [new Date(of.nowMs), JSON.stringify(of.longest), of.limit],
  });
  return rows.map(({ what }) => what);
}
