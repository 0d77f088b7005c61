// The operations that are called with GET and without a token: health and the documents.
import { CURRENCY_CODES } from '../core/currency.ts';
import type { RefusalCode } from '../core/refusal.ts';
import * as shape from './shapes.ts';

export type SystemPath = {
  readonly summary: string;
  readonly reply: shape.Shape<unknown>;
  readonly refusals: readonly RefusalCode[];
};

const time = (about: string) => shape.string(about, '2026-11-22T10:00:00.000Z', { format: 'date-time' });

const chain = shape.named(
  'ChainCondition',
  shape.object({
    state: shape.string('`ready`, or what is wrong with the node.', 'ready'),
    reason: shape.nullable(shape.string('Why, in words.', 'the node does not answer')),
    height: shape.nullable(shape.whole('Height of its best block.', 874_000)),
    contested: shape.nullable(
      shape.string('Why the nodes of this chain do not agree; null while they do.', 'different blocks at 874000'),
    ),
    node: shape.nullable(
      shape.string('Which of several nodes is read, as host:port; null where there is only one.', '10.0.0.5:8332'),
    ),
    others: shape.list(
      'What is wrong with the other nodes, a sentence for each.',
      shape.string('A sentence.', '10.0.0.6:8332 is syncing'),
    ),
    checked_at: time('When it was asked.'),
  }),
);

const rateSource = shape.object({
  source: shape.string('Name of an exchange.', 'kraken'),
  state: shape.word('`silent`: it answers without a usable price of any currency.', ['answers', 'silent', 'unreachable']),
  reason: shape.nullable(shape.string('Why it cannot be reached.', 'timeout')),
  since: time('Since when it is in this state.'),
  checked_at: time('When it was asked.'),
});

export const readiness = shape.named(
  'Readiness',
  shape.object({
    status: shape.constant('ready'),
    problems: shape.list(
      'What makes a currency with a node unavailable, stops payouts or keeps events from merchants; empty while all is well.',
      shape.string('A sentence.', `${CURRENCY_CODES[0]}: the node is syncing`),
    ),
    currencies: shape.byName(CURRENCY_CODES, chain),
    rates: shape.object({
      prices: shape.list('Currencies that have a price now.', shape.word('Its code.', CURRENCY_CODES)),
      sources: shape.list('The last state of each price source.', rateSource),
    }),
    breakers: shape.list(
      'What a red audit has stopped until an operator lets it continue; empty while all is well.',
      shape.object({
        name: shape.string('What is stopped.', 'payouts'),
        tripped_by: shape.list('The invariants that an audit found red.', shape.string('Its id.', 'BOOK-1')),
        tripped_at: time('When it was found.'),
        seen_at: time('The last audit that was still red.'),
      }),
    ),
  }),
);

export const SYSTEM_PATHS = {
  '/healthz': {
    summary: 'Whether the process runs',
    reply: shape.object({ status: shape.constant('ok') }),
    refusals: ['method_not_allowed', 'internal_error'],
  },
  '/readyz': {
    summary: 'Whether the API may be called, and the condition of each node',
    reply: readiness,
    refusals: ['method_not_allowed', 'currency_unavailable', 'overloaded', 'internal_error'],
  },
  '/openapi.json': {
    summary: 'This document',
    reply: shape.object({ openapi: shape.string('Version of OpenAPI.', '3.1.0') }),
    refusals: ['https_required', 'method_not_allowed', 'rate_limited', 'internal_error'],
  },
} as const satisfies Record<`/${string}`, SystemPath>;
