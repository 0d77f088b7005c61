// What was signed for a payout, and what is held for it, as every reader that verifies a signature needs them: one list of columns.
import type { SignedPayout } from '../../core/payouts/intent.ts';

/** Of `payouts p`. */
export const SIGNED_COLUMNS = `p.id, p.merchant_id, p.method, p.currency, p.amount, p.fee_max, p.destination, encode(p.script, 'hex') as script, p.created_at,
                  p.reimburses, p.internal_to, p.payment_request, p.intent_key, p.intent, p.needs_approval, p.approval_key, p.approval`;

export type SignedColumns = {
  id: string;
  merchant_id: bigint;
  method: string;
  currency: string;
  amount: string;
  fee_max: string;
  destination: string;
  script: string | null;
  created_at: Date;
  reimburses: string | null;
  internal_to: string | null;
  payment_request: string | null;
  intent_key: string;
  intent: Buffer;
  needs_approval: boolean;
  approval_key: string | null;
  approval: Buffer | null;
};

/** A payout as its intent has signed it, from columns that a query has selected by {@link SIGNED_COLUMNS}. */
export function signedFrom(row: SignedColumns): SignedPayout {
  return {
    id: row.id,
    merchantId: row.merchant_id,
    method: row.method,
    currency: row.currency,
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    destination: row.destination,
    script: row.script,
    createdAtMs: row.created_at.getTime(),
    reimburses: row.reimburses,
    internalTo: row.internal_to,
    paymentRequest: row.payment_request,
    intentKey: row.intent_key,
    intent: row.intent,
    needsApproval: row.needs_approval,
    approval: row.approval_key === null || row.approval === null ? null : { keyId: row.approval_key, signature: row.approval },
  };
}

export type HoldFacts = {
  /** What the hold entry moved to the merchant's held account, or to what is payable to the customer; 0 without such an entry. */
  readonly held: bigint;
  /** An entry that releases the hold or pays it out exists. */
  readonly isHoldEnded: boolean;
};

/** Of `payouts p`: what its entries say of its hold. */
export const HOLD_COLUMNS = `coalesce((select -sum(l.amount)
                              from ledger.entry e join ledger.posting l on l.entry_id = e.id join ledger.account a on a.id = l.account_id
                             where e.key = 'po:' || p.id || ':hold'
                               and a.code = case when p.reimburses is null then 'merchant:' || p.merchant_id || ':held:' || p.currency
                                                 else 'refund_payable:' || p.reimburses || ':' || p.currency end),
                           0) as held,
                  exists (select from ledger.entry e
                           where e.key = any (array['po:' || p.id || ':release', 'po:' || p.id || ':final', 'po:' || p.id || ':rest',
                                                    'po:' || p.id || ':failed', 'po:' || p.id || ':return'])) as is_hold_ended`;

/** What came for the transaction that a reimbursement is of, and what else was ever requested to send back of it. */
export type ReimbursedFacts = {
  /** Booked and not lost, minor units of the reimbursement's currency; 0 for a payout. */
  readonly received: bigint;
  /** Its other reimbursements. */
  readonly others: readonly string[];
};

/** Of `payouts p`. */
export const REIMBURSED_COLUMNS = `case when p.reimburses is null then 0 else coalesce((select sum(l.amount)
                              from ledger.entry e join ledger.posting l on l.entry_id = e.id join ledger.account a on a.id = l.account_id
                             where e.transaction_id = p.reimburses and e.kind in ('deposit', 'deposit_lost')
                               and a.kind in ('asset_chain', 'asset_lightning') and a.currency = p.currency), 0) end as received,
                  array(select o.id from payouts o where o.reimburses = p.reimburses and o.id <> p.id) as others`;

export type ReimbursedColumns = { received: string; others: string[] };

/** What those columns say of a reimbursement. */
export function reimbursedFrom(row: ReimbursedColumns): ReimbursedFacts {
  return { received: BigInt(row.received), others: row.others };
}

export type HoldColumns = { held: string; is_hold_ended: boolean };

/** What the ledger says of a payout's hold, in minor units. */
export function holdFrom(row: HoldColumns): HoldFacts {
  return { held: BigInt(row.held), isHoldEnded: row.is_hold_ended };
}
