// The chain against the books, in SQL: what the second reading found (chain_receipts) is compared with the payments and their ledger
// entries, and every difference is named by its outpoint.

import { EVM_SCRIPT } from '../../core/currencies/evm.ts';
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import { SCRIPT_FORMS } from '../../core/currencies/utxo.ts';
import { EVM_CODES, UTXO_CODES, utxoRow } from '../../core/currency.ts';
import { agreedHeight } from '../chain/node-conditions.ts';
import { unconfirmedHeights } from '../chain/unconfirmed-blocks.ts';
import type { Sql } from '../postgres/connect.ts';
import { inQuotedCurrency } from '../transactions/case-facts.ts';
import type { Question } from './audit.ts';

/**
 * The second reading counts only while its last block is in the best chain as the watchers know it: after a deep reorganisation it is first
 * read again.
 */
const STANDS = `chain_reconciled c join blocks b on b.currency = c.currency and b.height = c.height and b.hash = c.hash`;
/**
 * What it found, `$1` blocks deep, planned by itself: all that is asked about it has a currency, so the planner would try every order of eight
 * tables, 50 ms for an answer of one.
 */
const READ = `(select r.*, c.height as read_to from ${STANDS}
               join chain_receipts r on r.currency = c.currency and r.height <= c.height and r.height > c.height - $1::int offset 0)`;
const NAME = `r.currency || ' ' || r.txid || ':' || r.vout || ' of ' || r.amount || ' in block ' || r.height || ' to ' || r.transaction_id`;
const ON_ETHEREUM = EVM_CODES.map((code) => `'${code}'`).join();

/** SQL: whether our key controls a script of ours on a chain. */
function isProtectedSql(currency: string, script: string): string {
  const forms = [
    ...UTXO_CODES.flatMap((code) =>
      utxoRow(code).utxo.blockFeatures.protectedScripts.map((kind) => ({ code, ...SCRIPT_FORMS[kind] })),
    ),
    ...EVM_CODES.map((code) => ({ code, ...EVM_SCRIPT })),
  ];
  const all = forms.map(
    ({ code, bytes, head, tail }) =>
      `(${currency} = '${code}' and length(${script}) = ${bytes} and encode(${script}, 'hex') like '${head}%${tail}')`,
  );
  return `(${all.join(' or ')})`;
}

/** The second reading found it, and it is recorded as early, so no payment. */
const EARLY = `select 1 from early_payments o where o.currency = r.currency and o.txid = r.txid and o.vout = r.vout and o.accepted_at is null`;

/**
 * Each takes as its parameter how many blocks back it looks. An output at an old address is expected among the payments only up to the
 * height that the deep scan has reached.
 */
export const RECONCILIATION: readonly Question[] = [
  {
    id: 'RECON-0',
    says: 'every chain can be read a second time',
    text: `select c.currency || ' cannot be read on from block ' || (c.height + 1) || ': ' || c.trouble || ' (put a node that has this block first among its URLs)' as what
             from chain_reconciled c join chain_cursors k on k.currency = c.currency
            where c.trouble is not null and c.trouble_counts_from <= k.caught_up_at and $1::int > 0`,
  },
  {
    id: 'RECON-1',
    says: 'every output that our addresses received on the chain is a payment, in the same block and of the same amount',
    text: `select ${NAME} || case
                    when p.id is null and exists (select 1 from ledger.part d where d.key = 'dep:' || lower(r.currency) || ':' || r.txid || ':' || r.vout)
                    then ' is no longer a payment, though the ledger has booked it: its row was deleted, restore it from a backup'
                    when p.id is null then ' is no payment (bursar chain rescan --currency ' || r.currency || ' --from ' || r.height || ' finds it)'
                    when p.amount <> r.amount then ' is recorded as ' || p.amount
                    when p.transaction_id <> r.transaction_id then ' is recorded for ' || p.transaction_id
                    else ' is recorded as ' || p.state || coalesce(' in block ' || p.height, '') end as what
             from ${STANDS} join chain_receipts r on r.currency = c.currency and r.height <= c.height and r.height > c.height - $1::int
             join chain_cursors k on k.currency = r.currency
             left join payments p on p.currency = r.currency and p.txid = r.txid and p.vout = r.vout
            where not exists (${EARLY})
              and ((p.id is null and r.height <= k.deep_height) or p.amount <> r.amount or p.transaction_id <> r.transaction_id
                   or p.block_hash is distinct from r.block_hash)`,
  },
  {
    id: 'RECON-2',
    says: 'every payment recorded at that depth is on the chain, and no booked payment is missing',
    text: `select p.currency || ' ' || p.txid || ':' || p.vout || ' of ' || p.amount || ' is said to be in block ' || p.height || ' and is not there'
                  || case when p.currency in (${ON_ETHEREUM}) then ' (bursar chain rescan --currency ' || p.currency || ' --from ' || p.height || ' takes it back where nodes show it no more)' else '' end as what
             from ${STANDS} join payments p on p.currency = c.currency and p.height <= c.height and p.height > greatest(c.from_height, c.height - $1::int)
            where not exists (select 1 from chain_receipts r where r.currency = p.currency and r.txid = p.txid and r.vout = p.vout)
           union all
           select p.currency || ' ' || p.txid || ':' || p.vout || ' of ' || p.amount || ' is booked and ' || p.state
             from decided_payments p join transactions t on t.id = p.transaction_id
             join chain_cursors k on k.currency = p.currency join chain_cursors kt on kt.currency = t.currency
            where p.part_key is not null and (p.state = 'conflicted' or (p.state = 'gone' and p.gone_since < k.caught_up_at - interval '1 hour'))
              and (p.last_height is null or p.last_height <= k.height) and (t.due_at is null or t.due_at > kt.caught_up_at)
              and (p.due_at is null or p.due_at > k.caught_up_at)
              and not exists (select 1 from due_marks m where m.transaction_id = t.id)`,
  },
  {
    id: 'RECON-3',
    says: 'every output at that depth is in the ledger with its amount, unless its transaction still waits for more',
    text: `select ${NAME} || ' is booked as ' || coalesce(l.amount, 0) || ' while the transaction is ' || t.status as what
             from ${READ} r
             join decided_payments p on p.currency = r.currency and p.txid = r.txid and p.vout = r.vout
             join transactions t on t.id = p.transaction_id
             join chain_cursors k on k.currency = r.currency join chain_cursors kt on kt.currency = t.currency
             left join node_conditions n on n.currency = r.currency
             left join ledger.part l on l.key = p.part_key and not exists (select 1 from ledger.part v where v.reverses = l.key)
            where coalesce(l.amount, 0) <> r.amount
              and not (p.part_key is null and (
                    (t.status in ('started', 'pending', 'confirmed') and ${inQuotedCurrency('p', 't')})
                    or coalesce(t.due_at <= kt.caught_up_at, false) or exists (select 1 from due_marks m where m.transaction_id = t.id) or coalesce(p.due_height <= k.height, false)
                    -- two nodes do not hold it as deep as this yet
                    or coalesce(${agreedHeight('n')} < r.height + (k.height - r.read_to), false) or r.height in ${unconfirmedHeights('r.currency')}
                    or (r.coinbase and k.height - r.height < 240)))`,
  },
  {
    id: 'EARLY-1',
    says: 'no output was at an address before its transaction was created, or an operator has looked at it',
    text: `select o.currency || ' ' || o.txid || ':' || o.vout || ' of ' || o.amount || coalesce(' in block ' || o.height, ' in the mempool') || ' was there before '
                  || o.transaction_id || ' was made: its address was given out twice, nothing is booked (bursar audit --acknowledge ' || o.txid || ':' || o.vout || ', or --is-payment for a payment all the same)' as what
             from early_payments o where o.acknowledged_at is null`,
  },
];

/** For the audit only: it reads every payment and deposit. */
export const OUR_SCRIPTS: readonly Question[] = [
  {
    id: 'CHAIN-3',
    says: 'nothing is a payment, a receipt or a deposit at a script that our key does not control on its chain',
    text: `with held as (
             select currency, txid || ':' || vout as outpoint, transaction_id, amount, 'a payment' as place from payments
             union all select currency, txid || ':' || vout, transaction_id, amount, 'a receipt' from chain_receipts
             union all select upper(split_part(d.key, ':', 2)), split_part(d.key, ':', 3) || ':' || split_part(split_part(d.key, ':', 4), '#', 1), e.transaction_id,
                              null, 'the deposit ' || d.key
                         from ledger.part d join ledger.entry e on e.id = d.entry_id
                        where e.kind = 'deposit' and not exists (select 1 from ledger.part v where v.reverses = d.key))
           select h.currency || ' ' || h.outpoint || coalesce(' of ' || h.amount, '') || ' is ' || h.place || ' of ' || t.id
                  || ', and no key of ours controls that script on ' || h.currency as what
             from held h join transactions t on t.id = h.transaction_id where h.currency <> '${LIGHTNING.code}' and not ${isProtectedSql('h.currency', 't.script')}`,
  },
];

export type ChainTotals = {
  readonly currency: string;
  /** Up to this height everything was read a second time. */
  readonly height: number;
  /** What our addresses received up to that height, and how much of it is in the ledger. */
  readonly received: bigint;
  readonly booked: bigint;
  /** The difference: payments that are known but not booked yet, and the statuses of their transactions. */
  readonly waiting: { readonly payments: number; readonly amount: bigint; readonly statuses: readonly string[] };
};

/** What our addresses received on each chain, and what the books say. */
export async function readChainTotals(sql: Sql): Promise<readonly ChainTotals[]> {
  const { rows } = await sql.query<{
    currency: string;
    height: number;
    received: string;
    booked: string;
    payments: number;
    waiting: string;
    statuses: string[] | null;
  }>({
    name: 'read_chain_totals',
    text: `select c.currency, c.height, coalesce(sum(r.amount) filter (where not exists (${EARLY})), 0)::text as received,
                  coalesce(sum(r.amount) filter (where p.part_key is not null), 0)::text as booked,
                  (count(*) filter (where p.id is not null and p.part_key is null))::integer as payments,
                  coalesce(sum(r.amount) filter (where p.id is not null and p.part_key is null), 0)::text as waiting,
                  array_agg(distinct t.status) filter (where p.id is not null and p.part_key is null) as statuses
             from chain_reconciled c left join chain_receipts r on r.currency = c.currency and r.height <= c.height
             left join decided_payments p on p.currency = r.currency and p.txid = r.txid and p.vout = r.vout
             left join transactions t on t.id = p.transaction_id
            group by c.currency, c.height order by c.currency`,
    values: [],
  });
  return rows.map(({ currency, height, received, booked, payments, waiting, statuses }) => ({
    currency,
    height,
    received: BigInt(received),
    booked: BigInt(booked),
    waiting: { payments, amount: BigInt(waiting), statuses: statuses ?? [] },
  }));
}
