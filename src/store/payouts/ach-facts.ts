// What must be true of a payout by ach before its entry may reach the bank: what its API has signed, what is held for it, and what was booked since.
import type { Sql } from '../postgres/connect.ts';
import { owesOf } from './hold-facts.ts';

export type AchFacts = {
  readonly id: string;
  readonly merchantId: bigint;
  readonly method: string;
  readonly currency: string;
  /** Cents. */
  readonly amount: bigint;
  readonly feeMax: bigint;
  /** As it is stored. */
  readonly destination: string;
  readonly status: string;
  readonly step: string;
  readonly intentKey: string;
  readonly intent: Uint8Array;
  readonly createdAtMs: number;
  readonly reimburses: string | null;
  /** Cents that its hold has taken. */
  readonly held: bigint;
  /** The hold was released or paid out. */
  readonly isHoldEnded: boolean;
  /** It was booked as handed over. */
  readonly isHandedOver: boolean;
  /** Its merchant owes something, in any currency. */
  readonly owes: boolean;
  readonly trace: string | null;
  /** Cents of its entry. */
  readonly cents: bigint | null;
};

type Row = {
  id: string;
  merchant_id: bigint;
  method: string;
  currency: string;
  amount: string;
  fee_max: string;
  destination: string;
  status: string;
  step: string;
  intent_key: string;
  intent: Buffer;
  created_at: Date;
  reimburses: string | null;
  held: string;
  is_hold_ended: boolean;
  is_handed_over: boolean;
  owes: boolean;
  trace: string | null;
  cents: string | null;
};

/** @param of payouts by their ids, or all that a bank file has entries for */
export async function readAchFacts(
  sql: Sql,
  of: { readonly payoutIds: readonly string[] } | { readonly file: string },
): Promise<readonly AchFacts[]> {
  const { rows } = await sql.query<Row>({
    name: 'ach_facts',
    text: `select p.id, p.merchant_id, p.method, p.currency, p.amount, p.fee_max, p.destination, p.status, p.step, p.intent_key, p.intent, p.created_at,
                  p.reimburses, e.trace, e.cents, ${owesOf('p.merchant_id')} as owes,
                  coalesce((select -sum(l.amount)
                              from ledger.entry n join ledger.posting l on l.entry_id = n.id join ledger.account a on a.id = l.account_id
                             where n.key = 'po:' || p.id || ':hold' and a.code = 'merchant:' || p.merchant_id || ':held:USD'), 0) as held,
                  exists (select from ledger.entry n
                           where n.key = any (array['po:' || p.id || ':release', 'po:' || p.id || ':final', 'po:' || p.id || ':failed',
                                                    'po:' || p.id || ':return'])) as is_hold_ended,
                  exists (select from ledger.entry n where n.key = 'po:' || p.id || ':sign:1') as is_handed_over
             from payouts p left join ach_entries e on e.payout_id = p.id
            where p.id = any ($1) or p.id in (select payout_id from ach_entries where file = $2)`,
    values: ['file' in of ? [] : of.payoutIds, 'file' in of ? of.file : null],
  });
  return rows.map((row) => ({
    id: row.id,
    merchantId: row.merchant_id,
    method: row.method,
    currency: row.currency,
    amount: BigInt(row.amount),
    feeMax: BigInt(row.fee_max),
    destination: row.destination,
    status: row.status,
    step: row.step,
    intentKey: row.intent_key,
    intent: row.intent,
    createdAtMs: row.created_at.getTime(),
    reimburses: row.reimburses,
    held: BigInt(row.held),
    isHoldEnded: row.is_hold_ended,
    isHandedOver: row.is_handed_over,
    owes: row.owes,
    trace: row.trace,
    cents: row.cents === null ? null : BigInt(row.cents),
  }));
}
