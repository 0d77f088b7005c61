// What the audit asks of open payouts besides the ledger: what their API has signed, and which of them take longer than they should.
import type { SignedPayout } from '../../core/payouts/intent.ts';
import type { Sql } from '../postgres/connect.ts';
import { SIGNED_COLUMNS, type SignedColumns, signedFrom } from './signed-rows.ts';

/** Open payouts and reimbursements after one of them, in the order of their ids. */
export async function openIntents(sql: Sql, after: string, limit: number): Promise<readonly SignedPayout[]> {
  const { rows } = await sql.query<SignedColumns>({
    name: 'open_intents',
    text: `select ${SIGNED_COLUMNS} from payouts p where p.step <> 'ended' and p.id > $1 order by p.id limit $2`,
    values: [after, limit],
  });
  return rows.map(signedFrom);
}

/**
 * Payouts that are on their way, or whose outcome is unknown, for longer than this many milliseconds since they were last processing.
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
