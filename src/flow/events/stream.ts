// A merchant's events one after the other, each as webhooks tell it: where a stream begins, and what it tells next. Its order is that of the
// events' numbers, in which they were written.
import { eventId, eventKey } from '../../core/events.ts';
import { Refusal } from '../../core/refusal.ts';
import { eventsBetween, lastEventOf } from '../../store/deliveries/event-tail.ts';
import { type FoundEvent, findEvent, isWhole, type StoredEvent } from '../../store/deliveries/events.ts';
import type { Context } from '../context.ts';
import { shownEvent } from './body.ts';

export type WrittenEvent = FoundEvent;
export type TailListener = {
  /** These events, and no others of the merchants that are followed, have the numbers since the last call up to `upTo`. */
  told(upTo: bigint, events: readonly FoundEvent[]): void;
  /** The database knows less than it did: whoever follows must begin again. */
  restarted(): void;
};

/** Follows what is written, in the order of its numbers and without a gap: see `hold_event_numbers` in the database. */
export type EventTail = {
  /** There is one listener. */
  listen(listener: TailListener): void;
  /** Up to here the listener was told everything of those whom it follows; null while nobody is followed. */
  settled(): bigint | null;
  /**
   * Follows a merchant's events, until as many `leave`: resolves to a number up to which every event is committed or never will be. Refused:
   * overloaded, when what was being written does not end in time.
   */
  join(merchantId: bigint): Promise<bigint>;
  leave(merchantId: bigint): void;
};

/** The cursor of a merchant who has no event yet. */
export const BEFORE_ALL = '0';
/** How many events are read at a time. */
const PAGE = 100;

export type StreamFilter = {
  readonly merchantId: bigint;
  /** Null = of every type. */
  readonly types: ReadonlySet<string> | null;
  /** An identifier, or a kind of objects; null = of every object. */
  readonly object: string | null;
};

export type ToldEvent = { readonly id: bigint; readonly cursor: string; readonly type: string; readonly json: string };

/** Whether a stream tells this event. */
export function isWanted({ types, object }: StreamFilter, event: FoundEvent): event is StoredEvent {
  if (!isWhole(event)) return false;
  if (types !== null && !types.has(event.type)) return false;
  return object === null || object === event.objectId || object === event.object.kind;
}

/** An event as a stream tells it. */
export function toldEvent(ctx: Pick<Context, 'ports'>, event: StoredEvent): ToldEvent {
  return { id: event.id, cursor: eventId(event), type: event.type, json: JSON.stringify(shownEvent(ctx, event)) };
}

/** The cursor after an event. */
export const cursorAfter = (event: FoundEvent): string => eventId(event);

/**
 * The number that a cursor stands for: an event's identifier, or `0` for before the first.
 * @throws Refusal not_found where the merchant has no such event
 */
export async function positionOf(ctx: Context, merchantId: bigint, cursor: string): Promise<bigint> {
  if (cursor === BEFORE_ALL) return 0n;
  const key = eventKey(cursor);
  const found = key === null ? null : await findEvent(ctx.db, merchantId, key);
  if (found === null) throw new Refusal('not_found', { message: 'There is no such event.', param: 'starting_after' });
  return found;
}

/** The cursor of a stream that begins at this number. */
export async function cursorAt(ctx: Context, merchantId: bigint, position: bigint): Promise<string> {
  const last = await lastEventOf(ctx.db, merchantId, position);
  return last === null ? BEFORE_ALL : eventId(last);
}

/** What comes next for a stream that is behind, how far it is then, and the last event that was looked at, wanted or not. */
export async function nextEvents(
  ctx: Context,
  filter: StreamFilter,
  { after, to }: { readonly after: bigint; readonly to: bigint },
): Promise<{ readonly events: readonly ToldEvent[]; readonly position: bigint; readonly last: FoundEvent | null }> {
  const found = await eventsBetween(ctx.db, { merchantId: filter.merchantId, after, to, limit: PAGE });
  const position = found.length < PAGE ? to : (found.at(-1)?.id ?? to);
  const events = found.filter((event) => isWanted(filter, event)).map((event) => toldEvent(ctx, event));
  return { events, position, last: found.at(-1) ?? null };
}
