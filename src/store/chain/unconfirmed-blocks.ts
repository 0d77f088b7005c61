// Blocks that pay to us by one node's word only, where several are configured (Ethereum): nothing large is booked of what they hold. What nodes
// contradict each other about is not recorded at all, until both say the same.
import type { BlockRef, InnerWord, Unconfirmed } from '../../core/block-ref.ts';
import { type CurrencyCode, ETHER } from '../../core/currency.ts';
import type { BlockFacts } from '../../core/ports.ts';
import type { Sql } from '../postgres/connect.ts';
import type { BlockRow } from './blocks.ts';
import type { RecordedPlace } from './inner-ether.ts';

export type UnconfirmedBlock = Pick<BlockRow, 'height' | 'hash'> & {
  /** The block before it; null below our first one, where only `bursar chain rescan` reads. */
  readonly previousHash: string | null;
  readonly isDenied: boolean;
  readonly reason: string;
  readonly scripts: readonly Uint8Array[];
  /** What nodes have said that could see then what contracts sent. */
  readonly words: readonly InnerWord[];
  /** When a node showed it first, on the service's clock. */
  readonly sinceMs: number;
};

/**
 * Records that only one node says what a block pays, and what nodes have said of it that contracts sent; about more of it, where that was recorded
 * before. Nothing where the block's facts are no single node's word.
 */
export async function insertUnconfirmed(
  sql: Sql,
  currency: CurrencyCode,
  block: Pick<BlockRow, 'height' | 'hash'>,
  { unconfirmed, innerWords = [] }: Pick<BlockFacts, 'unconfirmed' | 'innerWords'>,
  atMs: number,
): Promise<void> {
  if (unconfirmed === undefined) return;
  if (unconfirmed.unseen !== undefined)
    await insertStated(sql, currency, block, { state: 'silent', ...unconfirmed.unseen }, { words: innerWords, atMs });
  await insertStated(sql, currency, block, unconfirmed, { words: innerWords, atMs });
}

async function insertStated(
  sql: Sql,
  currency: CurrencyCode,
  { height, hash }: Pick<BlockRow, 'height' | 'hash'>,
  { state, reason, scripts }: Omit<Unconfirmed, 'unseen'>,
  { words, atMs }: { readonly words: readonly InnerWord[]; readonly atMs: number },
): Promise<void> {
  await sql.query({
    name: 'insert_unconfirmed_block',
    text: `insert into unconfirmed_blocks as u (currency, height, hash, denied, reason, scripts, since, words) values ($1, $2, $3, $4, $5, $6, $7, $8)
             on conflict (currency, height, denied) do update set hash = excluded.hash, reason = excluded.reason,
               words = case when u.hash = excluded.hash then array(select distinct unnest(u.words || excluded.words) order by 1) else excluded.words end,
               since = case when u.hash = excluded.hash then u.since else excluded.since end, scripts = case when u.hash = excluded.hash then array(select distinct unnest(u.scripts || excluded.scripts) order by 1) else excluded.scripts end`,
    values: [
      currency,
      height,
      hash,
      state !== 'silent',
      reason,
      scripts.map((script) => Buffer.from(script, 'hex')),
      new Date(atMs),
      currency === ETHER ? words.map(({ node, script, amountMinor }) => `${node} ${script} ${amountMinor}`) : [],
    ],
  });
}

function wordOf(text: string): InnerWord {
  const [amount, script, ...node] = text.split(' ').reverse();
  return { node: node.reverse().join(' '), script: String(script), amountMinor: BigInt(amount ?? 0) };
}

/** SQL: no other block is known at its height; below our first one none is. */
const IN_CHAIN = `not exists (select from blocks o where o.currency = u.currency and o.height = u.height and o.hash <> u.hash)`;

/** SQL: the heights of blocks of a chain of which no second node could say what they pay. */
export const unconfirmedHeights = (currency: string): string =>
  `(select u.height from unconfirmed_blocks u where u.currency = ${currency} and not u.denied and ${IN_CHAIN})`;

/** The block before it, as far as our chain knows it. */
export const blockBefore = ({ height, previousHash }: Pick<UnconfirmedBlock, 'height' | 'previousHash'>): BlockRef | null =>
  previousHash === null ? null : { height: height - 1, hash: previousHash };

/** Their order: by height, and of one block what is denied last. */
export const orderOf = ({ height, isDenied }: UnconfirmedBlock): number => 2 * height + (isDenied ? 1 : 0);

/** Those behind one of them ({@link orderOf}), at most so many. */
export async function readUnconfirmed(
  sql: Sql,
  currency: CurrencyCode,
  { after, limit }: { readonly after: number; readonly limit: number },
): Promise<readonly UnconfirmedBlock[]> {
  const { rows } = await sql.query<{
    height: number;
    hash: string;
    previous: string | null;
    denied: boolean;
    reason: string;
    scripts: Buffer[];
    words: string[];
    since: Date;
  }>({
    name: 'read_unconfirmed_blocks',
    text: `select u.height, u.hash, b.previous, u.denied, u.reason, u.scripts, u.words, u.since
             from unconfirmed_blocks u left join blocks b on b.currency = u.currency and b.height = u.height and b.hash = u.hash
            where u.currency = $1 and ${IN_CHAIN} and 2 * u.height::bigint + u.denied::int > $2 order by u.height, u.denied limit $3`,
    values: [currency, after, limit],
  });
  return rows.map(({ height, hash, previous, denied, reason, scripts, words, since }) => ({
    height,
    hash,
    previousHash: previous,
    isDenied: denied,
    reason,
    scripts,
    words: words.map(wordOf),
    sinceMs: since.getTime(),
  }));
}

/** The scripts (hex) of ours that a block is recorded to pay. */
export async function scriptsPaidIn(
  sql: Sql,
  currency: CurrencyCode,
  { height, hash }: Pick<BlockRow, 'height' | 'hash'>,
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ script: string }>({
    name: 'scripts_paid_in_block',
    text: `select encode(t.script, 'hex') as script from payments p join transactions t on t.id = p.transaction_id
            where p.currency = $1 and p.height = $2 and p.block_hash = $3 and p.state = 'mined'
           union select encode(script, 'hex') from own_outputs where currency = $1 and height = $2 and block_hash = $3`,
    values: [currency, height, hash],
  });
  return rows.map(({ script }) => script);
}

/** What is recorded of a block at some scripts: payments, and outputs at our own addresses. */
export async function recordedAt(
  sql: Sql,
  currency: CurrencyCode,
  block: Pick<UnconfirmedBlock, 'height' | 'hash' | 'scripts'>,
): Promise<readonly RecordedPlace[]> {
  const { height, hash, scripts } = block;
  const { rows } = await sql.query<{ txid: string; vout: number; script: string; amount: string }>({
    name: 'own_outputs_in_block',
    text: `select txid, vout, encode(script, 'hex') as script, amount from own_outputs
            where currency = $1 and height = $2 and block_hash = $3 and script = any ($4)`,
    values: [currency, height, hash, scripts.map((script) => Buffer.from(script))],
  });
  const own = rows.map(({ amount, ...row }) => ({ ...row, amountMinor: BigInt(amount) }));
  const named = scripts.map((script) => Buffer.from(script).toString('hex'));
  return [...own, ...(await paymentsIn(sql, currency, block, named))];
}

/** Nothing contradicts any more what is recorded of this block: what waited for that is due again. */
export async function confirmBlock(
  sql: Sql,
  currency: CurrencyCode,
  block: Pick<UnconfirmedBlock, 'height' | 'hash' | 'isDenied' | 'scripts'>,
): Promise<void> {
  await sql.query({
    name: 'confirm_block',
    text: `
      with gone as (delete from unconfirmed_blocks where currency = $1 and height = $2 and hash = $3 and denied = $4 and scripts <@ $5 returning height),
      waiting as (
        select p.transaction_id from payments p join gone g on p.height = g.height
          where p.currency = $1 and ((p.part_key is null and p.state = 'mined') or p.in_suspense > 0)
        union
        select p.reimburses from payouts p where p.currency = $1 and p.step = 'held' and p.reimburses is not null and exists (select from gone)),
      woken as (insert into due_marks (transaction_id) select transaction_id from waiting returning 1)
      select pg_notify('judge', $1) from (select count(*) as n from woken) w where w.n > 0`,
    // more of it may have been recorded since it was read: that was not asked about
    values: [currency, block.height, block.hash, block.isDenied, block.scripts],
  });
}

/** What another node denies of a block, or did when it was asked last: the scripts (hex) that this is about. */
export async function deniedScripts(
  sql: Sql,
  currency: CurrencyCode,
  { height, hash }: Pick<BlockRow, 'height' | 'hash'>,
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ script: string }>({
    name: 'denied_scripts',
    text: `select encode(unnest(scripts), 'hex') as script from unconfirmed_blocks where currency = $1 and height = $2 and hash = $3 and denied`,
    values: [currency, height, hash],
  });
  return rows.map(({ script }) => script);
}

/** Payments that are recorded in a block at some scripts (hex), as {@link recordedIn} tells of those that contracts have sent. */
export async function paymentsIn(
  sql: Sql,
  currency: CurrencyCode,
  { height, hash }: Pick<BlockRow, 'height' | 'hash'>,
  scripts: readonly string[],
): Promise<readonly RecordedPlace[]> {
  const { rows } = await sql.query<{ txid: string; vout: number; script: string; amount: string }>({
    name: 'payments_in_block',
    text: `select p.txid, p.vout, encode(t.script, 'hex') as script, p.amount from payments p join transactions t on t.id = p.transaction_id
            where p.currency = $1 and p.height = $2 and p.block_hash = $3 and p.state = 'mined' and t.script = any ($4)`,
    values: [currency, height, hash, scripts.map((script) => Buffer.from(script, 'hex'))],
  });
  return rows.map(({ amount, ...row }) => ({ ...row, amountMinor: BigInt(amount) }));
}
