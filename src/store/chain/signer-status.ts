// What the database shows of the signer: whether one runs, which requests wait for it, and which indexes were passed over.
import type { CurrencyCode } from '../../core/currency.ts';
import type { Sql } from '../postgres/connect.ts';
import { SIGNER_LOCK, type SkippedCause } from './range-requests.ts';

export type SignerStatus = {
  /** Some process holds the signer's lock. */
  readonly runs: boolean;
  /** Currencies whose address requests the signer has left unanswered for too long. */
  readonly waiting: readonly CurrencyCode[];
  readonly waitingSinceMs: number | null;
};

/** A running signer answers within this time. */
const ANSWERS_WITHIN = '2 seconds';
const STILL_WANTED = '5 minutes';

/**
 * Whether a signer runs (it holds a lock of the database), and for which currencies ranges of addresses were requested longer than it needs
 * to answer, since when.
 */
export async function readSignerStatus(sql: Sql): Promise<SignerStatus> {
  const { rows } = await sql.query<{ runs: boolean; waiting: CurrencyCode[] | null; since: Date | null }>({
    name: 'read_signer_status',
    text: `
      select exists (
               select 1 from (select hashtextextended($1, 0) as key) k
                 join pg_locks l on l.locktype = 'advisory' and l.objsubid = 1 and l.mode = 'ExclusiveLock' and l.granted
                  and l.database = (select oid from pg_database where datname = current_database())
                  and l.classid::bigint = (k.key >> 32) & 4294967295 and l.objid::bigint = k.key & 4294967295) as runs,
             array_agg(distinct r.currency) filter (where r.currency is not null) as waiting, min(r.asked_at) as since
        from address_requests r
       where r.first_index is null and r.asked_at < now() - interval '${ANSWERS_WITHIN}' and r.renewed_at > now() - interval '${STILL_WANTED}'`,
    values: [SIGNER_LOCK],
  });
  const row = rows[0] as (typeof rows)[number];
  return { runs: row.runs, waiting: row.waiting ?? [], waitingSinceMs: row.since?.getTime() ?? null };
}

export type SkippedAddresses = {
  readonly currency: CurrencyCode;
  readonly xpub: string;
  readonly firstIndex: number;
  readonly endIndex: number;
  readonly cause: SkippedCause;
  readonly noticedAt: Date;
};

/**
 * Indexes that were passed over, the newest first.
 * @param days how far back to look; null = all
 */
export async function readSkipped(sql: Sql, days: number | null = null): Promise<readonly SkippedAddresses[]> {
  const { rows } = await sql.query<{
    currency: CurrencyCode;
    xpub: string;
    first_index: bigint;
    end_index: bigint;
    cause: SkippedCause;
    noticed_at: Date;
  }>({
    name: 'read_skipped',
    text: `select k.currency, k.xpub, s.first_index, s.end_index, s.cause, s.noticed_at
             from skipped_addresses s join account_xpubs k on k.id = s.account_xpub_id
            where $1::int is null or s.noticed_at > now() - make_interval(days => $1) order by s.id desc`,
    values: [days],
  });
  return rows.map((row) => ({
    currency: row.currency,
    xpub: row.xpub,
    firstIndex: Number(row.first_index),
    endIndex: Number(row.end_index),
    cause: row.cause,
    noticedAt: row.noticed_at,
  }));
}

/** One sentence for an operator, without a full stop. */
export function describeSkipped({ currency, firstIndex, endIndex, cause }: Omit<SkippedAddresses, 'xpub' | 'noticedAt'>): string {
  const range = `${currency}: address indexes ${firstIndex} to ${endIndex - 1} are passed over`;
  if (cause === 'database_behind') {
    return `${range}: they were given out, and this database does not know to whom (it was restored, or a failover lost its last writes); what is paid there belongs to transactions that are lost`;
  }
  const what = cause === 'journal_lost' ? "the signer's journal was lost or damaged" : "the signer's journal is an older copy";
  return `${range}: ${what}, and more may have been given out than this database knows; a wallet that follows this key must look as far ("bursar keys show-descriptors")`;
}
