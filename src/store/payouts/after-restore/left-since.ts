// What this database knows to have left since a time: the signer compares it with its own journals, which may be older copies. Read under the role
// bursar_signer.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { Sql } from '../../postgres/connect.ts';

/** A transaction that the signer has signed. */
export type LeftOnChain = {
  readonly batchId: string;
  readonly txid: string;
  readonly currency: CurrencyCode;
  readonly purpose: 'payout' | 'sweep' | 'top_up';
  /** To the payees; what a sweep or a top-up moves. */
  readonly paid: bigint;
  readonly fee: bigint;
  /** On Ethereum's chain. */
  readonly call: { readonly gas: number; readonly maxFee: bigint } | null;
  readonly signedAtMs: number;
};

/** A payment that a Lightning node was asked for, and that has not failed, in satoshis. */
export type LeftOverLightning = { readonly payoutId: string; readonly takes: bigint; readonly askedAtMs: number };

/** Everything that was signed for a batch of which something was signed after that time, by batch and then in the order of its numbers. */
export async function leftOnChainSince(sql: Sql, sinceMs: number): Promise<LeftOnChain[]> {
  const { rows } = await sql.query<{
    batch_id: string;
    txid: string;
    currency: CurrencyCode;
    purpose: LeftOnChain['purpose'];
    paid: string;
    fee: string;
    vbytes: number;
    max_fee: string | null;
    signed_at: Date;
  }>({
    name: 'left_on_chain_since',
    text: `select a.batch_id, a.txid, a.currency, b.purpose, a.fee, a.vbytes, a.max_fee, a.signed_at,
                  coalesce(case when b.purpose = 'payout'
                                then (select sum(case when p.reimburses is null then p.amount else p.amount - s.fee end)
                                        from outgoing_shares s join payouts p on p.id = s.payout_id where s.attempt_id = a.id)
                                else (select sum(i.amount) from outgoing_inputs i where i.batch_id = a.batch_id) end, 0) as paid
             from outgoing_attempts a join outgoing_batches b on b.id = a.batch_id
            where a.sequence > 0 and a.batch_id in (select batch_id from outgoing_attempts where sequence > 0 and signed_at > $1)
            order by a.batch_id, a.number`,
    values: [new Date(sinceMs)],
  });
  return rows.map((row) => ({
    batchId: row.batch_id,
    txid: row.txid,
    currency: row.currency,
    purpose: row.purpose,
    paid: BigInt(row.paid),
    fee: BigInt(row.fee),
    call: row.max_fee === null ? null : { gas: row.vbytes, maxFee: BigInt(row.max_fee) },
    signedAtMs: row.signed_at.getTime(),
  }));
}

/** Those that a node was last asked for after that time. */
export async function leftOverLightningSince(sql: Sql, sinceMs: number): Promise<LeftOverLightning[]> {
  const { rows } = await sql.query<{ payout_id: string; takes: string; asked_at: Date }>({
    name: 'left_over_lightning_since',
    text: `select l.payout_id, l.asked_at, p.amount + case when p.reimburses is null then p.fee_max else 0 end as takes
             from lightning_payments l join payouts p on p.id = l.payout_id where l.asked_at > $1 and l.state in ('sent', 'paid')`,
    values: [new Date(sinceMs)],
  });
  return rows.map((row) => ({ payoutId: row.payout_id, takes: BigInt(row.takes), askedAtMs: row.asked_at.getTime() }));
}
