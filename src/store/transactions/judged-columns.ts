// What the judge writes of a payment: one row for each column, with its field of the judge's, its type and how it is read and written. Reading
// (case-facts.ts), writing (verdicts.ts) and decisions of thousands of payments (payment-decisions.ts) derive from it.
import type { Payment } from '../../core/judge/case.ts';
import { formatRate, type Rate } from '../../core/rate.ts';
import { storedRate } from './transactions.ts';

type Codec<T> = { readonly type: string; readonly read: (stored: never) => T; readonly write: (value: T) => unknown };

const asItIs = <T>(type: string): Codec<T> => ({ type, read: (stored: T) => stored, write: (value) => value }) as Codec<T>;
const BOOLEAN = asItIs<boolean>('boolean');
const INTEGER = asItIs<number | null>('int');
const TEXT = asItIs<string | null>('text');
/** Most amounts of most payments are zero: one bigint for all of them. */
const MINOR: Codec<bigint> = {
  type: 'numeric',
  read: (text: string) => (text === '0' ? 0n : BigInt(text)),
  write: (value) => value,
};
const RATE: Codec<Rate | null> = {
  type: 'numeric',
  read: (text: string | null) => (text === null ? null : storedRate(text)),
  write: (rate) => (rate === null ? null : formatRate(rate)),
};
const TIME: Codec<number | null> = {
  type: 'timestamptz',
  read: (at: Date | null) => at?.getTime() ?? null,
  write: (atMs) => (atMs === null ? null : new Date(atMs)),
};

/** What the judge derives from a payment, except `classified`, which is kept as the time of that (`noticed_at`). */
const CODECS = {
  present: ['present', BOOLEAN],
  onTimeMinor: ['on_time_minor', MINOR],
  valueRate: ['value_rate', RATE],
  judgedBlockHash: ['judged_block_hash', TEXT],
  generation: ['generation', INTEGER as Codec<number>],
  credited: ['credited', MINOR],
  suspended: ['suspended', MINOR],
  fee: ['fee', MINOR],
  inAvailable: ['in_available', MINOR],
  inSuspense: ['in_suspense', MINOR],
  inRefund: ['in_refund', MINOR],
  sentBack: ['sent_back', MINOR],
  owed: ['owed', MINOR],
  owedFee: ['owed_fee', MINOR],
  wasLost: ['was_lost', BOOLEAN],
  partKey: ['part_key', TEXT],
  dueHeight: ['due_height', INTEGER],
  counted: ['counted', BOOLEAN],
  dueAtMs: ['due_at', TIME],
} satisfies { readonly [F in keyof Payment]?: readonly [column: string, codec: Codec<Payment[F]>] };
type JudgedField = keyof typeof CODECS;
type Column = { readonly field: JudgedField; readonly column: string } & Codec<unknown>;

export const JUDGED_COLUMNS: readonly Column[] = (Object.entries(CODECS) as [JudgedField, [string, Codec<unknown>]][]).map(
  ([field, [column, codec]]) => ({ field, column, ...codec }),
);
/** A row with the judged columns of a payment, as the driver returns them. */
export type JudgedRow = Record<string, unknown>;

/** The judge's fields of a row. */
export function judgedFields(row: JudgedRow): Pick<Payment, JudgedField> {
  const fields: Record<string, unknown> = {};
  for (const { field, column, read } of JUDGED_COLUMNS) fields[field] = read(row[column] as never);
  return fields as Pick<Payment, JudgedField>;
}

/**
 * Whether a verdict decided something of a payment: any of its fields is another one than before, except those of {@link isLookedAt}.
 * Written out (a test compares it with the columns), because it is asked of every payment of a verdict: a loop over the fields' names takes
 * 15 ms for 20,000, which is a third of the verdict, and this 0.2 ms.
 */
export function isDecided(a: Payment, b: Payment): boolean {
  return (
    a.classified !== b.classified ||
    a.present !== b.present ||
    a.onTimeMinor !== b.onTimeMinor ||
    a.valueRate !== b.valueRate ||
    a.judgedBlockHash !== b.judgedBlockHash ||
    a.generation !== b.generation ||
    a.credited !== b.credited ||
    a.suspended !== b.suspended ||
    a.fee !== b.fee ||
    a.inAvailable !== b.inAvailable ||
    a.inSuspense !== b.inSuspense ||
    a.inRefund !== b.inRefund ||
    a.sentBack !== b.sentBack ||
    a.owed !== b.owed ||
    a.owedFee !== b.owedFee ||
    a.wasLost !== b.wasLost ||
    a.partKey !== b.partKey
  );
}

/** Whether the next time to look, or whether the payment is shown as counted, is another one than before. */
export function isLookedAt(a: Payment, b: Payment): boolean {
  return a.counted !== b.counted || a.dueHeight !== b.dueHeight || a.dueAtMs !== b.dueAtMs;
}
