// Every way in which the service refuses: code → HTTP status and the usual sentence. Any layer throws an expected refusal as a Refusal;
// http turns it into {error, message, param?}. A bug is an assertion and answers 500 internal_error.

import { MOST_WEBHOOKS } from './webhooks.ts';

export const REFUSALS = {
  invalid_json: [400, 'The body must be one JSON object in UTF-8, at most 5 levels deep.'],
  invalid_request: [400, 'The request is not valid.'],
  missing_field: [400, 'A required field is missing.'],
  invalid_amount: [400, 'The amount must be a decimal string.'],
  invalid_email: [400, 'The email must be one address of at most 254 characters.'],
  unsupported_currency: [400, 'This currency code is not known.'],
  invalid_method: [400, 'The method must be one of lightning, bitcoin, ach, usdt.'],
  invalid_destination: [400, 'The destination does not fit the method.'],
  conflicting_credentials: [400, 'The access token in the body and the one in the Authorization header differ.'],
  invalid_credentials: [401, 'The username or password is incorrect.'],
  missing_token: [401, 'An access_token is required.'],
  invalid_token: [401, 'The token is not valid.'],
  token_expired: [401, 'The access token has expired; get a new pair from /auth_refresh.'],
  refresh_token_expired: [401, 'The refresh token has expired; sign in again.'],
  refresh_token_reused: [401, 'This refresh token was used before; the sign-in has been revoked.'],
  insufficient_permissions: [403, 'This user lacks the scope that the operation needs.'],
  account_suspended: [403, 'This account is suspended.'],
  two_factor_required: [403, 'A second factor is required.'],
  destination_not_allowed: [403, 'This destination is not on the allow-list.'],
  https_required: [403, 'This server answers over HTTPS only.'],
  not_found: [404, 'There is nothing at this path.'],
  transaction_not_found: [404, 'There is no such transaction.'],
  payout_not_found: [404, 'There is no such payout.'],
  method_not_allowed: [405, 'This path takes another method.'],
  payload_too_large: [413, 'The body may have at most 65536 bytes.'],
  unsupported_media_type: [415, 'The body must be sent as application/json.'],
  transaction_not_cancellable: [409, 'The transaction cannot be cancelled any more.'],
  payout_not_cancellable: [409, 'The payout cannot be cancelled any more.'],
  not_resolvable: [409, 'The transaction cannot be resolved this way now.'],
  invoice_already_used: [409, 'This invoice was used before.'],
  too_many_webhooks: [409, `A merchant has at most ${MOST_WEBHOOKS} webhooks; delete one first.`],
  idempotency_conflict: [409, 'This idempotency key was used with another body.'],
  request_in_progress: [409, 'The first request with this idempotency key is still running.'],
  amount_below_minimum: [422, 'The amount is below the minimum.'],
  amount_above_maximum: [422, 'The amount is above the maximum.'],
  payout_below_minimum: [422, 'The amount is below the minimum of this payout method.'],
  insufficient_balance: [422, 'The available balance does not cover this.'],
  invoice_expired: [422, 'The invoice has expired.'],
  invoice_amount_mismatch: [422, 'The invoice is for another amount.'],
  rate_limited: [429, 'Too many requests; try again later.'],
  internal_error: [500, 'Something went wrong on our side.'],
  rate_unavailable: [503, 'No trustworthy exchange rate is available right now.'],
  currency_unavailable: [503, 'This currency is not available right now.'],
  lightning_unavailable: [503, 'Lightning is not available right now.'],
  overloaded: [503, 'The service is overloaded; try again.'],
} as const satisfies Record<string, readonly [number, string]>;

export type RefusalCode = keyof typeof REFUSALS;

export type RefusalDetails = {
  /** The sentence for this case; without it, the table's own. Never carries internals. */
  readonly message?: string;
  /** The field at fault. */
  readonly param?: string;
  /** Seconds for Retry-After (429 and 503). */
  readonly retryAfterSeconds?: number;
  /** It ends by itself within minutes: the answer to a key is not stored. */
  readonly passes?: true;
  /** The limit that refused, where it is not the operation's own: this many calls in this many seconds. */
  readonly limit?: RefusalLimit;
};
export type RefusalLimit = { readonly name: string; readonly calls: number; readonly seconds: number };

/** An expected refusal. */
export class Refusal extends Error {
  readonly code: RefusalCode;
  readonly httpStatus: number;
  readonly param: string | null;
  readonly retryAfterSeconds: number | null;
  readonly limit: RefusalLimit | null;
  readonly passes: boolean;
  constructor(code: RefusalCode, details: RefusalDetails = {}) {
    super(details.message ?? REFUSALS[code][1]);
    this.name = 'Refusal';
    this.code = code;
    this.httpStatus = REFUSALS[code][0];
    this.param = details.param ?? null;
    this.limit = details.limit ?? null;
    this.passes = details.passes ?? false;
    this.retryAfterSeconds = details.retryAfterSeconds ?? (this.httpStatus === 503 ? 5 : null);
  }
}
