// What an endpoint is: one row of the table that validation, routes, serialisers, rate limits and OpenAPI derive from.
import type { Scope } from '../core/credentials.ts';
import type { RefusalCode } from '../core/refusal.ts';
import type { Field, Fields } from './fields.ts';
import type { Shape } from './shapes.ts';

/** How many items a list answers. */
export const PAGE = { least: 1, most: 100, usual: 20 } as const;

/** Calls a minute; a bucket holds that many unless `burst` says otherwise. */
export type CallLimit = { readonly perMinute: number; readonly burst?: number };
/**
 * Limits that belong to no operation: calls without a sign-in, failed sign-ins of a username and address (in 15 minutes, without a burst), and the pages of
 * checkouts and of the portal that an address asks for.
 */
export const OTHER_LIMITS = ['anonymous', 'failed_sign_ins', 'checkout', 'portal'] as const;
/** Limits in the place of those of the table, by the operation's path without its slash, and those of {@link OTHER_LIMITS}. */
export type RateLimits = Readonly<Record<string, CallLimit>>;

export type Subject = 'sign-in' | 'transactions' | 'account' | 'payouts' | 'settings' | 'rates' | 'events';

export type Access =
  /** No token: sign-in itself. Its calls are counted per IP. */
  | { readonly kind: 'open' }
  /**
   * A token and these scopes. Where the body decides, `scopes` gets the body (unchecked); `inWords` is for the documents. `askNow`: the
   * database is asked about the token every time (for what moves money out).
   */
  | {
      readonly kind: 'token';
      readonly scopes: (body: Readonly<Record<string, unknown>>) => readonly Scope[];
      readonly inWords: string;
      readonly askNow: boolean;
    };

export type Endpoint = {
  readonly path: `/${string}`;
  /** Its subject, for the documents. */
  readonly subject: Subject;
  readonly summary: string;
  readonly about: string;
  readonly access: Access;
  readonly limit: CallLimit;
  /** How long an idempotency key of this operation is kept; null where keys are not accepted. */
  readonly keyKept: 'a day' | 'for ever' | null;
  /** The answer shows a secret: it is sealed where it is stored for replays. */
  readonly answersSecret?: true;
  /** A replay does this too: its effect concerns the caller, and is harmless when repeated. */
  readonly alsoOnReplay?: true;
  /** Without access_token and idempotency_key, which the access and keyKept columns add. */
  readonly fields: Fields;
  /** Optional fields that this body (unchecked) must have too. */
  readonly alsoRequired?: (body: Readonly<Record<string, unknown>>) => readonly string[];
  readonly reply: Shape<unknown>;
  /** Its own refusals; those of every operation, of the token, the fields and the key are added by `refusalsOf`. */
  readonly refusals: readonly RefusalCode[];
};

/** Any signed-in user with this scope. */
export function needs(scope: Scope): Access {
  const scopes = [scope];
  return { kind: 'token', scopes: () => scopes, inWords: `scope \`${scope}\``, askNow: scope === 'payouts' };
}
export const OPEN: Access = { kind: 'open' };

/** Refusals that every operation may answer with. */
const OF_ALL: readonly RefusalCode[] = [
  'invalid_json',
  'invalid_request',
  'https_required',
  'method_not_allowed',
  'payload_too_large',
  'unsupported_media_type',
  'rate_limited',
  'internal_error',
  'overloaded',
];
const OF_TOKENS: readonly RefusalCode[] = [
  'conflicting_credentials',
  'missing_token',
  'invalid_token',
  'token_expired',
  'account_suspended',
];

/** Every refusal an operation can answer with, each once. */
export function refusalsOf(endpoint: Endpoint): readonly RefusalCode[] {
  const codes = new Set<RefusalCode>(OF_ALL);
  if (endpoint.access.kind === 'token') {
    for (const code of OF_TOKENS) codes.add(code);
    if (endpoint.access.scopes({}).length > 0) codes.add('insufficient_permissions');
  }
  const fields: Field<unknown>[] = Object.values(endpoint.fields);
  if (fields.some((field) => field.required)) codes.add('missing_field');
  for (const field of fields) codes.add(field.refusal);
  if (endpoint.keyKept !== null) codes.add('idempotency_conflict').add('request_in_progress');
  for (const code of endpoint.refusals) codes.add(code);
  return [...codes];
}
