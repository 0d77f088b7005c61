// Headers of which a request has one at most. Node takes the first of two Authorization headers and writes two keys, or two cursors, into one
// text: neither is what the caller meant.
import type { IncomingMessage } from 'node:http';
import { Refusal } from '../core/refusal.ts';

/** As callers write them, for the refusal. */
const ONE_AT_MOST = ['Authorization', 'Idempotency-Key', 'Last-Event-ID'].map((name) => ({ name, key: name.toLowerCase() }));

/**
 * Null, or why a request is refused whatever it asks: it has one of these twice, or not exactly one Host, which HTTP/1.1 wants (RFC 9112 §3.2), or its
 * line names a version that Node reads as that and is another protocol.
 */
export function headerRefusal(request: IncomingMessage): Refusal | null {
  if (request.httpVersionMajor !== 1) return refused('The request must be HTTP/1.1 or HTTP/1.0.');
  const hosts = countOf(request, 'host');
  if (hosts !== 1 && !(hosts === 0 && request.httpVersion === '1.0'))
    return refused('The request must have exactly one Host header.');
  const twice = ONE_AT_MOST.find(({ key }) => request.headers[key] !== undefined && countOf(request, key) > 1);
  return twice === undefined ? null : refused(`The ${twice.name} header was sent more than once.`);
}

const refused = (message: string): Refusal => new Refusal('invalid_request', { message });

/** The value of a header of which there is one at most; undefined when it was not sent. */
export function singleHeader(
  request: IncomingMessage,
  key: 'authorization' | 'idempotency-key' | 'last-event-id',
): string | undefined {
  const value = request.headers[key];
  return value === undefined ? undefined : String(value);
}

function countOf({ rawHeaders }: IncomingMessage, wanted: string): number {
  let count = 0;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const sent = rawHeaders[at] as string;
    if (sent.length === wanted.length && sent.toLowerCase() === wanted) count++;
  }
  return count;
}
