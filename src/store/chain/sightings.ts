// Writes what the watchers saw of payments: facts, never decisions. These are a payment's place (mempool, block, gone, conflicted), what it
// spends, and what conflicts with it; the transactions concerned become due for the judge. The caller holds the lock of the chain's cursor row.
import { CURRENCY_CODES, type CurrencyCode, chainRow } from '../../core/currency.ts';
import type { TransactionFacts } from '../../core/ports.ts';
import { recordOutgoing, takeBackOutgoing, takeBackOwn } from '../payouts/outgoing-facts.ts';
import type { Sql } from '../postgres/connect.ts';
import { CHOSEN_AT_ONCE, createTurns, inParts } from '../postgres/in-parts.ts';
import { inIdParts, type RowIds, readIds } from '../postgres/row-ids.ts';
import { noteEarly } from './early-payments.ts';
import { asRecorded } from './inner-ether.ts';
import { withoutOwnSends } from './own-senders.ts';
import { type KnownFacts, type PaymentFacts, readFacts, type Sighting, type SightingsContext } from './payment-facts.ts';
import { insertPayments, insertSpends, leavePlaces, takeFreshKeys, updatePayments } from './payment-writes.ts';
import { ownersOf } from './script-owners.ts';
import { applySighting, createPlan, malleationKeysOf, type Plan } from './sighting-plan.ts';
import type { UnminedFacts } from './unmined.ts';
import { noteUnprotected } from './unprotected-payments.ts';

/** Records the payments that one block, or the mempool, shows. Returns how many payments changed. */
export async function recordSightings(
  sql: Sql,
  currency: CurrencyCode,
  context: SightingsContext,
  seen: readonly Sighting[],
): Promise<number> {
  if (seen.length === 0) return 0;
  await noteUnprotected(sql, currency, context, seen);
  const fromOthers = await withoutOwnSends(
    sql,
    currency,
    seen.map((one) => one.facts),
    context.block,
  );
  const { block } = context;
  const facts = block === null ? fromOthers : (await asRecorded(sql, currency, block.hash, fromOthers)).facts;
  const sightings = seen.map((one, at) => ({ ...one, facts: facts[at] as TransactionFacts }));
  const scripts = new Set(facts.flatMap((one) => one.outputs.map((output) => output.script)));
  const owners = await ownersOf(
    sql,
    [...scripts].map((script) => Buffer.from(script, 'hex')),
  );
  if (block !== null) await recordOutgoing(sql, currency, block, facts, owners);
  const known = await readFacts(sql, currency, { sightings: facts, owners, malleationKeys: malleationKeysOf(owners, facts) });
  const plan = createPlan(currency, context, known);
  const turns = createTurns();
  for (const sighting of await withoutEarly(sql, currency, context, { sightings, known })) {
    applySighting(plan, sighting);
    await turns.pass();
  }
  await writePlan(sql, plan);
  return plan.changed.size + plan.made.size;
}

/** The sightings without the outputs that were there before their transaction was made: these are recorded as early, and never as payments. */
async function withoutEarly(
  sql: Sql,
  currency: CurrencyCode,
  context: SightingsContext,
  seen: { readonly sightings: readonly Sighting[]; readonly known: KnownFacts },
): Promise<readonly Sighting[]> {
  const outputs = seen.sightings.flatMap(({ facts, seenOrder = null, entered = null }) =>
    facts.outputs.flatMap(({ vout, script, amountMinor }) => {
      const transactionId = seen.known.owners.get(script);
      if (transactionId === undefined || amountMinor <= 0n) return [];
      return [{ txid: facts.txid, vout, transactionId, amount: amountMinor, seenOrder, entered }];
    }),
  );
  const at = { height: context.block?.height ?? null, atMs: context.atMs };
  const early = await noteEarly(sql, currency, at, outputs);
  if (early.size === 0) return seen.sightings;
  return seen.sightings.map((one) => {
    const { facts } = one;
    return { ...one, facts: { ...facts, outputs: facts.outputs.filter(({ vout }) => !early.has(`${facts.txid}:${vout}`)) } };
  });
}

async function writePlan(sql: Sql, plan: Plan): Promise<void> {
  const { currency } = plan;
  const changed = [...plan.changed].map((id) => plan.rows.get(id) as PaymentFacts);
  const made = [...plan.made.values()];
  await makeDue(
    sql,
    [...changed, ...made].map((row) => row.transactionId),
  );
  await leavePlaces(sql, [...plan.moved]);
  await updatePayments(sql, changed);
  await takeFreshKeys(sql, currency, [...plan.moved]);
  await insertPayments(sql, currency, made);
  await insertSpends(sql, currency, plan.spends);
  if (plan.conflictingTxids.size > 0) {
    await sql.query({
      name: 'upsert_conflicting',
      text: `insert into conflicting_transactions (currency, txid, height) select $1, txid, $3 from unnest($2::text[]) as t(txid)
               on conflict (currency, txid) do update set height = excluded.height`,
      values: [currency, [...plan.conflictingTxids], plan.context.block?.height ?? null],
    });
  }
}

/**
 * Makes these transactions due at once. A due mark is a row of its own, so that writing one waits for no lock; a verdict deletes only the
 * marks that were there when it began to read.
 */
export async function makeDue(sql: Sql, transactionIds: readonly string[]): Promise<void> {
  if (transactionIds.length === 0) return;
  await sql.query({
    name: 'make_due',
    text: 'insert into due_marks (transaction_id) select * from unnest($1::text[])',
    values: [[...new Set(transactionIds)]],
  });
}

/**
 * A reorganisation removed every block above a height: the payments there are gone until the new branch or the mempool shows them. When the
 * chain got shorter, payments below lose confirmations too and become due.
 */
export async function takeBackAbove(
  sql: Sql,
  currency: CurrencyCode,
  options: { readonly height: number; readonly oldTip: number; readonly newTip: number; readonly atMs: number },
): Promise<void> {
  const shorterBy = options.newTip < options.oldTip ? DEEPEST_RULE : 0;
  const { rows } = await sql.query<{ transaction_id: string }>({
    name: 'transactions_above',
    text: 'select distinct transaction_id from payments where currency = $1 and height > $2',
    values: [currency, options.height - shorterBy],
  });
  await makeDue(
    sql,
    rows.map((row) => row.transaction_id),
  );
  // only whoever holds the cursor's row writes these columns, so the list stays true
  const lost = await readIds(sql, {
    text: 'select id from payments where currency = $1 and height > $2',
    values: [currency, options.height],
  });
  await takeBack(sql, lost, options.atMs);
  await sql.query({
    name: 'take_back_conflicting',
    text: 'update conflicting_transactions set height = null where currency = $1 and height > $2',
    values: [currency, options.height],
  });
  await takeBackOutgoing(sql, currency, options.height);
}

/** What a block is no longer said to pay to these scripts: the payments are gone until it, or the mempool, is said to show them. */
export async function takeBackAt(
  sql: Sql,
  currency: CurrencyCode,
  {
    height,
    hash,
    scripts,
    atMs,
  }: { readonly height: number; readonly hash: string; readonly scripts: readonly Uint8Array[]; readonly atMs: number },
): Promise<void> {
  const at = [currency, height, hash, scripts.map((script) => Buffer.from(script))];
  const paid = `payments p join transactions t on t.id = p.transaction_id
    where p.currency = $1 and p.height = $2 and p.block_hash = $3 and t.script = any ($4)`;
  const { rows } = await sql.query<{ id: string }>({ text: `select distinct t.id from ${paid}`, values: at });
  await makeDue(
    sql,
    rows.map(({ id }) => id),
  );
  await takeBack(sql, await readIds(sql, { text: `select p.id from ${paid}`, values: at }), atMs);
  await takeBackOwn(sql, at);
}

async function takeBack(sql: Sql, ids: RowIds, atMs: number): Promise<void> {
  await inIdParts(ids, (part) =>
    sql.query({
      name: 'take_back_payments',
      text: `with lost as materialized (select id from payments where id = any ($1) order by id for no key update)
             update payments set state = 'gone', lock = null, gone_since = $2, height = null, block_hash = null, block_time = null
              where id in (select id from lost)`,
      values: [part, new Date(atMs)],
    }),
  );
}

/** No rule needs more confirmations than the longest coinbase maturity. */
const DEEPEST_RULE = Math.max(...CURRENCY_CODES.map((code) => chainRow(code).coinbaseMaturity));

/**
 * Compares the payments that are not in a block with the whole mempool of a node whose tip is our cursor: one that is missing is gone, one
 * that came back is there, and one whose conflicting transaction has left is no longer conflicted. Returns the
 * changed payments; nothing is written yet.
 * @param seenHeight the tip below which the payments in the mempool were last seen; null = unknown
 */
export function compareWithMempool(
  unmined: UnminedFacts,
  mempool: ReadonlySet<string>,
  atMs: number,
  seenHeight: number | null = null,
): MempoolChanges {
  const departed = new Set(unmined.conflicting.filter((txid) => !mempool.has(txid)));
  const changed: PaymentFacts[] = [];
  for (const row of unmined.payments) {
    const listed = mempool.has(row.txid);
    if (row.state === 'mempool' && !listed) {
      const lastHeight = seenHeight === null ? row.lastHeight : Math.max(row.lastHeight ?? 0, seenHeight);
      changed.push({ ...row, state: 'gone', goneSinceMs: atMs, lastHeight });
    }
    if (row.state === 'gone' && listed) changed.push({ ...row, state: 'mempool', goneSinceMs: null });
    else if (row.state === 'conflicted' && (listed || (row.conflictTxid !== null && departed.has(row.conflictTxid)))) {
      changed.push({ ...row, state: listed ? 'mempool' : 'gone', goneSinceMs: listed ? null : atMs, conflictTxid: null });
    }
  }
  return { changed, departed: [...departed] };
}
export type MempoolChanges = { readonly changed: readonly PaymentFacts[]; readonly departed: readonly string[] };

/**
 * Writes what a look at the mempool has changed: payments that came or went, with due marks for their transactions, and conflicting
 * transactions that are no longer there.
 */
export async function recordMempoolChanges(sql: Sql, currency: CurrencyCode, changes: MempoolChanges): Promise<void> {
  await makeDue(
    sql,
    changes.changed.map((row) => row.transactionId),
  );
  await updatePayments(sql, changes.changed);
  await inParts(changes.departed, CHOSEN_AT_ONCE, async (part) => {
    await sql.query({
      name: 'delete_conflicting',
      text: 'delete from conflicting_transactions where currency = $1 and txid = any ($2) and height is null',
      values: [currency, part.toSorted()],
    });
  });
}

/** Wakes the judges: facts of a chain have changed. Sent when the transaction commits. */
export async function wakeJudge(sql: Sql, currency: CurrencyCode): Promise<void> {
  await sql.query({ name: 'wake_judge', text: `select pg_notify('judge', $1)`, values: [currency] });
}
