// What must be true of a payout by ach before its entry may reach the bank: what its API has signed, what is held for it, and what was booked since.
import type { SignedPayout } from '../../core/payouts/intent.ts';
import { owesOf } from '../payouts/request-facts.ts';
import {
  HOLD_COLUMNS,
  type HoldColumns,
  type HoldFacts,
  holdFrom,
  SIGNED_COLUMNS,
  type SignedColumns,
  signedFrom,
} from '../payouts/signed-rows.ts';
import type { Sql } from '../postgres/connect.ts';

/** Amounts in cents. */
export type AchFacts = SignedPayout &
  HoldFacts & {
    readonly status: string;
    readonly step: string;
    /** It was booked as handed over. */
    readonly isHandedOver: boolean;
    /** Its merchant owes something, in any currency. */
    readonly owes: boolean;
    readonly trace: string | null;
    /** Cents of its entry. */
    readonly cents: bigint | null;
  };

type Row = SignedColumns &
  HoldColumns & {
    status: string;
    step: string;
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
    text: `select ${SIGNED_COLUMNS}, p.status, p.step, e.trace, e.cents, ${owesOf('p.merchant_id')} as owes, ${HOLD_COLUMNS},
                  exists (select from ledger.entry n where n.key = 'po:' || p.id || ':sign:1') as is_handed_over
             from payouts p left join ach_entries e on e.payout_id = p.id
            where p.id = any ($1) or p.id in (select payout_id from ach_entries where file = $2)`,
    values: ['file' in of ? [] : of.payoutIds, 'file' in of ? of.file : null],
  });
  return rows.map((row) => ({
    ...signedFrom(row),
    ...holdFrom(row),
    status: row.status,
    step: row.step,
    isHandedOver: row.is_handed_over,
    owes: row.owes,
    trace: row.trace,
    cents: row.cents === null ? null : BigInt(row.cents),
  }));
}
