// A call of an operation that may carry an idempotency key: the handler runs once for a key, and its stored answer is given again.
import { Refusal } from '../core/refusal.ts';
import type { Context } from '../flow/context.ts';
import { type Answer, answerOnce, isAnswered } from '../flow/idempotency.ts';
import { bodyHash, presentedKey } from './idempotency-key.ts';
import type { Fields, OperationOf, Prepared, SignedInCall } from './operation.ts';
import type { JsonObject } from './read-body.ts';
import { errorBody } from './reply-error.ts';
import { singleHeader } from './single-headers.ts';

type KeyedCall = Omit<SignedInCall, 'ctx' | 'prepared'> & { readonly body: JsonObject; readonly fields: Fields };

/**
 * Asks and prepares outside what the operation needs, then runs its handler.
 * @param handle gets a context inside the database transaction when the call has a key, and returns the answer's text
 */
export async function answerKeyed(
  { endpoint, ask, prepare, after }: OperationOf<'token'>,
  { context, request, caller, body, fields }: KeyedCall,
  handle: (ctx: Context, prepared: Prepared | null) => Promise<string>,
): Promise<Answer> {
  let prepared: Prepared | null = null;
  const call = { ctx: context.ctx, context, request, caller, prepared };
  const refused = ask === undefined ? null : await refusalFrom(ask(call, fields));
  function work(ctx: Context): Promise<string> {
    if (refused !== null) throw refused;
    return handle(ctx, prepared);
  }
  const { keyKept } = endpoint;
  const key = keyKept === null ? null : presentedKey(body, singleHeader(request.raw, 'idempotency-key'));
  if (keyKept === null || key === null) {
    const text = await work(context.ctx);
    if (after !== undefined) await after(context.ctx);
    return { httpStatus: 200, text, replayed: false };
  }
  const of = { merchantId: caller.merchantId, operation: endpoint.path, key, bodyHash: bodyHash(body), kept: keyKept };
  async function prepareAndAnswer(): Promise<Answer> {
    if (prepare !== undefined && refused === null && !(await isAnswered(context.ctx, of)))
      prepared = await prepare(context.ctx, of, fields);
    const once = { ...of, ...(endpoint.answersSecret === true ? { isSecret: true as const } : {}) };
    return context.keyed(caller.merchantId, () => answerOnce(context.ctx, once, work, errorBody));
  }
  const name = `${of.merchantId} ${of.operation} ${of.key}`;
  const isOver = () => isAnswered(context.ctx, of);
  const answer =
    prepare === undefined ? await prepareAndAnswer() : await alone(context.preparing, { name, isOver }, prepareAndAnswer);
  if (answer.replayed && endpoint.alsoOnReplay === true) await work(context.ctx);
  if (after !== undefined) await after(context.ctx);
  return answer;
}

/** @throws Refusal request_in_progress while the same is under way and not over: a preparation comes before the key's lock in the database */
async function alone<T>(
  underWay: Set<string>,
  { name, isOver }: { readonly name: string; readonly isOver: () => Promise<boolean> },
  work: () => Promise<T>,
): Promise<T> {
  if (underWay.has(name)) {
    if (await isOver()) return work();
    throw new Refusal('request_in_progress');
  }
  underWay.add(name);
  try {
    return await work();
  } finally {
    underWay.delete(name);
  }
}

async function refusalFrom(asked: Promise<void>): Promise<Refusal | null> {
  try {
    await asked;
    return null;
  } catch (error) {
    if (error instanceof Refusal) return error;
    throw error;
  }
}
