// What is asked with GET and without a token: health and the documents. Rows for the documents; the routes are http/system-routes.ts.
import { z } from 'zod';
import { CURRENCY_CODES } from '../core/currency.ts';
import type { RefusalCode } from '../core/refusal.ts';

export type SystemPath = { readonly summary: string; readonly reply: z.ZodType; readonly refusals: readonly RefusalCode[] };

export const readiness = z.object({
  status: z.literal('ready'),
  problems: z
    .array(z.string())
    .meta({ description: 'What keeps a coin with a node from being sold, or payouts from going on; empty while all is well.' }),
  currencies: z.partialRecord(
    z.enum(CURRENCY_CODES),
    z.object({
      state: z.string().meta({ description: '`ready`, or what is wrong with the node.' }),
      reason: z.string().nullable(),
      height: z.int().nullable(),
      contested: z
        .string()
        .nullable()
        .meta({ description: 'Why the nodes of this chain do not tell the same history; null while they do.' }),
      node: z
        .string()
        .nullable()
        .meta({ description: 'Which of several nodes is read, as host:port; null where there is only one.' }),
      others: z.array(z.string()).meta({ description: 'What is wrong with the other nodes, a sentence for each.' }),
      checked_at: z.string().meta({ format: 'date-time' }),
    }),
  ),
  rates: z.object({
    prices: z.array(z.enum(CURRENCY_CODES)).meta({ description: 'Currencies that have a price now.' }),
    sources: z
      .array(
        z.object({
          source: z.string(),
          state: z
            .enum(['answers', 'silent', 'unreachable'])
            .meta({ description: '`silent`: it answers, and has no usable price of any currency.' }),
          reason: z.string().nullable().meta({ description: 'Why it cannot be reached.' }),
          since: z.string().meta({ format: 'date-time' }),
          checked_at: z.string().meta({ format: 'date-time' }),
        }),
      )
      .meta({ description: 'What each price source last said of itself.' }),
  }),
  breakers: z
    .array(
      z.object({
        name: z.string().meta({ description: 'What is stopped.' }),
        tripped_by: z.array(z.string()).meta({ description: 'The invariants that an audit found red.' }),
        tripped_at: z.string().meta({ format: 'date-time' }),
        seen_at: z.string().meta({ format: 'date-time', description: 'The last audit that was still red.' }),
      }),
    )
    .meta({ description: 'What a red audit has stopped until an operator lets it go on; empty while all is well.' }),
});

export const SYSTEM_PATHS = {
  '/healthz': {
    summary: 'Whether the process runs',
    reply: z.object({ status: z.literal('ok') }),
    refusals: ['method_not_allowed', 'internal_error'],
  },
  '/readyz': {
    summary: 'Whether the API may be called, and the condition of each node',
    reply: readiness,
    refusals: ['method_not_allowed', 'currency_unavailable', 'overloaded', 'internal_error'],
  },
  '/openapi.json': {
    summary: 'This document',
    reply: z.looseObject({ openapi: z.string() }),
    refusals: ['https_required', 'method_not_allowed', 'rate_limited', 'internal_error'],
  },
} as const satisfies Record<`/${string}`, SystemPath>;
