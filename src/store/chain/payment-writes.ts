// Writes the fact columns of payments, never the judge's: what changed, what is new (and after which keys it is booked), what new payments spend.
import { type CurrencyCode, isUtxo } from '../../core/currency.ts';
import { KEYS_OF_ONE } from '../../core/judge/postings.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';
import type { NewPayment, PaymentFacts } from './payment-facts.ts';

/** A statement may take half a minute: the changes of a whole block are written in parts. */
const ROWS_AT_ONCE = 10_000;

/** Takes payments out of their places before they get new ones, so that two can change places. */
export function leavePlaces(sql: Sql, ids: readonly bigint[]): Promise<void> {
  let left = 0;
  return inParts(ids, ROWS_AT_ONCE, async (part) => {
    await sql.query({
      name: 'leave_places',
      text: `with locked as materialized (select id from payments where id = any ($1) order by id for no key update)
             update payments p set vout = -($2 + u.n)
               from unnest($1::bigint[]) with ordinality as u(id, n) where p.id = u.id and u.id in (select id from locked)`,
      values: [part, left],
    });
    left += part.length;
  });
}

/**
 * Writes the facts as they are now. A lock belongs to a txid while it stays where our node reported it: an InstantSend lock stays when its
 * transaction is mined; with another txid, out of the mempool or in another block a payment has none until our node reports it again.
 */
export function updatePayments(sql: Sql, rows: readonly PaymentFacts[]): Promise<void> {
  return inParts(rows, ROWS_AT_ONCE, (part) => updateSome(sql, part));
}
async function updateSome(sql: Sql, rows: readonly PaymentFacts[]): Promise<void> {
  await sql.query({
    name: 'update_payment_facts',
    // locked in the order of their ids, as the judge does, which writes other columns of them
    text: `with locked as materialized (select id from payments where id = any ($1) order by id for no key update)
           update payments p
              set lock = case when p.txid = u.txid and ((p.state = u.state and p.block_hash is not distinct from u.block_hash)
                                                     or (p.state = 'mempool' and u.state = 'mined' and p.lock = 'instantsend')) then p.lock end,
                  txid = u.txid, vout = u.vout, state = u.state, height = u.height, block_hash = u.block_hash, block_time = u.block_time,
                  gone_since = u.gone_since, last_height = u.last_height, conflict_txid = u.conflict_txid
             from unnest($1::bigint[], $2::text[], $3::int[], $4::text[], $5::int[], $6::text[], $7::timestamptz[], $8::timestamptz[], $9::int[], $10::text[])
               as u(id, txid, vout, state, height, block_hash, block_time, gone_since, last_height, conflict_txid)
            where p.id = u.id and u.id in (select id from locked)`,
    values: [
      rows.map((row) => row.id),
      rows.map((row) => row.txid),
      rows.map((row) => row.vout),
      rows.map((row) => row.state),
      rows.map((row) => row.block?.height ?? null),
      rows.map((row) => row.block?.hash ?? null),
      rows.map((row) => timeOrNull(row.block?.timeMs ?? null)),
      rows.map((row) => timeOrNull(row.goneSinceMs)),
      rows.map((row) => row.lastHeight),
      rows.map((row) => row.conflictTxid),
    ],
  });
}

/**
 * Writes new payments. A payment that the ledger has already booked is not new: its row was lost, and what the judge knew of it is not in a
 * block. It is left out, because a row without that knowledge would be booked a second time; the audit names it. But what was booked at a place of
 * Ethereum's chain may stand at another one since, as another block shows it: then this is another payment.
 */
export function insertPayments(sql: Sql, currency: CurrencyCode, rows: readonly NewPayment[]): Promise<void> {
  return inParts(rows, ROWS_AT_ONCE, (part) => insertSome(sql, currency, part));
}
async function insertSome(sql: Sql, currency: CurrencyCode, rows: readonly NewPayment[]): Promise<void> {
  await sql.query({
    name: 'insert_payments',
    text: `insert into payments (currency, transaction_id, txid, vout, amount, coinbase, twin_key, state, height, block_hash, block_time, last_height,
                                 seen_at, caught_up_at, found_mined, generation)
             select $1, transaction_id, txid, vout, amount, coinbase, decode(twin_key, 'hex'), state, height, block_hash, block_time, height,
                    seen_at, caught_up_at, state = 'mined',
                    case when booked then ${FRESH_KEYS('$1', 't.txid')} else 0 end
               from unnest($2::text[], $3::text[], $4::int[], $5::numeric[], $6::boolean[], $7::text[], $8::text[], $9::int[], $10::text[],
                           $11::timestamptz[], $12::timestamptz[], $13::timestamptz[])
                 as t(transaction_id, txid, vout, amount, coinbase, twin_key, state, height, block_hash, block_time, seen_at, caught_up_at)
               cross join lateral (select 'dep:' || lower($1) || ':' || t.txid || ':' || t.vout as base) k
               cross join lateral (select exists (select 1 from ledger.part d where d.key = base) as booked) b
              where not booked or ($14 and ${STANDS_ELSEWHERE})`,
    values: [
      currency,
      rows.map((row) => row.transactionId),
      rows.map((row) => row.txid),
      rows.map((row) => row.vout),
      rows.map((row) => row.amount),
      rows.map((row) => row.coinbase),
      rows.map((row) => row.malleationKey),
      rows.map((row) => row.state),
      rows.map((row) => row.block?.height ?? null),
      rows.map((row) => row.block?.hash ?? null),
      rows.map((row) => timeOrNull(row.block?.timeMs ?? null)),
      rows.map((row) => new Date(row.seenAtMs).toISOString()),
      rows.map((row) => new Date(row.caughtUpAtMs).toISOString()),
      !isUtxo(currency),
    ],
  });
}

/** SQL: where the keys begin under which no payment of a transaction was booked yet. */
const FRESH_KEYS = (currency: string, txid: string): string =>
  `${KEYS_OF_ONE} * (1 + (select coalesce(max(x.generation), 0) / ${KEYS_OF_ONE} from decided_payments x where x.currency = ${currency} and x.txid = ${txid}))`;

/** SQL: every payment that is booked under a key of this place has its row, and what was booked here stands elsewhere. */
const STANDS_ELSEWHERE = `
  not exists (select 1 from ledger.part d where (d.key = base or (d.key > base || '#' and d.key < base || '$'))
                 and not exists (select 1 from ledger.part r where r.reverses = d.key)
                 and not exists (select 1 from payments x where x.part_key = d.key)
                 and not exists (select 1 from payment_decisions x where x.part_key = d.key))
  and exists (select 1 from decided_payments x where x.currency = $1 and x.txid = t.txid and x.vout <> t.vout and (x.part_key is not null or x.generation > 0))`;

/**
 * Payments of Ethereum's chain that have another place are booked under keys that nobody has had: where one is booked at that place, or they were booked
 * or lost themselves, since a place may be left again and taken by another one.
 */
export async function takeFreshKeys(sql: Sql, currency: CurrencyCode, ids: readonly bigint[]): Promise<void> {
  if (isUtxo(currency) || ids.length === 0) return;
  const moved = `select p.id, ${FRESH_KEYS('p.currency', 'p.txid')} as fresh from decided_payments p
    where p.id = any ($1) and (p.part_key is not null or p.generation > 0
                               or exists (select 1 from ledger.part d where d.key = 'dep:' || lower(p.currency) || ':' || p.txid || ':' || p.vout))`;
  await sql.query({
    name: 'take_fresh_keys',
    text: `with moved as materialized (${moved}),
                decided as (update payment_decisions d set generation = m.fresh from moved m where d.payment_id = m.id)
           update payments p set generation = m.fresh from moved m where p.id = m.id`,
    values: [ids],
  });
}

export type NewSpend = { readonly prevTxid: string; readonly prevVout: number; readonly txid: string };

/** Records which transactions spend an outpoint that a payment of ours spends too; what is recorded already stays. */
export function insertSpends(sql: Sql, currency: CurrencyCode, rows: readonly NewSpend[]): Promise<void> {
  return inParts(rows, ROWS_AT_ONCE, async (part) => {
    await sql.query({
      name: 'insert_payment_inputs',
      text: `insert into payment_inputs (currency, prev_txid, prev_vout, txid) select $1, * from unnest($2::text[], $3::int[], $4::text[])
               on conflict do nothing`,
      values: [currency, part.map((s) => s.prevTxid), part.map((s) => s.prevVout), part.map((s) => s.txid)],
    });
  });
}

function timeOrNull(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}
