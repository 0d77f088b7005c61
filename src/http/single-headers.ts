// Headers of which a request has one at most. Node takes the first of two Authorization headers and writes two keys into one text: neither is
// what the caller meant.
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../core/refusal.ts';

/**
 * The value of a header; undefined when it was not sent.
 * @param name as callers write it, for the refusal
 * @throws Refusal invalid_request when it was sent twice
 */
export function singleHeader(request: IncomingMessage, name: 'Authorization' | 'Idempotency-Key'): string | undefined {
  const value = request.headers[name.toLowerCase()];
  if (value === undefined) return undefined;
  if (countOf(request, name) > 1)
    throw new Refusal('invalid_request', { message: `The ${name} header was sent more than once.` });
  return String(value);
}

/** Null, or why a request is refused whatever it asks: HTTP/1.1 wants exactly one Host (RFC 9112 §3.2). */
export function hostRefusal(request: IncomingMessage): Refusal | null {
  const count = countOf(request, 'Host');
  if (count === 1 || (count === 0 && request.httpVersion === '1.0')) return null;
  return new Refusal('invalid_request', { message: 'The request must have exactly one Host header.' });
}

function countOf({ rawHeaders }: IncomingMessage, name: string): number {
  const wanted = name.toLowerCase();
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === wanted.length && sent.toLowerCase() === wanted) count++;
  }
  return count;
}
