// What the signer reads for itself before it lets our node pay. It runs under the role bursar_signer, which may read this and write nothing.
import type { SignedPayout } from '../../core/payouts/intent.ts';
import { owesOf, STOPPED, takesAvailable } from '../payouts/request-facts.ts';
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
} from '../payouts/signed-rows.ts';
import type { Sql } from '../postgres/connect.ts';

export type PayerFacts = SignedPayout &
  HoldFacts &
  ReimbursedFacts & {
    readonly status: string;
    readonly step: string;
    readonly state: string;
    /** By which everybody here asks what has become of it. */
    readonly paymentHash: string;
    readonly node: string | null;
    readonly leaseEpoch: bigint;
    readonly leaseUntilMs: number | null;
    /** All payouts are stopped. */
    readonly isStopped: boolean;
    /** It takes of what its merchant has while he owes something. */
    readonly owes: boolean;
  };

type Row = SignedColumns &
  HoldColumns &
  ReimbursedColumns & {
    status: string;
    step: string;
    state: string;
    payment_hash: string;
    node: string | null;
    lease_epoch: bigint;
    lease_until: Date | null;
    stopped: boolean;
    owes: boolean;
  };

/** Null when there is no such payout over Lightning. */
export async function readPayerFacts(sql: Sql, payoutId: string): Promise<PayerFacts | null> {
  const { rows } = await sql.query<Row>({
    name: 'payer_facts',
    text: `select ${SIGNED_COLUMNS}, ${HOLD_COLUMNS}, ${REIMBURSED_COLUMNS}, p.status, p.step, l.state, l.payment_hash, l.node, l.lease_epoch, l.lease_until, ${STOPPED},
                  ${owesOf('p.merchant_id')} and ${takesAvailable('p')} as owes
             from payouts p join lightning_payments l on l.payout_id = p.id where p.id = $1`,
    values: [payoutId],
  });
  const [row] = rows;
  if (row === undefined) return null;
  return {
    ...signedFrom(row),
    ...holdFrom(row),
    ...reimbursedFrom(row),
    status: row.status,
    step: row.step,
    state: row.state,
    paymentHash: row.payment_hash,
    node: row.node,
    leaseEpoch: row.lease_epoch,
    leaseUntilMs: row.lease_until?.getTime() ?? null,
    isStopped: row.stopped,
    owes: row.owes,
  };
}
