// The events that merchants are told of (behaviour §8): their types, which follow from the tables of statuses, and their public identifiers.
import { PAYOUT_ANNOUNCEMENTS, PAYOUT_STATUSES } from './payouts/states.ts';
import { ANNOUNCEMENTS, TRANSACTION_STATUSES } from './transaction-states.ts';

/** What an event may be about. `mark` stands in the event's identifier for the prefix of the object's. */
const OBJECTS = [
  { kind: 'transaction', prefix: 'txn_', mark: 't', statuses: TRANSACTION_STATUSES, announcements: ANNOUNCEMENTS },
  { kind: 'payout', prefix: 'payout_', mark: 'p', statuses: PAYOUT_STATUSES, announcements: PAYOUT_ANNOUNCEMENTS },
] as const;

export type EventKind = (typeof OBJECTS)[number]['kind'];
export const EVENT_KINDS: readonly EventKind[] = OBJECTS.map(({ kind }) => kind);

/** The types of a kind: one for each status, and what is announced without a change of status. */
const typesOf = ({ kind, statuses, announcements }: (typeof OBJECTS)[number]): readonly string[] => [
  ...statuses.map((status) => `${kind}.${status}`),
  ...announcements,
];
/** Every type, `<kind>.<what>`. */
export const EVENT_TYPES: readonly string[] = OBJECTS.flatMap(typesOf);

/** The types of events of one kind of object, as `transaction.succeeded`. */
export function typesOfKind(kind: EventKind): readonly string[] {
  return EVENT_TYPES.filter((type) => kindOf(type) === kind);
}

/** The kind of object that an event of this type is about. Throws for what is no type of {@link EVENT_TYPES}. */
export function kindOf(type: string): EventKind {
  const found = OBJECTS.find(({ kind }) => type.startsWith(`${kind}.`));
  if (found === undefined) throw new Error(`${type} is no type of an event`);
  return found.kind;
}

/** What an event is known by: its object, and its number among the events of that object. */
export type EventKey = { readonly objectId: string; readonly sequence: number };

/** What a reader may ask for: a kind of objects, or one of them by its identifier. */
export const OBJECT_PATTERN = `^(${OBJECTS.flatMap(({ kind, prefix }) => [kind, `${prefix}[0-9A-Za-z]{22}`]).join('|')})$`;

const ISSUED = new RegExp(`^evt_([${OBJECTS.map(({ mark }) => mark).join('')}])([0-9A-Za-z]{22})([1-9][0-9]{0,8})$`);

/** The public identifier, the same for ever: it is made of the key. */
export function eventId({ objectId, sequence }: EventKey): string {
  const found = OBJECTS.find(({ prefix }) => objectId.startsWith(prefix));
  if (found === undefined) throw new Error(`${objectId} has no events`);
  return `evt_${found.mark}${objectId.slice(found.prefix.length)}${sequence}`;
}

/** The key of an identifier; null for one that was never given. */
export function eventKey(id: string): EventKey | null {
  const [, mark, object, sequence] = ISSUED.exec(id) ?? [];
  const found = OBJECTS.find((one) => one.mark === mark);
  return found === undefined ? null : { objectId: found.prefix + object, sequence: Number(sequence) };
}
