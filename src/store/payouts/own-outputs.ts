// Our own addresses (chain 1 of the signer's accounts) and the outputs there: change, and the service's own capital.
import type { CurrencyCode } from '../../core/currency.ts';
import type { CapitalOutput } from '../../core/payouts/capital.ts';
import type { Sql } from '../postgres/connect.ts';

type OwnAddress = { readonly index: number; readonly script: Uint8Array };

/** Records an address of our own before anything is sent to it, so that the watcher looks for it. */
export async function insertOwnAddress(
  sql: Sql,
  accountId: bigint,
  currency: CurrencyCode,
  { index, script }: OwnAddress,
): Promise<void> {
  await sql.query({
    name: 'insert_own_address',
    text: `insert into own_addresses (account_xpub_id, address_index, currency, script) values ($1, $2, $3, $4) on conflict do nothing`,
    values: [accountId, index, currency, Buffer.from(script)],
  });
}

/** The next index of our own addresses of an account. */
export async function nextOwnIndex(sql: Sql, accountId: bigint): Promise<number> {
  const { rows } = await sql.query<{ next: bigint }>({
    name: 'next_own_index',
    text: 'select coalesce(max(address_index) + 1, 0) as next from own_addresses where account_xpub_id = $1',
    values: [accountId],
  });
  return Number(rows[0]?.next ?? 0n);
}

/** How many addresses after the last that was given out may be in use; one is used with each batch. */
const NEXT_ADDRESSES = 200;
const MOST_LEFT_OUT = 1_000;

/**
 * The indexes of an account's own addresses that were not given out here, and may have been before an older state was put back: those after the
 * last, and the newest that are left out before it, for what was forgotten is not always booked in the order in which it was made.
 */
export async function ungivenOwnIndexes(sql: Sql, accountId: bigint): Promise<readonly number[]> {
  const { rows } = await sql.query<{ index: bigint }>({
    name: 'ungiven_own_indexes',
    text: `with next as (select coalesce(max(address_index) + 1, 0) as index from own_addresses where account_xpub_id = $1)
           (select n as index from next cross join lateral generate_series(next.index, next.index + $2::bigint - 1) n)
           union all
           (select n from next cross join lateral generate_series(0, next.index - 1) n
             where not exists (select from own_addresses o where o.account_xpub_id = $1 and o.address_index = n)
             order by n desc limit $3)`,
    values: [accountId, NEXT_ADDRESSES, MOST_LEFT_OUT],
  });
  return rows.map(({ index }) => Number(index));
}

/** SQL: what nobody here has signed: capital. What a transaction of ours makes is looked after with its batch. */
export const isCapital = (output: string): string =>
  `not exists (select from outgoing_attempts t where t.currency = ${output}.currency and t.txid = ${output}.txid)`;

/** SQL: no batch spends it, or only one that is dead. */
const isUnspent = (output: string): string =>
  `(not ${output}.spent or exists (select from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
      where i.currency = ${output}.currency and i.txid = ${output}.txid and i.vout = ${output}.vout and not i.freed and b.state = 'dead'))`;

/**
 * SQL: capital that a reorganisation has taken out of its block, and that no entry says is lost. What a batch spends stays booked until that is
 * dead: its bytes are sent again, and may be mined with it.
 */
export const isGone = (output: string): string =>
  `(${output}.booked and ${output}.height is null and ${isUnspent(output)} and ${isCapital(output)})`;

/** Capital that is in no block any more, locked. */
export async function lockGone(sql: Sql, currency: CurrencyCode): Promise<readonly CapitalOutput[]> {
  return capitalOutputs(sql, {
    name: 'lock_gone_outputs',
    text: `select txid, vout, amount, lost from own_outputs c where currency = $1 and ${isGone('c')} order by txid, vout limit 500 for update`,
    values: [currency],
  });
}

async function capitalOutputs(sql: Sql, query: Parameters<Sql['query']>[0]): Promise<readonly CapitalOutput[]> {
  const { rows } = await sql.query<{ txid: string; vout: number; amount: string; lost: number }>(query);
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }));
}

/**
 * Outputs at our own addresses at this depth that no entry knows yet, locked; those that a miner made with his block once they are mature, and
 * those that one node shows and no other could be asked about yet after an hour.
 */
export async function lockUnbooked(
  sql: Sql,
  currency: CurrencyCode,
  { depth, maturity, nowMs }: { readonly depth: number; readonly maturity: number; readonly nowMs: number },
): Promise<readonly CapitalOutput[]> {
  return capitalOutputs(sql, {
    name: 'lock_unbooked_outputs',
    text: `select txid, vout, amount, lost from own_outputs c
            where currency = $1 and not booked
              and height <= (select height from chain_cursors where currency = $1) - case when coinbase then greatest($2::integer, $3::integer) else $2::integer end + 1
              -- it spends outputs of ours and nobody has signed it here: what it is must be known first, and its change is no capital then
              and not exists (select from outgoing_inputs i join outgoing_batches b on b.id = i.batch_id
                               where i.currency = $1 and i.spent_height = c.height and i.spent_by = c.txid and b.state <> 'dead'
                                 and not exists (select from outgoing_attempts a where a.currency = i.currency and a.txid = i.spent_by))
              and not exists (select from unconfirmed_blocks u where u.currency = $1 and u.height = c.height and u.hash = c.block_hash and not u.denied
                                 and c.script = any (u.scripts) and u.since between $4::timestamptz - interval '1 hour' and $4)
            order by txid, vout limit 500 for update skip locked`,
    values: [currency, depth, maturity, new Date(nowMs)],
  });
}

/** Notes that an entry of the ledger knows these outputs, or (`false`) that one has taken them out again. */
export async function markBooked(
  sql: Sql,
  currency: CurrencyCode,
  outputs: readonly CapitalOutput[],
  booked: boolean,
): Promise<void> {
  if (outputs.length === 0) return;
  await sql.query({
    name: 'mark_outputs_booked',
    text: `update own_outputs c set booked = $4, lost = case when $4 then lost else lost + 1 end from unnest($2::text[], $3::int[]) as t(txid, vout)
            where c.currency = $1 and c.txid = t.txid and c.vout = t.vout`,
    values: [currency, outputs.map((output) => output.txid), outputs.map((output) => output.vout), booked],
  });
}

/** The first scripts of our own, in the order of their indexes. */
export async function readOwnScripts(sql: Sql, currency: CurrencyCode, limit: number): Promise<readonly Buffer[]> {
  const { rows } = await sql.query<{ script: Buffer }>({
    name: 'read_own_scripts',
    text: 'select script from own_addresses where currency = $1 order by account_xpub_id, address_index limit $2',
    values: [currency, limit],
  });
  return rows.map((row) => row.script);
}

/** Our own addresses (scripts) at which something is recorded that is in no block any more. */
export async function goneOwnScripts(sql: Sql, currency: CurrencyCode): Promise<readonly Buffer[]> {
  const { rows } = await sql.query<{ script: Buffer }>({
    name: 'gone_own_scripts',
    text: 'select distinct script from own_outputs where currency = $1 and height is null',
    values: [currency],
  });
  return rows.map(({ script }) => script);
}

type Shown = { readonly txid: string; readonly vout: number; readonly amountMinor: bigint };

/** Which of these outputs of one block at our own addresses are in no block as they are recorded, where something of their transaction was once. */
export async function goneAmong<T extends Shown>(sql: Sql, currency: CurrencyCode, outputs: readonly T[]): Promise<readonly T[]> {
  const { rows } = await sql.query<{ nth: number }>({
    name: 'gone_among_outputs',
    text: `select (o.nth - 1)::int as nth from unnest($2::text[], $3::int[]) with ordinality as o(txid, vout, nth)
            where exists (select from own_outputs c where c.currency = $1 and c.txid = o.txid and c.height is null)
              and not exists (select from own_outputs c where c.currency = $1 and c.txid = o.txid and c.vout = o.vout and c.height is not null)
            order by o.nth`,
    values: [currency, outputs.map(({ txid }) => txid), outputs.map(({ vout }) => vout)],
  });
  return rows.map(({ nth }) => outputs[nth] as T);
}

/** Which of these outputs at our own addresses are recorded in no block. */
export async function unrecordedAmong<T extends Shown>(
  sql: Sql,
  currency: CurrencyCode,
  outputs: readonly T[],
): Promise<readonly T[]> {
  const { rows } = await sql.query<{ nth: number }>({
    name: 'unrecorded_among_outputs',
    text: `select (o.nth - 1)::int as nth from unnest($2::text[], $3::int[]) with ordinality as o(txid, vout, nth)
            where not exists (select from own_outputs c where c.currency = $1 and c.txid = o.txid and c.vout = o.vout and c.height is not null)
            order by o.nth`,
    values: [currency, outputs.map(({ txid }) => txid), outputs.map(({ vout }) => vout)],
  });
  return rows.map(({ nth }) => outputs[nth] as T);
}

/** What the ledger holds on a chain that is not on its way out, in minor units, whatever its depth. */
export async function chainAssets(sql: Sql, currency: CurrencyCode): Promise<bigint> {
  const { rows } = await sql.query<{ amount: string }>({
    name: 'chain_assets',
    text: 'select amount from ledger.account_balance where code = $1',
    values: [`asset:chain:${currency}`],
  });
  return BigInt(rows[0]?.amount ?? 0);
}

/** Those of the scripts (hex) that were given out as our own, with their indexes. */
export async function knownOwnScripts(
  sql: Sql,
  currency: CurrencyCode,
  scripts: readonly string[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await sql.query<{ script: string; index: bigint }>({
    name: 'known_own_scripts',
    text: `select encode(script, 'hex') as script, address_index as index from own_addresses where currency = $1 and script = any ($2)`,
    values: [currency, scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  return new Map(rows.map(({ script, index }) => [script, Number(index)]));
}
