// Cookies that say who is signed in to pages (RFC 6265bis): unreadable for scripts, never sent with what another site begins, and over TLS bound to this
// host alone.
import type { FastifyRequest } from 'fastify';
import { isSecure } from '../client-address.ts';

/** A merchant's user, and the operator. */
export type CookieName = 'bursar' | 'bursar_operator';

/** Browsers take a name with this prefix only from the host itself, over TLS, for every path. */
const nameOf = (request: FastifyRequest, name: CookieName): string => (isSecure(request) ? `__Host-${name}` : name);

/** The token that the browser shows; null where it shows none. */
export function presentedSession(request: FastifyRequest, cookie: CookieName): string | null {
  const name = nameOf(request, cookie);
  for (const pair of (request.headers.cookie ?? '').split(';')) {
    const [key, value] = pair.trim().split('=', 2);
    if (key === name && value !== undefined && value !== '') return value;
  }
  return null;
}

/** For `Set-Cookie`. @param token null: the browser forgets it */
export function sessionCookie(request: FastifyRequest, cookie: CookieName, token: string | null): string {
  const attributes = `Path=/; HttpOnly; SameSite=Strict${isSecure(request) ? '; Secure' : ''}`;
  return `${nameOf(request, cookie)}=${token ?? ''}; ${attributes}${token === null ? '; Max-Age=0' : ''}`;
}
