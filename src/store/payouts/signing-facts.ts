// What the signer reads for itself before it signs: the batch, its payouts with their holds in the ledger, and the attempts that the database
// knows. It runs under the role bursar_signer, which may read this and write nothing.
import type { SignedPayout } from '../../core/payouts/intent.ts';
import type { Database, Sql } from '../postgres/connect.ts';
import { owesOf, STOPPED, takesAvailable } from './request-facts.ts';
import {
  HOLD_COLUMNS,
  type HoldColumns,
  type HoldFacts,
  holdFrom,
  REIMBURSED_COLUMNS,
  type ReimbursedColumns,
  type ReimbursedFacts,
  reimbursedFrom,
  SIGNED_COLUMNS,
  type SignedColumns,
  signedFrom,
} from './signed-rows.ts';

export type PayoutFacts = SignedPayout &
  HoldFacts &
  ReimbursedFacts & {
    readonly status: string;
    readonly step: string;
    readonly batchId: string | null;
  };

export type BatchFacts = {
  readonly id: string;
  readonly currency: string;
  readonly state: string;
  /** `payout`: it pays payouts. */
  readonly purpose: string;
  readonly leaseEpoch: bigint;
};

export type SigningFacts = {
  /** Those that were asked for and exist. */
  readonly batches: ReadonlyMap<string, BatchFacts>;
  /** Those that were asked for and exist, and every other one that the first batch has. */
  readonly payouts: ReadonlyMap<string, PayoutFacts>;
  /** Attempts of the batches, and of any batch that has tried to pay one of the payouts; those whose signatures somebody else has written are none of the signer's. */
  readonly attempts: readonly { readonly batchId: string; readonly number: number; readonly txid: string }[];
  /** All payouts are stopped. */
  readonly isStopped: boolean;
  /** Of those that were asked for, the ones that take of what their merchant has while he owes something, in any currency. */
  readonly owing: ReadonlySet<string>;
  /** Of the nonces that were asked for, those that a block has used. */
  readonly usedNonces: ReadonlySet<number>;
};

export type FactsWanted = {
  readonly batchId: string;
  /** Other batches whose state matters. */
  readonly otherBatches: readonly string[];
  readonly payoutIds: readonly string[];
  /** The nonces between the highest that was signed for a sender (as an input's txid) and the one that is asked for; null: none. */
  readonly nonces: {
    readonly currency: string;
    readonly sender: string;
    readonly after: number;
    readonly below: number;
  } | null;
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
      usedNonces: await usedOf(sql, wanted.nonces),
    };
  });
}

async function batchesOf(sql: Sql, ids: readonly string[]): Promise<ReadonlyMap<string, BatchFacts>> {
  const { rows } = await sql.query<{ id: string; currency: string; state: string; purpose: string; lease_epoch: bigint }>({
    name: 'signing_batches',
    text: 'select id, currency, state, purpose, lease_epoch from outgoing_batches where id = any ($1)',
    values: [ids],
  });
  return new Map(rows.map(({ lease_epoch: leaseEpoch, ...row }) => [row.id, { ...row, leaseEpoch }]));
}

type PayoutRow = SignedColumns & HoldColumns & ReimbursedColumns & { status: string; step: string; batch_id: string | null };

async function payoutsOf(sql: Sql, { batchId, payoutIds }: FactsWanted): Promise<ReadonlyMap<string, PayoutFacts>> {
  const { rows } = await sql.query<PayoutRow>({
    name: 'signing_payouts',
    text: `select ${SIGNED_COLUMNS}, p.status, p.step, p.batch_id, ${HOLD_COLUMNS}, ${REIMBURSED_COLUMNS}
             from payouts p where p.id = any ($1) or p.batch_id = $2`,
    values: [payoutIds, batchId],
  });
  return new Map(
    rows.map((row) => [
      row.id,
      { ...signedFrom(row), ...holdFrom(row), ...reimbursedFrom(row), status: row.status, step: row.step, batchId: row.batch_id },
    ]),
  );
}

async function attemptsOf(
  sql: Sql,
  batchIds: readonly string[],
  payoutIds: readonly string[],
): Promise<SigningFacts['attempts']> {
  const { rows } = await sql.query<{ batch_id: string; number: number; txid: string }>({
    name: 'signing_attempts',
    text: `select a.batch_id, a.number, a.txid from outgoing_attempts a
            where a.number > 0 and (a.batch_id = any ($1)
               or a.batch_id in (select b.batch_id from outgoing_shares s join outgoing_attempts b on b.id = s.attempt_id where s.payout_id = any ($2)))`,
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

async function usedOf(sql: Sql, nonces: FactsWanted['nonces']): Promise<ReadonlySet<number>> {
  if (nonces === null) return new Set();
  const { rows } = await sql.query<{ vout: number }>({
    name: 'signing_nonces',
    text: `select vout from outgoing_inputs where currency = $1 and txid = $2 and vout > $3 and vout < $4 and spent_height is not null
           union select nonce from authorized_nonces where currency = $1 and sender = $2 and nonce > $3 and nonce < $4`,
    values: [nonces.currency, nonces.sender, nonces.after, nonces.below],
  });
  return new Set(rows.map(({ vout }) => vout));
}
