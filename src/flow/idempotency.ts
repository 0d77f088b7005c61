// Idempotency: the effect of a write and the row with its answer are one database transaction, so that a crash leaves both or neither.
import { Refusal, type RefusalCode } from '../core/refusal.ts';
import { openText, sealDestination, sealText } from '../core/sealed-text.ts';
import type { Sql } from '../store/postgres/connect.ts';
import {
  claimKey,
  findKey,
  isClaim,
  type KeyOf,
  type StoredAnswer,
  saveAnswer,
  tryLockKey,
} from '../store/transactions/idempotency.ts';
import { type Context, within } from './context.ts';

export type IdempotentCall = KeyOf & {
  /** sha256 of the request's body as it is compared. */
  readonly bodyHash: Buffer;
  readonly kept: 'a day' | 'for ever';
  /** The answer shows a secret: it is stored sealed. */
  readonly isSecret?: true;
};
/** What was answered, byte for byte. */
export type Answer = { readonly httpStatus: number; readonly text: string; readonly replayed: boolean };

/** Whether a call with this key has its answer: then nothing more is done for it. */
export async function isAnswered(ctx: Context, key: IdempotentCall): Promise<boolean> {
  const stored = await findKey(ctx.db, key, ctx.ports.clock.now());
  return stored !== null && !isClaim(stored);
}

/**
 * Before something is done outside for a call that cannot be undone: no other body with its key is, by no process.
 * @throws Refusal request_in_progress while another body may still be answered
 */
export async function claimForBody(ctx: Context, key: Pick<IdempotentCall, keyof KeyOf | 'bodyHash'>): Promise<void> {
  if (!(await claimKey(ctx.db, key, ctx.ports.clock.now()))) throw new Refusal('request_in_progress');
}

const DAY_MS = 86_400_000;
/** Refusals about a state: they are stored as answers unless it passes by itself; after any other refusal the same key may be tried again. */
const REMEMBERED: ReadonlySet<RefusalCode> = new Set<RefusalCode>([
  'transaction_not_cancellable',
  'payout_not_cancellable',
  'not_resolvable',
  'invoice_already_used',
  'too_many_webhooks',
]);

/** Whether a key that was refused so is refused so again, whatever has become of the state; other refusals leave it as it was. */
export const isRemembered = ({ code, passes }: Refusal): boolean => !passes && REMEMBERED.has(code);

/**
 * Runs `work` unless this key was answered before. Refused: request_in_progress (the first request is still running), idempotency_conflict
 * (another body), and whatever `work` refuses.
 * @param work gets a context inside the transaction and returns the text of a 2xx answer
 * @param refusalText the answer's text for a refusal about a state, which is stored too
 * @returns the answer, new or stored
 */
export async function answerOnce(
  ctx: Context,
  key: IdempotentCall,
  work: (ctx: Context) => Promise<string>,
  refusalText: (refusal: Refusal) => string,
): Promise<Answer> {
  const about = `answer ${key.merchantId} ${key.operation}`;
  const sealing = key.isSecret === true ? ctx.ports.webhookSealing : ctx.ports.sealing;
  let afterwards: (() => void)[] = [];
  const answered = ctx.db.transaction(async (sql): Promise<Answer> => {
    afterwards = []; // a transaction that failed may be run again
    const isAlone = await tryLockKey(sql, key);
    const nowMs = ctx.ports.clock.now();
    // whoever has the lock may only be reading it too
    const stored = await findKey(sql, key, nowMs);
    if (stored !== null && !isClaim(stored)) {
      if (!stored.bodyHash.equals(key.bodyHash)) throw new Refusal('idempotency_conflict', { param: 'idempotency_key' });
      return { httpStatus: stored.httpStatus, text: openText(sealing, stored.answer, about), replayed: true };
    }
    // something that cannot be undone may have been done outside for another body, which is answered then
    const isClaimed = stored !== null && !stored.bodyHash.equals(key.bodyHash);
    if (!isAlone || isClaimed) throw new Refusal('request_in_progress');
    const inside = within(ctx, sql, (later) => afterwards.push(later));
    const fresh = await perform(inside, sql, work, refusalText);
    const kept = key.isSecret === true ? sealText(sealing, fresh.answer, about) : sealDestination(sealing, fresh.answer, about);
    const answer: StoredAnswer = { bodyHash: key.bodyHash, httpStatus: fresh.httpStatus, answer: kept };
    await saveAnswer(sql, key, answer, nowMs, key.kept === 'a day' ? nowMs + DAY_MS : null);
    return { httpStatus: fresh.httpStatus, text: fresh.answer, replayed: false };
  });
  try {
    return await answered;
  } finally {
    // also when the commit's answer was lost: it may have happened
    for (const later of afterwards) later();
  }
}

/** Runs the effect behind a savepoint: a refusal that is stored leaves nothing of it. */
async function perform(
  ctx: Context,
  sql: Sql,
  work: (ctx: Context) => Promise<string>,
  refusalText: (refusal: Refusal) => string,
): Promise<{ httpStatus: number; answer: string }> {
  await sql.query({ text: 'savepoint effect' });
  try {
    return { httpStatus: 200, answer: await work(ctx) };
  } catch (error) {
    if (!(error instanceof Refusal) || !isRemembered(error)) throw error;
    await sql.query({ text: 'rollback to savepoint effect' });
    return { httpStatus: error.httpStatus, answer: refusalText(error) };
  }
}
