// Reading a merchant's events, and having one delivered again.
import { EVENT_KINDS, EVENT_TYPES, type EventKind, eventKey, typesOfKind } from '../../core/events.ts';
import { Refusal } from '../../core/refusal.ts';
import { deliverAgain } from '../../store/deliveries/deliveries.ts';
import { findEvent, isWhole, listEventRows } from '../../store/deliveries/events.ts';
import type { Context } from '../context.ts';
import { type EventBody, shownEvent } from './body.ts';

export type EventPage = {
  readonly merchantId: bigint;
  readonly limit: number;
  /** Identifier of an event. */
  readonly startingAfter: string | null;
  /** Identifier of an object, or a kind of objects. */
  readonly object: string | null;
  readonly type: string | null;
  readonly createdGteMs: number | null;
  readonly createdLtMs: number | null;
};

const isKind = (text: string): text is EventKind => (EVENT_KINDS as readonly string[]).includes(text);

/** A page of the merchant's events, newest first. @throws Refusal not_found for a `startingAfter` that is none of the merchant's events */
export async function listEvents(
  ctx: Context,
  page: EventPage,
): Promise<{ readonly data: readonly EventBody[]; readonly hasMore: boolean }> {
  const { merchantId, limit, object, type, createdGteMs, createdLtMs } = page;
  const startingAfter =
    page.startingAfter === null ? null : await idOf(ctx, merchantId, { id: page.startingAfter, param: 'starting_after' });
  const kind = object !== null && isKind(object) ? object : null;
  const types = (kind === null ? EVENT_TYPES : typesOfKind(kind)).filter((one) => type === null || one === type);
  const objectId = kind === null ? object : null;
  const found = await listEventRows(ctx.db, { merchantId, limit, startingAfter, objectId, types, createdGteMs, createdLtMs });
  return {
    data: found
      .slice(0, limit)
      .filter(isWhole)
      .map((event) => shownEvent(ctx, event)),
    hasMore: found.length > limit,
  };
}

/**
 * Makes an event, of any age, due at once for every endpoint that is enabled and wants its type; returns for how many. One that waits for it
 * already gets all its attempts again.
 * @throws Refusal not_found, for another merchant's event too
 */
export async function redeliverEvent(
  ctx: Context,
  { merchantId, eventId }: { readonly merchantId: bigint; readonly eventId: string },
): Promise<number> {
  const id = await idOf(ctx, merchantId, { id: eventId, param: 'event_id' });
  // in a transaction, because that is run again when it meets a worker that locks the same rows in another order
  return ctx.db.transaction((sql) => deliverAgain(sql, id));
}

async function idOf(
  ctx: Context,
  merchantId: bigint,
  { id, param }: { readonly id: string; readonly param: string },
): Promise<bigint> {
  const key = eventKey(id);
  const found = key === null ? null : await findEvent(ctx.db, merchantId, key);
  if (found === null) throw new Refusal('not_found', { message: 'There is no such event.', param });
  return found;
}
