// What the service has written of one order: told when a seed of rules.test.ts fails.
import type { SimulatedService } from './simulated-service.ts';

/** Its payments, events and entries, a line for each. */
export async function recorded(service: Pick<SimulatedService, 'db'>, id: string): Promise<string[]> {
  const { rows } = await service.db.query<{ line: string }>({
    text: `select t.status || ' ' || t.merchant_decision || ' ' || coalesce(t.review_cause, '-') || ': ' || p.currency || ' ' || left(p.txid, 6) || ':' || p.vout || ' '
                  || p.amount || ' ' || p.state || ' seen ' || p.seen_at || coalesce(' gone ' || p.gone_since, '') || coalesce(' for ' || left(p.conflict_txid, 6), '')
                  || ' noticed ' || coalesce(p.noticed_at::text, '-') || ' present ' || p.present || ' credited ' || p.credited || ' suspense ' || p.in_suspense || ' refund ' || p.in_refund as line
             from transactions t left join payments p on p.transaction_id = t.id where t.id = $1 order by p.id`,
    values: [id],
  });
  const { rows: others } = await service.db.query<{ line: string }>({
    text: `select at || ' ' || type || ' ' || coalesce(data::text, '') as line from events where object_id = $1 order by sequence`,
    values: [id],
  });
  const { rows: entries } = await service.db.query<{ line: string }>({
    text: `select e.id || ' ' || e.kind || ' ' || e.key || ' ' || string_agg(a.code || ' ' || p.amount, ', ') as line from ledger.entry e
             join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id where e.transaction_id = $1 group by e.id order by e.id`,
    values: [id],
  });
  return [...rows, ...others, ...entries].map((row) => row.line);
}
