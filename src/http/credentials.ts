// The token that a call presents: `access_token` of the body or `Authorization: Bearer` (behaviour §1).
import type { Access } from '../contract/endpoint.ts';
import { Refusal } from '../core/refusal.ts';
import type { Caller } from '../flow/sign-in/sign-in.ts';
import type { JsonObject } from './read-body.ts';

const SCHEME = 'bearer';

/** The token of the Authorization header; null where there is no Bearer (another scheme is not ours). */
export function bearer(authorization: string | undefined): string | null {
  if (authorization === undefined) return null;
  if (!/^bearer\b/i.test(authorization)) return null;
  const token = authorization.slice(SCHEME.length);
  // anything else there is no token of ours; no pattern is run over white space that a caller may make long
  return token.startsWith(' ') ? token.trim() : '';
}

/**
 * The access token of a call.
 * Refused: missing_token, invalid_token (wrong type), conflicting_credentials (both places, different).
 */
export function presentedToken(body: JsonObject, authorization: string | undefined): string {
  const inBody = body.access_token;
  const inHeader = bearer(authorization);
  if (inBody === undefined || inBody === null) {
    if (inHeader === null) throw new Refusal('missing_token');
    return inHeader;
  }
  if (typeof inBody !== 'string') throw new Refusal('invalid_token');
  if (inHeader !== null && inHeader !== inBody) throw new Refusal('conflicting_credentials');
  return inBody;
}

/** Refuses a suspended account, then a user who lacks a scope that this call needs. */
export function checkScope(caller: Caller, access: Access & { kind: 'token' }, body: JsonObject): void {
  if (caller.suspended) throw new Refusal('account_suspended');
  for (const scope of access.scopes(body)) {
    if (!caller.scopes.has(scope)) {
      throw new Refusal('insufficient_permissions', { message: `This needs the scope ${scope}, which this user lacks.` });
    }
  }
}
