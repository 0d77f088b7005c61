// A payout to a bank account whose number was sealed with a key that is lost, and its event.
import type { ApiServer } from '../http/api-server.ts';

/** The payout and its event are written in one database transaction, with what `more` adds; returns the payout's id. */
export async function unreadablePayout(api: ApiServer, more: () => Promise<unknown> = async () => undefined): Promise<string> {
  const id = `payout_${'0'.repeat(22)}`;
  await api.sql('begin');
  await api.sql('set local session_replication_role = replica');
  await api.sql(
    `insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, status, step, intent_key, intent, created_at, source_currency, source_amount)
       select $1, m.id, 'ach', '100.00', 'USD', 10000, 0, 'sealed:!', 'pending', 'held', 'key', '', now(), 'BTC', 1 from merchants m where affiliate_id = $2`,
    [id, api.affiliateId],
  );
  await api.sql('set local session_replication_role = origin');
  await api.sql(
    `insert into events (merchant_id, object_id, sequence, type, status, reason, at)
       select merchant_id, id, 1, 'payout.pending', 'pending', 'a test', now() from payouts where id = $1`,
    [id],
  );
  await more();
  await api.sql('commit');
  return id;
}
