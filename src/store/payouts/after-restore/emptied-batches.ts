// Reservations that are in the way of a forgotten transaction which an operator has booked. The signer may have signed for one without that its answer
// has reached this database, so nothing of it is given up before a driver has asked it.
import type { CurrencyCode } from '../../../core/currency.ts';
import type { Outpoint } from '../../../core/ports.ts';
import type { Sql } from '../../postgres/connect.ts';
import type { Batch } from '../batch-rows.ts';
import { giveUpBatch } from '../batches.ts';
import { wakeDriver } from '../outgoing-facts.ts';

/**
 * Takes the payouts out of a reservation without an attempt, and queues them again; it stays with the outputs that are not taken from it. What is asked of
 * the signer under its lease of now is refused. One that moves what is ours, and whose nonce is taken, is given up.
 * @param taken its outputs, or its nonce, that what was booked has spent
 */
export async function leaveReservation(
  sql: Sql,
  { id, currency, purpose, leaseEpoch }: Pick<Batch<CurrencyCode>, 'id' | 'currency' | 'purpose' | 'leaseEpoch'>,
  taken: readonly Outpoint[],
): Promise<void> {
  if (purpose !== 'payout') {
    await giveUpBatch(sql, id, leaseEpoch);
    return;
  }
  await sql.query({
    name: 'empty_batch',
    text: `with batch as (
             update outgoing_batches set lease_epoch = lease_epoch + 1, lease_until = null, lease_owner = null, due_at = '-infinity'
              where id = $1 and state = 'reserved' returning id)
           update payouts set step = 'queued', batch_id = null where batch_id in (select id from batch)`,
    values: [id],
  });
  await sql.query({
    name: 'leave_inputs',
    text: `with leaving as (
             update outgoing_inputs i set freed = true, spent_by = null, spent_height = null from unnest($3::text[], $4::int[]) as t(txid, vout)
              where i.batch_id = $2 and i.currency = $1 and i.txid = t.txid and i.vout = t.vout and not i.freed returning i.txid, i.vout),
           payment as (update payments p set spent = false from leaving f where p.currency = $1 and p.txid = f.txid and p.vout = f.vout)
           update own_outputs c set spent = false from leaving f where c.currency = $1 and c.txid = f.txid and c.vout = f.vout`,
    values: [currency, id, taken.map(({ txid }) => txid), taken.map(({ vout }) => vout)],
  });
  await wakeDriver(sql);
}

/** Notes a batch that is not here, and for which the signer has signed what is never sent, as a dead one: the signer lets others have its outputs then. */
export async function insertDeadBatch(
  sql: Sql,
  of: { readonly id: string; readonly currency: CurrencyCode; readonly feeRate: bigint; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'insert_dead_batch',
    text: `insert into outgoing_batches (id, currency, state, fee_rate, created_at) values ($1, $2, 'dead', $3, $4)`,
    values: [of.id, of.currency, of.feeRate, new Date(of.atMs)],
  });
}

/** Whether a batch was emptied: it is dead once the signer has named what it had signed for it, and is there no more where that was nothing. */
export const isEmptied = ({ purpose, payouts, attempts }: Batch<CurrencyCode>): boolean =>
  purpose === 'payout' && payouts.length === 0 && attempts.length === 0;

/** Whether the signer must be asked about one of a currency: until then it may refuse to sign for what that had in another batch. */
export async function mustAskSigner(sql: Sql, currency: CurrencyCode): Promise<boolean> {
  const { rows } = await sql.query({
    name: 'has_emptied_batch',
    text: `select from outgoing_batches b
            where currency = $1 and state = 'reserved' and purpose = 'payout' and not exists (select from payouts p where p.batch_id = b.id)`,
    values: [currency],
  });
  return rows.length > 0;
}
