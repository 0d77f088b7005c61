// Outputs of forgotten transactions that were booked as paid to nobody known.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { AskedAbout } from '../../../core/payouts/lost-questions.ts';
import type { Sql } from '../../postgres/connect.ts';
import { askedAbout } from './lost-questions.ts';

export type LostOutput = {
  readonly txid: string;
  readonly vout: number;
  /** hex */
  readonly script: string;
  readonly amount: bigint;
};

/** Notes outputs that were booked as lost; one that is noted stays as it is. */
export async function insertLostOutputs(sql: Sql, currency: CurrencyCode, outputs: readonly LostOutput[]): Promise<void> {
  await sql.query({
    name: 'insert_lost_outputs',
    text: `insert into lost_outputs (currency, txid, vout, script, amount)
             select $1, t.txid, t.vout, decode(t.script, 'hex'), t.amount
               from unnest($2::text[], $3::int[], $4::text[], $5::numeric[]) as t(txid, vout, script, amount)
             on conflict do nothing`,
    values: [
      currency,
      outputs.map(({ txid }) => txid),
      outputs.map(({ vout }) => vout),
      outputs.map(({ script }) => script),
      outputs.map(({ amount }) => amount),
    ],
  });
}

type Row<More = unknown> = Omit<LostOutput, 'amount'> & { readonly amount: string } & More;

/** Those to these scripts (hex), with the payouts about which a person was asked because of each. */
export async function lostOutputsTo(
  sql: Sql,
  currency: CurrencyCode,
  scripts: readonly string[],
): Promise<readonly (LostOutput & { readonly asked: readonly AskedAbout[] })[]> {
  const { rows } = await sql.query<Row>({
    name: 'lost_outputs_to',
    text: `select txid, vout, encode(script, 'hex') as script, amount from lost_outputs
            where currency = $1 and script = any ($2) order by txid, vout`,
    values: [currency, scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  if (rows.length === 0) return [];
  const askedBecauseOf = await askedAbout(
    sql,
    currency,
    rows.map(({ txid }) => txid),
  );
  return rows.map(({ amount, ...row }) => ({
    ...row,
    amount: BigInt(amount),
    asked: askedBecauseOf({ txid: row.txid, place: String(row.vout) }),
  }));
}

/**
 * For each of these reimbursements one that may have sent back something of the same, to whatever address: the largest, since
 * the one that has is no larger, so that it still asks about whoever the largest was for. It is more than what was found
 * paid by it, no more than all that the transaction was ever paid, and was found after that was made. Where a person has found one of the same transaction
 * unpaid, of as much at least, he is asked no more because of what was known when that was asked for.
 */
export async function lostOutputsInPlaceOf(
  sql: Sql,
  currency: CurrencyCode,
  payoutIds: readonly string[],
): Promise<readonly (LostOutput & { readonly payoutId: string })[]> {
  const { rows } = await sql.query<Row<{ readonly payoutId: string }>>({
    name: 'lost_outputs_in_place_of',
    text: `with unexplained as materialized (
             select l.*, u.found_at, u.booked_at from lost_outputs l
               cross join lateral (select min(seen_at) as found_at, max(resolved_at) as booked_at from unknown_movements where currency = $1 and txid = l.txid) u
              where l.currency = $1 and l.amount > (
                select coalesce(sum(o.amount), 0) from lost_questions q join payouts o on o.id = q.payout_id
                 where q.currency = $1 and q.txid = l.txid and q.place = l.vout::text and o.resolved and o.status = 'completed'
                   and not exists (select from outgoing_shares s where s.payout_id = o.id)))
           select distinct on (p.id) p.id as "payoutId", l.txid, l.vout, encode(l.script, 'hex') as script, l.amount
             from payouts p join transactions t on t.id = p.reimburses
                  cross join lateral (select sum(y.amount) as amount from payments y where y.transaction_id = t.id and y.currency = $1) paid
                  join unexplained l on l.amount <= paid.amount and (l.found_at is null or l.found_at >= t.created_at)
            where p.id = any ($2) and exists (select from unexplained)
              and not exists (
                select from payouts o join lost_questions q on q.payout_id = o.id and q.currency = $1
                 where o.reimburses = p.reimburses and o.id <> p.id and o.resolved and o.status = 'failed' and o.amount >= p.amount
                   and ((q.txid = l.txid and q.place = l.vout::text) or l.booked_at <= o.created_at))
            order by p.id, l.amount desc, l.txid, l.vout`,
    values: [currency, payoutIds],
  });
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }));
}
