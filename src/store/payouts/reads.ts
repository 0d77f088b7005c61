// Payouts as merchants and operators see them: one, a page of a list, all that is known of one.
import type { CurrencyCode, LedgerCurrency } from '../../core/currency.ts';
import { type HeldReason, PAYOUT_STATUSES, type PayoutStatus, type PayoutStep } from '../../core/payouts/states.ts';
import { PAYOUT_METHODS, type PayoutMethod } from '../../core/payouts/units.ts';
import type { Database, Sql } from '../postgres/connect.ts';
import { LISTED_WITHIN_MS } from '../transactions/lists.ts';

export type PayoutView = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly method: PayoutMethod;
  /** As it was sent; the resolved amount for `all`. */
  readonly amountText: string;
  readonly status: PayoutStatus;
  readonly createdAtMs: number;
  readonly currency: LedgerCurrency;
  /** Minor units of `currency`; null until it is known. */
  readonly fee: bigint | null;
  readonly destination: string;
  /** Of the transaction that a block has, else of the one that was signed last; null before there is one. */
  readonly txid: string | null;
  /** lightning: the hash of the payment. */
  readonly paymentHash: string | null;
  /** ach: the trace number of its entry; null before it is in a file. */
  readonly trace: string | null;
  readonly error: string | null;
  readonly heldReason: HeldReason | null;
  readonly completedAtMs: number | null;
};

type Raw = {
  id: string;
  merchant_id: bigint;
  method: PayoutMethod;
  amount_text: string;
  status: PayoutStatus;
  created_at: Date;
  currency: LedgerCurrency;
  fee: string | null;
  destination: string;
  txid: string | null;
  payment_hash: string | null;
  trace: string | null;
  error: string | null;
  held_reason: HeldReason | null;
  completed_at: Date | null;
};
/** SQL, of a payout `p`: the transaction that carries it, and its trace number at the bank. */
export const TXID = `(select a.txid from outgoing_attempts a join outgoing_batches b on b.id = a.batch_id where a.batch_id = p.batch_id
    order by (a.id is not distinct from b.mined_attempt) desc, a.number desc limit 1)`;
export const TRACE = `coalesce((select e.trace from ach_entries e where e.payout_id = p.id), (select l.trace from lost_ach_entries l where l.paid = p.id),
    (select q.place from lost_questions q join ledger.entry n on n.key = 'adopted:' || q.payout_id where q.payout_id = p.id and q.currency = 'USD'))`;
const VIEWED = `p.id, p.merchant_id, p.method, p.amount_text, p.status, p.created_at, p.currency, p.fee, p.destination, p.payment_hash, p.error, p.held_reason, p.completed_at,
  ${TXID} as txid, ${TRACE} as trace`;

function viewOf(raw: Raw): PayoutView {
  return {
    id: raw.id,
    merchantId: raw.merchant_id,
    method: raw.method,
    amountText: raw.amount_text,
    status: raw.status,
    createdAtMs: raw.created_at.getTime(),
    currency: raw.currency,
    fee: raw.fee === null ? null : BigInt(raw.fee),
    destination: raw.destination,
    txid: raw.txid,
    paymentHash: raw.payment_hash,
    trace: raw.trace,
    error: raw.error,
    heldReason: raw.held_reason,
    completedAtMs: raw.completed_at?.getTime() ?? null,
  };
}

/** Null when there is none. The caller compares whose it is. */
export async function readPayout(sql: Sql, id: string): Promise<PayoutView | null> {
  const { rows } = await sql.query<Raw>({
    name: 'read_payout',
    text: `select ${VIEWED} from payouts p where p.id = $1 and p.reimburses is null`,
    values: [id],
  });
  const [raw] = rows;
  return raw === undefined ? null : viewOf(raw);
}

export type PayoutFilter = {
  readonly merchantId: bigint;
  readonly limit: number;
  readonly startingAfter: string | null;
  readonly status: PayoutStatus | null;
  readonly method: PayoutMethod | null;
  readonly createdGteMs: number | null;
  readonly createdLtMs: number | null;
};

/** The merchant's payouts, newest first (ties by id), one more than `limit` where there are more. */
export async function listPayoutRows(db: Database, filter: PayoutFilter): Promise<PayoutView[]> {
  const { rows } = await db.transaction(async (sql) => {
    await sql.query({ text: `set local statement_timeout = ${LISTED_WITHIN_MS}` });
    return sql.query<Raw>(pageOf(filter));
  });
  return rows.map(viewOf);
}

/**
 * Ranges of an index in its order, as the lists of transactions have them: with status or method the newest of each of the few values of the
 * other are merged.
 */
function pageOf(filter: PayoutFilter) {
  const { status, method, startingAfter: after, createdGteMs: gte, createdLtMs: lt } = filter;
  const values: unknown[] = [filter.merchantId, filter.limit + 1];
  const put = (value: unknown): string => `$${values.push(value)}`;
  const isFiltered = status !== null || method !== null;
  const columns = isFiltered ? ['merchant_id', 'status', 'method'] : ['merchant_id'];
  const at = isFiltered ? ['$1', status === null ? 's.value' : put(status), method === null ? 'm.value' : put(method)] : ['$1'];
  const compare = (more: readonly string[], operator: string, to: readonly string[]) =>
    `(${[...columns, ...more].map((column) => `q.${column}`).join()}) ${operator} (${[...at, ...to].join()})`;
  const wanted: string[] = [];
  if (after === null) wanted.push(compare([], '<=', []));
  else {
    const last = put(after);
    wanted.push(
      compare(['created_at', 'id'], '<', [
        `(select x.created_at from payouts x where x.id = ${last} and x.merchant_id = $1)`,
        last,
      ]),
    );
  }
  wanted.push(gte === null ? compare([], '>=', []) : compare(['created_at'], '>=', [put(new Date(gte))]));
  if (lt !== null) wanted.push(compare(['created_at'], '<', [put(new Date(lt))]));
  const newest = (name: string, keys: readonly string[]) =>
    `order by ${[...keys, 'created_at', 'id'].map((key) => `${name}.${key} desc`).join()} limit (select $2::integer)`;
  const page = `select * from payouts q where q.reimburses is null and ${wanted.join(' and ')} ${newest('q', columns)}`;
  const each = [
    ...(isFiltered && status === null ? [`unnest('{${PAYOUT_STATUSES.join()}}'::text[]) s (value)`] : []),
    ...(isFiltered && method === null ? [`unnest('{${PAYOUT_METHODS.join()}}'::text[]) m (value)`] : []),
  ];
  const from = [...each, `lateral (${page}) p`].join(' cross join ');
  const given = Object.entries({ after, status, method, gte, lt }).flatMap(([name, value]) => (value === null ? [] : [name]));
  return { name: ['view_payouts', ...given].join('_'), text: `select ${VIEWED} from ${from} ${newest('p', [])}`, values };
}

/** What an operator sees of a payout in a list. */
export type ListedPayout = PayoutView & { readonly affiliateId: string; readonly step: PayoutStep };
type ListedRaw = Raw & { affiliate_id: string; step: PayoutStep };
const listed = (row: ListedRaw): ListedPayout => ({ ...viewOf(row), affiliateId: row.affiliate_id, step: row.step });

/** Payouts and reimbursements of all merchants, oldest first: those that are not over, or of one status. */
export async function listAllPayouts(
  sql: Sql,
  wanted: { readonly status: PayoutStatus | null; readonly limit: number },
): Promise<readonly ListedPayout[]> {
  const { rows } = await sql.query<ListedRaw>({
    name: 'list_all_payouts',
    text: `select ${VIEWED}, p.step, m.affiliate_id from payouts p join merchants m on m.id = p.merchant_id
            where case when $1::text is null then p.step <> 'ended' else p.status = $1 end order by p.created_at, p.id limit $2`,
    values: [wanted.status, wanted.limit],
  });
  return rows.map(listed);
}

/** Payouts that have neither arrived nor failed, and reimbursements that are not over, of all merchants, oldest first: found by indexes. */
export async function listOpenPayouts(sql: Sql, limit: number): Promise<readonly ListedPayout[]> {
  const { rows } = await sql.query<ListedRaw>({
    name: 'list_open_payouts',
    text: `with open as (
             select p.id, p.created_at from merchants m join payouts p on p.merchant_id = m.id and p.reimburses is null and p.status in ('pending', 'processing')
             union all select id, created_at from payouts where reimburses is not null and step <> 'ended')
           select ${VIEWED}, p.step, m.affiliate_id from (select id from open order by created_at, id limit $1) o
             join payouts p using (id) join merchants m on m.id = p.merchant_id order by p.created_at, p.id`,
    values: [limit],
  });
  return rows.map(listed);
}

/** All that is known of a payout. Amounts in minor units of its currency. */
export type PayoutDetails = ListedPayout & {
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** What has left and not arrived at its payee, as its final block shows; null: nothing. */
  readonly kept: bigint | null;
  readonly usdMinor: bigint | null;
  readonly automatic: boolean;
  readonly approvedBy: string | null;
  readonly batchId: string | null;
  readonly trouble: string | null;
  /** Who has given its batch up, and why. */
  readonly givenUp: string | null;
  readonly events: readonly { readonly type: string; readonly status: string; readonly reason: string; readonly at: Date }[];
  readonly attempts: readonly {
    readonly number: number;
    readonly txid: string;
    readonly fee: bigint;
    readonly share: bigint;
    readonly signedAt: Date;
    readonly sentAt: Date | null;
    readonly height: number | null;
  }[];
  readonly entries: readonly {
    readonly entryId: bigint;
    readonly kind: string;
    readonly at: Date;
    /** Signed in the ledger's way: + debit, − credit. */
    readonly postings: readonly { readonly account: string; readonly amount: bigint }[];
  }[];
};

/** Null when there is none. */
export async function readPayoutDetails(sql: Sql, id: string): Promise<PayoutDetails | null> {
  type Row = Raw & {
    affiliate_id: string;
    step: PayoutStep;
    amount: string;
    fee_max: string;
    kept: string | null;
    usd_minor: bigint | null;
    automatic: boolean;
    approved_by: string | null;
    batch_id: string | null;
    trouble: string | null;
    given_up: string | null;
  };
  const { rows } = await sql.query<Row>({
    name: 'read_payout_details',
    text: `select ${VIEWED}, p.step, m.affiliate_id, p.amount, p.fee_max, p.kept, p.usd_minor, p.automatic, p.approved_by, p.batch_id,
                  coalesce(b.trouble, f.trouble, l.trouble) as trouble, b.given_up
             from payouts p join merchants m on m.id = p.merchant_id left join outgoing_batches b on b.id = p.batch_id
             left join lightning_payments l on l.payout_id = p.id left join ach_entries e on e.payout_id = p.id left join ach_files f on f.name = e.file where p.id = $1`,
    values: [id],
  });
  const [row] = rows;
  if (row === undefined) return null;
  return {
    ...viewOf(row),
    affiliateId: row.affiliate_id,
    step: row.step,
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    kept: row.kept === null ? null : BigInt(row.kept),
    usdMinor: row.usd_minor,
    automatic: row.automatic,
    approvedBy: row.approved_by,
    batchId: row.batch_id,
    trouble: row.trouble,
    givenUp: row.given_up,
    events: await readEvents(sql, id),
    attempts: await readAttempts(sql, id),
    entries: await readEntries(sql, id),
  };
}

async function readEvents(sql: Sql, id: string): Promise<PayoutDetails['events']> {
  const { rows } = await sql.query<PayoutDetails['events'][number]>({
    name: 'read_payout_events',
    text: 'select type, status, reason, at from events where object_id = $1 order by sequence',
    values: [id],
  });
  return rows;
}

async function readAttempts(sql: Sql, id: string): Promise<PayoutDetails['attempts']> {
  type Row = Omit<PayoutDetails['attempts'][number], 'fee' | 'share'> & { fee: string; share: string };
  const { rows } = await sql.query<Row>({
    name: 'read_payout_attempts',
    text: `select a.number, a.txid, a.fee, s.fee as share, a.signed_at as "signedAt", a.sent_at as "sentAt", a.height
             from outgoing_shares s join outgoing_attempts a on a.id = s.attempt_id where s.payout_id = $1 order by a.number`,
    values: [id],
  });
  return rows.map((row) => ({ ...row, fee: BigInt(row.fee), share: BigInt(row.share) }));
}

async function readEntries(sql: Sql, id: string): Promise<PayoutDetails['entries']> {
  type Row = { entryId: bigint; kind: string; at: Date; postings: { account: string; amount: string }[] };
  const { rows } = await sql.query<Row>({
    name: 'read_payout_entries',
    // their keys begin alike, and are in the order of an index
    text: `select e.id as "entryId", e.kind, e.created_at as at,
                  jsonb_agg(jsonb_build_object('account', a.code, 'amount', p.amount::text) order by p.line) as postings
             from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
            where e.key > 'po:' || $1 || ':' and e.key < 'po:' || $1 || ';' group by e.id order by e.id`,
    values: [id],
  });
  return rows.map((row) => ({ ...row, postings: row.postings.map((one) => ({ ...one, amount: BigInt(one.amount) })) }));
}

/** Ids of the payouts in a currency that wait for a batch, oldest first, without those that are left out. */
export async function queuedIds(
  sql: Sql,
  currency: CurrencyCode,
  { limit, without }: { readonly limit: number; readonly without: readonly string[] },
): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    name: 'queued_payout_ids',
    text: `select id from payouts where step = 'queued' and currency = $1 and script is not null and internal_to is null and id <> all ($3)
            order by created_at, id limit $2`,
    values: [currency, limit, without],
  });
  return rows.map(({ id }) => id);
}
