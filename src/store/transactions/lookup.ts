// Everything that is known of a transaction, found by whatever an operator has: its id, address, label or a txid.
import type { PaymentMethod } from '../../core/currency.ts';
import { readUnprotectedOf, type UnprotectedPayment } from '../chain/unprotected-payments.ts';
import type { Sql } from '../postgres/connect.ts';

export type FoundTransaction = {
  readonly id: string;
  readonly affiliateId: string;
  readonly status: string;
  readonly currency: PaymentMethod;
  readonly usdMinor: bigint;
  readonly amountDue: bigint;
  readonly received: bigint;
  readonly rate: string;
  readonly toleranceBps: number;
  readonly latePayments: string;
  readonly label: string | null;
  readonly email: string | null;
  readonly address: string;
  readonly createdAt: Date;
  readonly windowEndsAt: Date;
  readonly confirmedAt: Date | null;
  readonly succeededAt: Date | null;
  readonly events: readonly FoundEvent[];
  readonly payments: readonly FoundPayment[];
  /** Outputs to its address that are no payments because they were there before it was made. */
  readonly earlyPayments: readonly FoundEarlyPayment[];
  /** Outputs to its script on a chain where our key does not control that. */
  readonly unprotected: readonly UnprotectedPayment[];
  readonly entries: readonly FoundEntry[];
};
export type FoundEarlyPayment = {
  readonly currency: PaymentMethod;
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  /** The block in which it was found; null = the mempool. */
  readonly height: number | null;
  readonly notedAt: Date;
  /** `accepted`: an operator has decided that it is a payment all the same. */
  readonly state: 'noted' | 'acknowledged' | 'accepted';
};
/** `previous` is null for an announcement, which changes no status. */
export type FoundEvent = {
  readonly type: string;
  readonly status: string;
  readonly previous: string | null;
  readonly reason: string;
  readonly at: Date;
};
export type FoundPayment = {
  readonly currency: PaymentMethod;
  readonly txid: string;
  readonly vout: number;
  readonly amount: bigint;
  readonly state: string;
  readonly lock: string | null;
  readonly height: number | null;
  readonly confirmations: number;
  readonly seenAt: Date;
  readonly counted: boolean;
  readonly inAvailable: bigint;
  readonly inSuspense: bigint;
  readonly conflictTxid: string | null;
};
export type FoundEntry = {
  readonly entryId: bigint;
  readonly kind: string;
  readonly key: string;
  readonly createdAt: Date;
  /** Signed in the ledger's way: + debit, − credit. */
  readonly postings: readonly { readonly account: string; readonly currency: PaymentMethod; readonly amount: bigint }[];
};

/** Longer than most labels, and neither an id nor a txid. */
const MAY_BE_ADDRESS = /^(?![0-9a-fA-F]{64}$)[0-9A-Za-z:]{25,}$/;

/** Ids of the transactions with this id, address, label or a payment, or an output noted as early or not ours, of this txid; the newest first. */
export async function findTransactions(sql: Sql, text: string, limit: number): Promise<readonly string[]> {
  const { rows } = await sql.query<{ id: string }>({
    // addresses have no index of their own: only what may be one is looked for among them
    text: `select t.id from transactions t
            where t.id in (select $1 union all (select l.id from transactions l where l.label = $1 order by l.created_at desc limit $2)
                           union all select p.transaction_id from payments p where p.txid = lower($1)
                           union all select e.transaction_id from early_payments e where e.txid = lower($1)
                           union all select u.transaction_id from unprotected_payments u where u.txid = lower($1)
                           ${MAY_BE_ADDRESS.test(text) ? 'union all select a.id from transactions a where a.address = $1' : ''})
            order by t.created_at desc, t.id desc limit $2`,
    values: [text, limit],
  });
  return rows.map(({ id }) => id);
}

/** Null when there is none. */
export async function readFoundTransaction(sql: Sql, id: string): Promise<FoundTransaction | null> {
  const { rows } = await sql.query<
    Omit<FoundTransaction, 'amountDue' | 'received' | 'events' | 'payments' | 'earlyPayments' | 'unprotected' | 'entries'> & {
      amountDue: string;
      received: string;
    }
  >({
    name: 'read_found_transaction',
    text: `select t.id, m.affiliate_id as "affiliateId", t.status, t.currency, t.usd_minor as "usdMinor", t.amount_due as "amountDue", t.crypto_received as received,
                  t.rate::text as rate, t.tolerance_bps as "toleranceBps", t.late_payments as "latePayments", t.label, t.email, t.address,
                  t.created_at as "createdAt", t.window_ends_at as "windowEndsAt", t.confirmed_at as "confirmedAt", t.succeeded_at as "succeededAt"
             from transactions t join merchants m on m.id = t.merchant_id where t.id = $1`,
    values: [id],
  });
  const [row] = rows;
  if (row === undefined) return null;
  const [events, payments, earlyPayments, unprotected, entries] = await Promise.all([
    readEvents(sql, id),
    readPayments(sql, id),
    readEarlyPayments(sql, id),
    readUnprotectedOf(sql, id),
    readEntries(sql, id),
  ]);
  const { amountDue, received } = row;
  const seen = { events, payments, earlyPayments, unprotected, entries };
  return { ...row, amountDue: BigInt(amountDue), received: BigInt(received), ...seen };
}

async function readEarlyPayments(sql: Sql, id: string): Promise<readonly FoundEarlyPayment[]> {
  const { rows } = await sql.query<Omit<FoundEarlyPayment, 'amount'> & { amount: string }>({
    name: 'read_found_early_payments',
    text: `select currency, txid, vout, amount, height, noted_at as "notedAt",
                  case when accepted_at is not null then 'accepted' when acknowledged_at is not null then 'acknowledged' else 'noted' end as state
             from early_payments where transaction_id = $1 order by noted_at, txid, vout`,
    values: [id],
  });
  return rows.map((row) => ({ ...row, amount: BigInt(row.amount) }));
}

async function readEvents(sql: Sql, id: string): Promise<readonly FoundEvent[]> {
  const { rows } = await sql.query<FoundEvent>({
    name: 'read_found_events',
    text: 'select type, status, previous, reason, at from events where object_id = $1 order by sequence',
    values: [id],
  });
  return rows;
}

async function readPayments(sql: Sql, id: string): Promise<readonly FoundPayment[]> {
  type Row = Omit<FoundPayment, 'amount' | 'inAvailable' | 'inSuspense'> & {
    amount: string;
    in_available: string;
    in_suspense: string;
  };
  const { rows } = await sql.query<Row>({
    name: 'read_found_payments',
    text: `select p.currency, p.txid, p.vout, p.amount, p.state, p.lock, p.height, p.seen_at as "seenAt", p.counted, p.in_available, p.in_suspense,
                  p.conflict_txid as "conflictTxid",
                  case when p.height is null then 0 else greatest(0, coalesce(c.height, p.height) - p.height + 1) end as confirmations
             from decided_payments p left join chain_cursors c on c.currency = p.currency where p.transaction_id = $1 order by p.seen_at, p.id`,
    values: [id],
  });
  return rows.map(({ amount, in_available, in_suspense, ...row }) => ({
    ...row,
    amount: BigInt(amount),
    inAvailable: BigInt(in_available),
    inSuspense: BigInt(in_suspense),
  }));
}

async function readEntries(sql: Sql, id: string): Promise<readonly FoundEntry[]> {
  type Posting = { account: string; currency: PaymentMethod; amount: string };
  const { rows } = await sql.query<{ entryId: bigint; kind: string; key: string; createdAt: Date; postings: Posting[] }>({
    name: 'read_found_entries',
    text: `select e.id as "entryId", e.kind, e.key, e.created_at as "createdAt",
                  jsonb_agg(jsonb_build_object('account', a.code, 'currency', p.currency, 'amount', p.amount::text) order by p.line) as postings
             from ledger.entry e join ledger.posting p on p.entry_id = e.id join ledger.account a on a.id = p.account_id
            where e.transaction_id = $1 group by e.id order by e.id`,
    values: [id],
  });
  return rows.map((row) => ({ ...row, postings: row.postings.map((one) => ({ ...one, amount: BigInt(one.amount) })) }));
}
