// Reimbursements: rows of payouts that send payments of a transaction back to its customer. The judge of the transaction reads them as facts, and
// writes what follows for them from the transaction's payments.
import { LIGHTNING } from '../../core/currencies/lightning.ts';
import type { CurrencyCode } from '../../core/currency.ts';
import type { Refund, RefundShare } from '../../core/judge/case.ts';
import type { HeldReason, PayoutEvent, PayoutStatus, PayoutStep } from '../../core/payouts/states.ts';
import { REIMBURSEMENT } from '../../core/payouts/units.ts';
import { insertPayment } from '../lightning/payment-rows.ts';
import { arrayText } from '../postgres/array-text.ts';
import type { Sql } from '../postgres/connect.ts';
import { inParts } from '../postgres/in-parts.ts';
import { wakeDriver } from './outgoing-facts.ts';
import { writePayoutChanges } from './status-changes.ts';

type RefundRow = {
  id: string;
  reimburses: string;
  currency: CurrencyCode;
  part: Refund['part'];
  amount: string;
  status: PayoutStatus;
  step: PayoutStep;
  held_reason: HeldReason | null;
  payment_hash: string | null;
  is_held: boolean;
  shares: readonly (readonly [id: string, available: string, suspense: string])[] | null;
};

function stateOf({ status, step, held_reason: reason }: RefundRow): Refund['state'] {
  if (status === 'completed' || status === 'failed') return status;
  // it may have left: an operator finds out
  if (reason === 'unknown_outcome') return 'committed';
  // its payments are final, and a person lets it go
  if (step === 'held' && reason === 'approval') return 'ready';
  if (step === 'held') return 'waiting';
  return step === 'queued' ? 'ready' : 'committed';
}

/** What is under way for locked transactions. */
export type LockedRefunds = {
  /** By transaction, oldest first. */
  readonly refunds: ReadonlyMap<string, readonly Refund[]>;
  /** Transactions of which another session holds a reimbursement: only where nobody waits for it. */
  readonly busy: ReadonlySet<string>;
};

/**
 * Locks the reimbursements of transactions that have not ended, or of whose end the judge has taken no note, until the database transaction
 * ends, so that none of them is committed meanwhile. The transactions are locked already, by a statement before this one: what was
 * taken while that one waited is seen here.
 * @param wait false: one that another session holds is left out
 */
export async function lockRefunds(
  sql: Sql,
  transactionIds: readonly string[],
  { wait }: { readonly wait: boolean },
): Promise<LockedRefunds> {
  if (transactionIds.length === 0) return { refunds: new Map(), busy: new Set() };
  const { rows } = await sql.query<RefundRow | { reimburses: string; amount: null }>({
    name: wait ? 'lock_refunds' : 'lock_free_refunds',
    text: `with open as materialized (select id, reimburses from payouts where reimburses = any ($1) and not noted),
           locked as materialized (
             select id, currency, part, amount, status, step, held_reason, payment_hash, created_at from payouts
              where id in (select id from open) order by id for update${wait ? '' : ' skip locked'})
           select o.reimburses, l.*, exists (select from ledger.entry e where e.key = 'po:' || l.id || ':hold') as is_held,
                  (select jsonb_agg(jsonb_build_array(c.payment_id::text, c.from_available::text, c.from_suspense::text))
                          from reimbursement_shares c where c.payout_id = l.id) as shares
             from open o left join locked l using (id) order by l.created_at, l.id`,
    values: [transactionIds],
  });
  const refunds = rows.flatMap((row) => (row.amount === null ? [] : [{ transactionId: row.reimburses, refund: refundOf(row) }]));
  return {
    refunds: new Map(
      [...Map.groupBy(refunds, (one) => one.transactionId)].map(([id, all]) => [id, all.map((one) => one.refund)]),
    ),
    busy: new Set(rows.flatMap((row) => (row.amount === null ? [row.reimburses] : []))),
  };
}

function refundOf(row: RefundRow): Refund {
  return {
    id: row.id,
    currency: row.payment_hash === null ? row.currency : LIGHTNING.code,
    part: row.part,
    total: BigInt(row.amount),
    state: stateOf(row),
    isHeld: row.is_held,
    shares: new Map<bigint, RefundShare>(
      (row.shares ?? []).map(([id, available, suspense]) => [
        BigInt(id),
        { available: BigInt(available), suspense: BigInt(suspense) },
      ]),
    ),
  };
}

/** What a reimbursement over Lightning pays. */
export type RefundInvoice = { readonly paymentRequest: string; readonly paymentHash: string; readonly expiresAtMs: number };

/** A reimbursement as it was taken. Amounts in minor units. */
export type NewRefund = {
  readonly refund: Refund;
  readonly transactionId: string;
  readonly merchantId: bigint;
  /** The balance that its payments are of. */
  readonly currency: CurrencyCode;
  /** `refund.total`, as a decimal number. */
  readonly amountText: string;
  /** The largest share of a network fee that it may carry. */
  readonly feeMax: bigint;
  readonly destination: string;
  /** The output script; null for one over Lightning. */
  readonly script: Uint8Array | null;
  /** The invoice that is paid; null for one on a chain. */
  readonly invoice: RefundInvoice | null;
  readonly intent: { readonly keyId: string; readonly signature: Uint8Array };
  /** Cents at the median rate; null where there is none. */
  readonly usdMinor: bigint | null;
  /** It waits for an operator once its payments are final. */
  readonly needsApproval: boolean;
  /** What whoever approves it must know; shown of one over Lightning. */
  readonly trouble: string | null;
  readonly createdAtMs: number;
};

const SHARES_AT_ONCE = 5_000;

/** Writes a reimbursement with its payments, and wakes the driver when its payments are deep enough already. */
export async function insertRefund(sql: Sql, made: NewRefund): Promise<void> {
  const { refund } = made;
  const isReady = refund.state === 'ready' && !made.needsApproval;
  await sql.query({
    name: 'insert_refund',
    text: `insert into payouts (id, merchant_id, method, amount_text, currency, amount, fee_max, destination, script, status, step, held_reason,
                                intent_key, intent, created_at, reimburses, part, usd_minor, needs_approval, payment_request, payment_hash,
                                invoice_expires_at)
             values ($1, $2, '${REIMBURSEMENT}', $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21)`,
    values: [
      refund.id,
      made.merchantId,
      made.amountText,
      made.currency,
      refund.total,
      made.feeMax,
      made.destination,
      made.script,
      isReady ? 'processing' : 'pending',
      isReady ? 'queued' : 'held',
      isReady ? null : refund.state === 'ready' ? 'approval' : 'not_final',
      made.intent.keyId,
      made.intent.signature,
      new Date(made.createdAtMs),
      made.transactionId,
      refund.part,
      made.usdMinor,
      made.needsApproval,
      made.invoice?.paymentRequest ?? null,
      made.invoice?.paymentHash ?? null,
      made.invoice === null ? null : new Date(made.invoice.expiresAtMs),
    ],
  });
  await inParts([...refund.shares], SHARES_AT_ONCE, async (shares) => {
    await sql.query({
      name: 'insert_refund_shares',
      text: `insert into reimbursement_shares (payout_id, payment_id, from_available, from_suspense)
               select $1, * from unnest($2::bigint[], $3::numeric[], $4::numeric[])`,
      values: [
        refund.id,
        arrayText(shares.map(([id]) => id)),
        arrayText(shares.map(([, share]) => share.available)),
        arrayText(shares.map(([, share]) => share.suspense)),
      ],
    });
  });
  if (made.invoice !== null) await insertPayment(sql, refund.id, made.createdAtMs, made.trouble);
  if (isReady) await wakeDriver(sql);
}

/** A change of a reimbursement that the judge has found; its row is locked. */
export type RefundChange = { readonly id: string; readonly change: 'ready' | 'lost' | 'noted'; readonly atMs: number };

/**
 * Writes what the judge has found of reimbursements: `ready` lets one go (once it is approved), `lost` ends it, `noted` says that the
 * transaction shows its end.
 */
export async function writeRefundChanges(sql: Sql, changes: readonly RefundChange[]): Promise<void> {
  for (const { id, change, atMs } of changes) {
    if (change === 'ready') {
      if (!(await waitsForApproval(sql, id))) await move(sql, id, 'hold_ended', atMs);
      await wakeDriver(sql);
      continue;
    }
    if (change === 'lost') await move(sql, id, 'payments_lost', atMs);
    await sql.query({ name: 'note_refund', text: 'update payouts set noted = true where id = $1', values: [id] });
  }
}

/** Whether one whose payments are final has to wait for a person; it says so then. */
async function waitsForApproval(sql: Sql, id: string): Promise<boolean> {
  const { rowCount } = await sql.query({
    name: 'refund_waits_for_approval',
    text: `update payouts set held_reason = 'approval' where id = $1 and needs_approval and approved_at is null and step = 'held'`,
    values: [id],
  });
  return rowCount === 1;
}

async function move(sql: Sql, id: string, event: PayoutEvent, atMs: number): Promise<void> {
  type Row = { id: string; merchantId: bigint; sequence: number; reimburses: string; status: PayoutStatus; step: PayoutStep };
  const { rows } = await sql.query<Row>({
    name: 'refund_to_move',
    text: 'select id, merchant_id as "merchantId", sequence, reimburses, status, step from payouts where id = $1',
    values: [id],
  });
  const row = rows[0] as Row;
  const error = event === 'payments_lost' ? { error: 'payments_lost' } : {};
  await writePayoutChanges(sql, [{ payout: row, from: [row.status, row.step], event, ...error }], atMs);
}

/** The judge looks at these transactions again. */
export async function markReimbursing(sql: Sql, transactionIds: readonly string[]): Promise<void> {
  if (transactionIds.length === 0) return;
  await sql.query({
    name: 'mark_reimbursing',
    text: 'insert into due_marks (transaction_id) select distinct * from unnest($1::text[])',
    values: [transactionIds],
  });
}

/** What is shown of the latest reimbursement of a transaction. Minor units; `share` of the transaction on the chain that was signed last. */
export type RefundView = {
  readonly id: string;
  readonly currency: CurrencyCode;
  readonly status: PayoutStatus;
  readonly isNoted: boolean;
  readonly total: bigint;
  readonly feeMax: bigint;
  readonly fee: bigint | null;
  readonly share: bigint | null;
  /** What the forgotten transaction that a person has found it paid by has left of it for the network; null: there is none. */
  readonly found: bigint | null;
  /** What has left and not arrived; null: nothing, or it is not final yet. */
  readonly kept: bigint | null;
  readonly txid: string | null;
  /** It is paid over Lightning; `txid` is the payment hash then, once the node may have been asked. */
  readonly isOverLightning: boolean;
  readonly destination: string;
  /** Minor units per 1,000 virtual bytes, as our nodes said last. */
  readonly feeRate: bigint | null;
};

/** The reimbursement of a transaction that was asked for last; null when there was none. */
export async function latestRefund(sql: Sql, transactionId: string): Promise<RefundView | null> {
  type Row = Omit<RefundView, 'total' | 'feeMax' | 'fee' | 'share' | 'found' | 'kept'> & {
    amount: string;
    kept: string | null;
    fee_max: string;
    fee: string | null;
    share: string | null;
    found: string | null;
  };
  const { rows } = await sql.query<Row>({
    name: 'latest_refund',
    text: `select p.id, p.currency, p.status, p.noted as "isNoted", p.amount, p.fee_max, p.fee, p.kept, p.destination, s.fee as share, found.fee as found,
                  coalesce(s.txid, found.txid, (select l.payment_hash from lightning_payments l where l.payout_id = p.id and l.state in ('sent', 'paid', 'closed'))) as txid,
                  p.payment_hash is not null as "isOverLightning",
                  (select f.fee_rate from fee_rates f where f.currency = p.currency) as "feeRate"
             from payouts p left join lateral (
               select a.txid, h.fee from outgoing_shares h join outgoing_attempts a on a.id = h.attempt_id join outgoing_batches b on b.id = a.batch_id
                where h.payout_id = p.id order by (a.id is not distinct from b.mined_attempt) desc, a.number desc limit 1) s on true
             -- a person has found that a forgotten transaction has paid it: its output is what the customer got
             left join lateral (
               select o.txid, p.amount - o.amount as fee from lost_questions q
                 join lost_outputs o on o.currency = q.currency and o.txid = q.txid and o.vout::text = q.place
                where q.payout_id = p.id and p.resolved and p.status = 'completed' and s.txid is null and o.amount <= p.amount) found on true
            where p.reimburses = $1 order by p.created_at desc, p.id desc limit 1`,
    values: [transactionId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const { amount, fee_max: feeMax, fee, share, found, kept, ...rest } = row;
  const minor = (text: string | null): bigint | null => (text === null ? null : BigInt(text));
  const taken = { total: BigInt(amount), feeMax: BigInt(feeMax), fee: minor(fee), share: minor(share) };
  return { ...rest, ...taken, found: minor(found), kept: minor(kept) };
}
