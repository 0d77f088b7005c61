// `bursar events list|show|resend`: a merchant's events, over the public API.
import { randomUUID } from 'node:crypto';
import type { Command } from 'commander';
import { eventKey, OBJECT_PATTERN } from '../../../core/events.ts';
import { CommandFailed, calledWrongly, group, leaf, print, table } from '../output.ts';
import { withProfile } from './login.ts';
import { openSession, type Session } from './session.ts';

export type ApiEvent = {
  readonly id: string;
  readonly type: string;
  readonly created_at: string;
  readonly sequence: number;
  readonly data: { readonly object: { readonly transaction_id?: string; readonly id?: string } };
};
export type EventPage = { readonly data: readonly ApiEvent[]; readonly has_more: boolean };
type Options = { readonly profile: string; readonly json?: boolean };
type ListOptions = Options & {
  readonly limit: string;
  readonly object?: string;
  readonly type?: string;
  readonly startingAfter?: string;
};
const PAGE = 100;

/** The identifier of what an event is about. */
export const objectOf = ({ data }: ApiEvent): string => data.object.transaction_id ?? data.object.id ?? '';

/** As the API takes it; told before anything is asked. */
export function objectIn(text: string): string {
  if (!new RegExp(OBJECT_PATTERN).test(text))
    throw calledWrongly(`--object: ${text} is no id of a transaction (txn_…) or payout (payout_…), nor transaction or payout`);
  return text;
}

/** Adds `events list`, `events show` and `events resend`, over the public API with the tokens of `login`. */
export function addEventCommands(bursar: Command): void {
  const events = group(bursar, 'events', "A merchant's events.");
  withProfile(leaf(events, 'list', 'Lists events, newest first.'))
    .option('--limit <n>', '1 to 100', '20')
    .option('--object <id>', 'only of this transaction or payout, or: transaction, payout')
    .option('--type <name>', 'only this type')
    .option('--starting-after <event_id>', 'the last event of the page before')
    .action(list);
  withProfile(leaf(events, 'show <event_id>', 'Shows an event as webhooks tell it.')).action(show);
  withProfile(leaf(events, 'resend <event_id>', 'Delivers an event to the webhooks again.')).action(resend);
}

async function list({ profile, json, limit, object, type, startingAfter }: ListOptions): Promise<void> {
  if (!/^([1-9]\d?|100)$/.test(limit)) throw calledWrongly(`--limit: ${limit} is not a number from 1 to 100`);
  const asked = {
    limit: Number(limit),
    object: object === undefined ? undefined : objectIn(object),
    type,
    starting_after: startingAfter,
  };
  const { data, has_more } = await openSession(profile).call<EventPage>('/list_events', asked);
  const rows = data.map((event) => [event.created_at, event.type, objectOf(event), event.id]);
  const more = has_more ? [`more: --starting-after ${data.at(-1)?.id}`] : [];
  const lines = data.length === 0 ? ['There are no such events.'] : table(['at', 'type', 'object', 'event'], rows);
  print(json, { data, has_more }, [...lines, ...more]);
}

async function show(eventId: string, { profile, json }: Options): Promise<void> {
  const event = await findEvent(openSession(profile), eventId);
  print(json, event, [JSON.stringify(event, null, 2)]);
}

async function resend(eventId: string, { profile, json }: Options): Promise<void> {
  knownForm(eventId);
  const key = { 'idempotency-key': randomUUID() };
  const { webhooks } = await openSession(profile).call<{ webhooks: number }>('/redeliver_event', { event_id: eventId }, key);
  const to = webhooks === 1 ? '1 webhook' : `${webhooks} webhooks`;
  print(json, { event_id: eventId, webhooks }, [`${eventId} is delivered again to ${to}.`]);
}

function knownForm(eventId: string): { readonly objectId: string } {
  const key = eventKey(eventId);
  if (key === null) throw calledWrongly(`event_id: ${eventId} is no identifier of an event; they begin with evt_`);
  return key;
}

/** One event, found among those of its object. */
async function findEvent(session: Session, eventId: string): Promise<ApiEvent> {
  const { objectId } = knownForm(eventId);
  for (let after: string | undefined; ; ) {
    const page: EventPage = await session.call<EventPage>('/list_events', {
      object: objectId,
      limit: PAGE,
      starting_after: after,
    });
    const found = page.data.find(({ id }) => id === eventId);
    if (found !== undefined) return found;
    if (!page.has_more) throw new CommandFailed(`there is no event ${eventId}`, 'not_found');
    after = page.data.at(-1)?.id;
  }
}
