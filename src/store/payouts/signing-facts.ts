// What the signer reads for itself before it signs: the batch, its payouts with their holds in the ledger, and the attempts that the database
// knows. It runs under the role bursar_signer, which may read this and write nothing.
import type { Database, Sql } from '../postgres/connect.ts';
import { owesOf, STOPPED, takesAvailable } from './hold-facts.ts';

export type PayoutFacts = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly method: string;
  readonly currency: string;
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** The output script in hex; null for a method without one. */
  readonly script: string | null;
  readonly status: string;
  readonly step: string;
  readonly batchId: string | null;
  /** The public key that signed the intent, and the signature. */
  readonly intentKey: string;
  readonly intent: Uint8Array;
  readonly createdAtMs: number;
  /** The transaction whose payments go back; null for a payout. */
  readonly reimburses: string | null;
  /** What the hold entry moved to the merchant's held account, or to what is payable to the customer; 0 without such an entry. */
  readonly held: bigint;
  /** An entry that releases the hold or pays it out exists. */
  readonly isHoldEnded: boolean;
};

export type BatchFacts = {
  readonly id: string;
  readonly currency: string;
  readonly state: string;
  readonly leaseEpoch: bigint;
};

export type SigningFacts = {
  /** Those that were asked for and exist. */
  readonly batches: ReadonlyMap<string, BatchFacts>;
  /** Those that were asked for and exist, and every other one that the first batch has. */
  readonly payouts: ReadonlyMap<string, PayoutFacts>;
  /** Attempts of the batches, and of any batch that has tried to pay one of the payouts. */
  readonly attempts: readonly { readonly batchId: string; readonly number: number; readonly txid: string }[];
  /** All payouts are stopped. */
  readonly isStopped: boolean;
  /** Of those that were asked for, the ones that take of what their merchant has while he owes something, in any currency. */
  readonly owing: ReadonlySet<string>;
};

export type FactsWanted = {
  readonly batchId: string;
  /** Other batches whose state matters. */
  readonly otherBatches: readonly string[];
  readonly payoutIds: readonly string[];
};

/** Reads everything as of one moment. */
export function readSigningFacts(db: Database, wanted: FactsWanted): Promise<SigningFacts> {
  return db.transaction(async (sql) => {
    await sql.query({ text: 'set transaction isolation level repeatable read, read only' });
    const batchIds = [wanted.batchId, ...wanted.otherBatches];
    return {
      batches: await batchesOf(sql, batchIds),
      payouts: await payoutsOf(sql, wanted),
      attempts: await attemptsOf(sql, batchIds, wanted.payoutIds),
      ...(await stopsOf(sql, wanted.payoutIds)),
    };
  });
}

async function batchesOf(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, BatchFacts>> {
  const { rows } = await sql.query<{ id: string; currency: string; state: string; lease_epoch: bigint }>({
    name: 'signing_batches',
    text: 'select id, currency, state, lease_epoch from outgoing_batches where id = any ($1)',
    values: [ids],
  });
  return new Map(
    rows.map((row) => [row.id, { id: row.id, currency: row.currency, state: row.state, leaseEpoch: row.lease_epoch }]),
  );
}

type PayoutRow = {
  id: string;
  merchant_id: bigint;
  method: string;
  currency: string;
  amount: string;
  fee_max: string;
  script: Buffer | null;
  status: string;
  step: string;
  batch_id: string | null;
  intent_key: string;
  intent: Buffer;
  created_at: Date;
  reimburses: string | null;
  held: string;
  is_hold_ended: boolean;
};

async function payoutsOf(sql: Sql, { batchId, payoutIds }: FactsWanted): Promise<ReadonlyMap<string, PayoutFacts>> {
  const { rows } = await sql.query<PayoutRow>({
    name: 'signing_payouts',
    text: `select p.id, p.merchant_id, p.method, p.currency, p.amount, p.fee_max, p.script, p.status, p.step, p.batch_id, p.intent_key, p.intent,
                  p.created_at, p.reimburses,
                  coalesce((select -sum(l.amount)
                              from ledger.entry e join ledger.posting l on l.entry_id = e.id join ledger.account a on a.id = l.account_id
                             where e.key = 'po:' || p.id || ':hold'
                               and a.code = case when p.reimburses is null then 'merchant:' || p.merchant_id || ':held:' || p.currency
                                                 else 'refund_payable:' || p.reimburses || ':' || p.currency end),
                           0) as held,
                  exists (select from ledger.entry e
                           where e.key = any (array['po:' || p.id || ':release', 'po:' || p.id || ':final', 'po:' || p.id || ':rest',
                                                    'po:' || p.id || ':failed', 'po:' || p.id || ':return'])) as is_hold_ended
             from payouts p where p.id = any ($1) or p.batch_id = $2`,
    values: [payoutIds, batchId],
  });
  return new Map(rows.map((row) => [row.id, factsOf(row)]));
}

function factsOf(row: PayoutRow): PayoutFacts {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    method: row.method,
    currency: row.currency,
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    script: row.script?.toString('hex') ?? null,
    status: row.status,
    step: row.step,
    batchId: row.batch_id,
    intentKey: row.intent_key,
    intent: row.intent,
    createdAtMs: row.created_at.getTime(),
    reimburses: row.reimburses,
    held: BigInt(row.held),
    isHoldEnded: row.is_hold_ended,
  };
}

async function attemptsOf(
  sql: Sql,
  batchIds: readonly string[],
  payoutIds: readonly string[],
): Promise<SigningFacts['attempts']> {
  const { rows } = await sql.query<{ batch_id: string; number: number; txid: string }>({
    name: 'signing_attempts',
    text: `select a.batch_id, a.number, a.txid from outgoing_attempts a
            where a.batch_id = any ($1)
               or a.batch_id in (select b.batch_id from outgoing_shares s join outgoing_attempts b on b.id = s.attempt_id where s.payout_id = any ($2))`,
    values: [batchIds, payoutIds],
  });
  return rows.map((row) => ({ batchId: row.batch_id, number: row.number, txid: row.txid }));
}

async function stopsOf(sql: Sql, payoutIds: readonly string[]): Promise<Pick<SigningFacts, 'isStopped' | 'owing'>> {
  const { rows } = await sql.query<{ stopped: boolean; owing: readonly string[] }>({
    name: 'signing_stops',
    text: `select ${STOPPED}, array(select p.id from payouts p where p.id = any ($1) and ${owesOf('p.merchant_id')} and ${takesAvailable('p')}) as owing`,
    values: [payoutIds],
  });
  return { isStopped: rows[0]?.stopped === true, owing: new Set(rows[0]?.owing) };
}
