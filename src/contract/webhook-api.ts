// The part of the merchant's API about events and where they are delivered: rows of the table of endpoints.
import { EVENT_TYPES, OBJECT_PATTERN } from '../core/events.ts';
import { MOST_WEBHOOKS } from '../core/webhooks.ts';
import { type Endpoint, needs, PAGE } from './endpoint.ts';
import * as field from './fields.ts';
import { done } from './replies.ts';
import * as reply from './webhook-replies.ts';

const ORDINARY = { perMinute: 120 };
const webhookId = field.reference('Identifier of the webhook.', 'wh_');
const limit = field.optional(field.integer(`How many items; ${PAGE.usual} when it is left out.`, PAGE.least, PAGE.most));
const OBJECT = new RegExp(OBJECT_PATTERN);
/** Nothing is ever told of another text: whoever mistyped one would wait for it. */
const object: field.Field<string, false> = field.optional({
  required: true,
  about: 'Only of this transaction or payout (its identifier), or `transaction` or `payout` for all of a kind.',
  refusal: 'invalid_request',
  schema: { type: 'string', pattern: OBJECT_PATTERN, examples: ['txn_0351dYxk0d1Jt8vTgkN1AM'] },
  read(value, name) {
    if (typeof value === 'string' && OBJECT.test(value)) return value;
    throw field.wrong('invalid_request', name, 'an identifier (txn_… or payout_…), transaction or payout');
  },
});
const url = field.text(
  'Where events are sent: outside the sandbox https to a host on the public internet, on port 443 or 8443, without user name and password.',
  { max: 2048, min: 1, example: 'https://shop.example.com/hooks/bursar' },
);

/** Its answer is `text/event-stream`, and each message of it is as `reply` says. */
export const STREAM_API = {
  streamEvents: {
    path: '/stream_events',
    subject: 'events',
    summary: 'Stream events',
    about:
      'Every event from now on, as server-sent events, as soon as it is written: `event` is its type, `data` the event as `/list_events` has it, `id` its cursor. A client that lost its connection sends the last `id` it saw as `Last-Event-ID` (or `starting_after`) and misses nothing. `event: position` (its data is `{}`) is no event: its `id` alone says how far the stream is. `event: end` says why the server ends a stream (`token_expired` at the latest with the access token): the client opens another one.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {
      events: field.optional(field.choices('Only these types of events; every one when it is left out.', EVENT_TYPES, 1)),
      object,
      starting_after: field.optional(
        field.text('The last `id` seen; `0` = from the first event on. The header `Last-Event-ID` comes before it.', {
          max: 64,
          example: 'evt_t0351dYxk0d1Jt8vTgkN1AM2',
        }),
      ),
    },
    reply: reply.event,
    refusals: ['not_found'],
  },
} as const satisfies Record<string, Endpoint>;

export const WEBHOOK_API = {
  listEvents: {
    path: '/list_events',
    subject: 'events',
    summary: 'List events',
    about: 'Every change of every transaction and payout, newest first, as it is delivered to webhooks.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: {
      limit,
      starting_after: field.optional(field.reference('The last id of the page before.', 'evt_')),
      object,
      type: field.optional(field.choice('Only this type.', EVENT_TYPES)),
      created_gte: field.optional(field.moment('Created at or after.')),
      created_lt: field.optional(field.moment('Created before.')),
    },
    reply: reply.eventList,
    refusals: ['not_found'],
  },
  createWebhook: {
    path: '/create_webhook',
    subject: 'events',
    summary: 'Create a webhook',
    about: `Events from now on are sent to this URL, signed with the secret of the answer, which is shown this once. A merchant has at most ${MOST_WEBHOOKS}.`,
    access: needs('payments'),
    limit: ORDINARY,
    keyKept: 'a day',
    answersSecret: true,
    fields: {
      url,
      events: field.optional(field.choices('Only these types of events; every one when it is left out.', EVENT_TYPES, 1)),
    },
    reply: reply.webhookSecret,
    refusals: ['too_many_webhooks'],
  },
  listWebhooks: {
    path: '/list_webhooks',
    subject: 'events',
    summary: 'List webhooks',
    about: 'All of the merchant, newest first, without their secrets.',
    access: needs('read'),
    limit: ORDINARY,
    keyKept: null,
    fields: { limit, starting_after: field.optional(field.reference('The last id of the page before.', 'wh_')) },
    reply: reply.webhookList,
    refusals: ['not_found'],
  },
  deleteWebhook: {
    path: '/delete_webhook',
    subject: 'events',
    summary: 'Delete a webhook',
    about: 'Nothing is sent to it any more, also not what waits.',
    access: needs('payments'),
    limit: ORDINARY,
    keyKept: 'a day',
    fields: { webhook_id: webhookId },
    reply: done,
    refusals: ['not_found'],
  },
  rotateWebhookSecret: {
    path: '/rotate_webhook_secret',
    subject: 'events',
    summary: "Replace a webhook's secret",
    about: 'The secret of the answer signs from now on, and is shown this once; the one before signs along for 24 hours.',
    access: needs('payments'),
    limit: ORDINARY,
    keyKept: 'a day',
    answersSecret: true,
    fields: { webhook_id: webhookId },
    reply: reply.webhookSecret,
    refusals: ['not_found'],
  },
  redeliverEvent: {
    path: '/redeliver_event',
    subject: 'events',
    summary: 'Deliver an event again',
    about:
      'At once, to every enabled webhook that wants its type, with all the attempts of a new event. An event of any age can be.',
    access: needs('payments'),
    limit: ORDINARY,
    keyKept: 'a day',
    fields: { event_id: field.reference('Identifier of the event.', 'evt_') },
    reply: reply.redelivered,
    refusals: ['not_found'],
  },
} as const satisfies Record<string, Endpoint>;
