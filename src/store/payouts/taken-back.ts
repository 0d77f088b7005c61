// A dead batch whose transaction is in the chain after all: the outputs that it spends are its own again, whoever was given them in between.
import type { CurrencyCode, UtxoCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';

/** Where a transaction that was signed here is kept; null = it was not. */
export async function batchOfTransaction(
  sql: Sql,
  txid: string,
): Promise<{ readonly batchId: string; readonly currency: CurrencyCode } | null> {
  const { rows } = await sql.query<{ batch_id: string; currency: CurrencyCode }>({
    name: 'batch_of_transaction',
    text: 'select batch_id, currency from outgoing_attempts where txid = $1 order by id limit 1',
    values: [txid],
  });
  const [row] = rows;
  return row === undefined ? null : { batchId: row.batch_id, currency: row.currency };
}

export type Rival = {
  readonly batchId: string;
  readonly state: string;
  readonly leaseEpoch: bigint;
  /** What it has booked as lost of these outputs. */
  readonly lost: bigint;
};

/** The batches that were given outputs which the dead one had given back. */
export async function rivalsOf(sql: Sql, batchId: string): Promise<readonly Rival[]> {
  const { rows } = await sql.query<{ batch_id: string; state: string; lease_epoch: bigint; lost: string }>({
    name: 'rivals_of_batch',
    text: `select b.id as batch_id, b.state, b.lease_epoch, coalesce(sum(o.amount) filter (where b.state = 'dead' and o.spent_by is not null), 0) as lost
             from outgoing_inputs m join outgoing_inputs o on (o.currency, o.txid, o.vout) = (m.currency, m.txid, m.vout) and o.batch_id <> m.batch_id and not o.freed
             join outgoing_batches b on b.id = o.batch_id where m.batch_id = $1 and m.freed group by b.id order by b.id`,
    values: [batchId],
  });
  return rows.map((row) => ({
    batchId: row.batch_id,
    state: row.state,
    leaseEpoch: row.lease_epoch,
    lost: BigInt(row.lost),
  }));
}

/** The outputs that a dead batch had given back are its own again, and spent by its transaction; other dead batches have them no more. */
export async function takeInputsBack(
  sql: Sql,
  { batchId, currency, txid, height }: { batchId: string; currency: UtxoCode; txid: string; height: number },
): Promise<void> {
  await sql.query({
    name: 'rivals_give_back',
    text: `update outgoing_inputs o set freed = true, spent_by = null, spent_height = null from outgoing_inputs m
            where m.batch_id = $1 and m.freed and (o.currency, o.txid, o.vout) = (m.currency, m.txid, m.vout) and o.batch_id <> m.batch_id and not o.freed`,
    values: [batchId],
  });
  await sql.query({
    name: 'take_inputs_back',
    text: `with taken as (
             update outgoing_inputs set freed = false, spent_by = $3, spent_height = $4 where batch_id = $1 and freed returning txid, vout),
           payment as (update payments p set spent = true from taken t where p.currency = $2 and p.txid = t.txid and p.vout = t.vout)
           update own_outputs c set spent = true from taken t where c.currency = $2 and c.txid = t.txid and c.vout = t.vout`,
    values: [batchId, currency, txid, height],
  });
  // what had spent its change is dead too: the change is there again
  await sql.query({
    name: 'change_is_back',
    text: `with freed as (
             update outgoing_inputs i set freed = true from outgoing_batches b
              where i.currency = $1 and i.txid = $2 and b.id = i.batch_id and b.state = 'dead' and i.spent_by is null and not i.freed returning i.vout)
           update own_outputs c set spent = false from freed f where c.currency = $1 and c.txid = $2 and c.vout = f.vout`,
    values: [currency, txid],
  });
}
