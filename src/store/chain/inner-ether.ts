// Ether that contracts sent inside a block is known by their calls or by balances, as its node shows it, and a block may be read again at
// another node. Once recorded it stays as it is: what a later reading names otherwise, and is the same, is not recorded again.
import { BALANCE_PLACE, WAITING_PLACE } from '../../core/currencies/evm.ts';
import { type CurrencyCode, ETHER } from '../../core/currency.ts';
import type { OutputFacts, TransactionFacts } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';

export type RecordedPlace = {
  readonly txid: string;
  readonly vout: number;
  readonly script: string;
  readonly amountMinor: bigint;
};
/** Whether a place that is recorded is one of ether that a contract sent. */
export const isInnerPlace = (vout: number): boolean => vout > 0 && (vout < WAITING_PLACE || vout >= BALANCE_PLACE);
/** The same in SQL. */
const isInnerSql = (vout: string): string => `(${vout} > 0 and (${vout} < ${WAITING_PLACE} or ${vout} >= ${BALANCE_PLACE}))`;
type Seen = { readonly txid: string; readonly output: OutputFacts };

const keyOf = ({ txid, vout }: { readonly txid: string; readonly vout: number }): string => `${txid}:${vout}`;
/** Two addresses may have been seen at one place (below). */
const seenAs = (txid: string, { vout, script }: OutputFacts): string => `${txid}:${vout}:${script}`;
const sumOf = (all: readonly { readonly amountMinor: bigint }[]): bigint =>
  all.reduce((sum, { amountMinor }) => sum + amountMinor, 0n);
/** Whether an output is ether that a contract sent, by a call that was shown or by what balances show. */
export const isInnerOutput = ({ vout, byBalance }: OutputFacts): boolean =>
  byBalance === true || (vout > 0 && vout < WAITING_PLACE);
/** The last that a row can have. */
const LAST_PLACE = 2 ** 31 - 1;

/**
 * @param facts what a reading of the block shows
 * @returns the facts without what is recorded under another name, and under which names it is; what contradicts the record is left out of both
 */
export async function asRecorded(
  sql: Sql,
  currency: CurrencyCode,
  blockHash: string,
  facts: readonly TransactionFacts[],
): Promise<{ readonly facts: readonly TransactionFacts[]; readonly instead: readonly RecordedPlace[] }> {
  const nothing = { facts, instead: [] };
  if (currency !== ETHER) return nothing;
  const inner = facts.flatMap(({ txid, coinbase, outputs }): readonly Seen[] =>
    coinbase ? [] : outputs.filter(isInnerOutput).map((output) => ({ txid, output })),
  );
  if (inner.length === 0) return nothing;
  const seen = Map.groupBy(inner, ({ output }) => output.script);
  const recorded = Map.groupBy(await recordedIn(sql, blockHash, [...seen.keys()]), ({ script }) => script);
  if (recorded.size === 0) return { facts: await atFreePlaces(sql, blockHash, facts), instead: [] };
  const left = new Map<string, OutputFacts | null>();
  const instead: RecordedPlace[] = [];
  for (const [script, ours] of recorded) {
    const theirs = seen.get(script) as readonly Seen[];
    const decided = decide(theirs, ours);
    if (decided === null) continue;
    for (const { txid, output } of theirs) left.set(seenAs(txid, output), null);
    if (decided.more !== null) left.set(seenAs(blockHash, decided.more), decided.more);
    instead.push(...decided.instead);
  }
  const kept = facts.map((one) => ({
    ...one,
    outputs: one.outputs.flatMap((output) => {
      const now = one.coinbase ? undefined : left.get(seenAs(one.txid, output));
      return now === undefined ? [output] : now === null ? [] : [now];
    }),
  }));
  return { facts: await atFreePlaces(sql, blockHash, kept), instead };
}

/**
 * What balances show has a place made from its address, and two addresses may share one: who comes second gets the next that is free, and keeps
 * what it has been given in this block before.
 */
async function atFreePlaces(
  sql: Sql,
  blockHash: string,
  facts: readonly TransactionFacts[],
): Promise<readonly TransactionFacts[]> {
  const all = facts.flatMap(({ outputs }) => outputs.filter(({ byBalance }) => byBalance === true));
  if (all.length === 0) return facts;
  const known = await placesIn(sql, blockHash);
  const given = new Map(known.map(({ script, vout }) => [script, vout]));
  const taken = new Set(known.map(({ vout }) => vout));
  const places = new Map<string, number>();
  for (const { script, vout } of all) {
    const before = given.get(script);
    let place = before ?? vout;
    if (before === undefined) while (taken.has(place)) place = place === LAST_PLACE ? BALANCE_PLACE : place + 1;
    taken.add(place);
    places.set(script, place);
  }
  return facts.map((one) => ({
    ...one,
    outputs: one.outputs.map((output) =>
      output.byBalance === true ? { ...output, vout: places.get(output.script) as number } : output,
    ),
  }));
}

/**
 * The places that are given in the name of a block, whatever became of what was there: what the books have under a name stays there, though
 * its payment has moved to another block since.
 */
async function placesIn(sql: Sql, blockHash: string): Promise<readonly { readonly script: string; readonly vout: number }[]> {
  const booked = `dep:${ETHER.toLowerCase()}:${blockHash}:`;
  const { rows } = await sql.query<{ script: string; place: string }>({
    name: 'places_by_balance',
    text: `select script, place from (
           select 0 as nth, encode(t.script, 'hex') as script, substr(d.key, length($4) + 1) as place
             from ledger.part d join ledger.entry e on e.id = d.entry_id join transactions t on t.id = e.transaction_id
            where d.key >= $4 and d.key < $5
           union all
           select 1, encode(t.script, 'hex'), p.vout::text from payments p join transactions t on t.id = p.transaction_id
            where p.currency = $1 and p.txid = $2 and p.vout >= $3
           union all
           select 1, encode(t.script, 'hex'), e.vout::text from early_payments e join transactions t on t.id = e.transaction_id
            where e.currency = $1 and e.txid = $2 and e.vout >= $3
           union all
           select 1, encode(script, 'hex'), vout::text from own_outputs where currency = $1 and txid = $2 and vout >= $3) s order by nth`,
    values: [ETHER, blockHash, BALANCE_PLACE, booked, `${booked.slice(0, -1)};`],
  });
  // a payment that was lost and is back is booked as `<place>#2`
  return rows
    .map(({ script, place }) => ({ script, vout: Number.parseInt(place, 10) }))
    .filter(({ vout }) => vout >= BALANCE_PLACE);
}

/** What becomes of what was seen at one address; null = it is recorded as it was seen. */
function decide(
  seen: readonly Seen[],
  recorded: readonly RecordedPlace[],
): { readonly more: OutputFacts | null; readonly instead: readonly RecordedPlace[] } | null {
  const there = new Map(seen.map(({ txid, output }) => [keyOf({ txid, vout: output.vout }), output.amountMinor]));
  if (recorded.every((one) => there.get(keyOf(one)) === one.amountMinor)) return null;
  const more = sumOf(seen.map(({ output }) => output)) - sumOf(recorded);
  if (more === 0n) return { more: null, instead: recorded };
  const [only] = seen;
  const isByBalance = only !== undefined && seen.length === 1 && only.output.byBalance === true;
  const areCalls = recorded.every(({ vout }) => vout < BALANCE_PLACE);
  if (more > 0n && isByBalance && areCalls) return { more: { ...only.output, amountMinor: more }, instead: recorded };
  return { more: null, instead: [] };
}

/** Payments, and outputs at our own addresses, that contracts have sent in a block, as they were recorded. */
export async function recordedIn(sql: Sql, blockHash: string, scripts: readonly string[]): Promise<readonly RecordedPlace[]> {
  const { rows } = await sql.query<{ txid: string; vout: number; script: string; amount: string }>({
    text: `with s as (select script from unnest($2::bytea[]) as u(script)),
           found as (
             select p.txid, p.vout, s.script, p.amount, p.coinbase, p.block_hash
               from s join transactions t on t.script = s.script join payments p on p.transaction_id = t.id and p.currency = $1 and p.state = 'mined'
             union all
             select o.txid, o.vout, s.script, o.amount, false, o.block_hash from s join own_outputs o on o.script = s.script and o.currency = $1)
           select txid, vout, encode(script, 'hex') as script, amount from found
            where block_hash = $3 and not coinbase and ${isInnerSql('vout')}`,
    values: [ETHER, scripts.map((script) => Buffer.from(script, 'hex')), blockHash],
  });
  return rows.map(({ amount, ...row }) => ({ ...row, amountMinor: BigInt(amount) }));
}

/** The addresses (scripts) of transactions at which contracts have sent ether in a block, as far as it was recorded. */
export async function paidInside(
  sql: Sql,
  currency: CurrencyCode,
  block: { readonly height: number; readonly hash: string },
): Promise<readonly Buffer[]> {
  if (currency !== ETHER) return [];
  const { rows } = await sql.query<{ script: Buffer }>({
    name: 'paid_inside',
    text: `select distinct t.script from payments p join transactions t on t.id = p.transaction_id
            where p.currency = $1 and p.height = $2 and p.block_hash = $3 and not p.coinbase and ${isInnerSql('p.vout')}`,
    values: [currency, block.height, block.hash],
  });
  return rows.map(({ script }) => script);
}
