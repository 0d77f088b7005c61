// The caller's address: the key under which calls before sign-in are counted, and whether the call came over TLS. Fastify's trustProxy, set
// in server.ts, decides which proxies may report another address.
import type { FastifyRequest } from 'fastify';

/** IPv4 as it is, IPv6 by its /64 (one customer's network), IPv4-mapped IPv6 as IPv4. A closed connection has no address any more. */
export function addressKey(ip: string | undefined): string {
  if (ip === undefined) return 'gone';
  if (!ip.includes(':')) return ip;
  const mapped = /^::ffff:(\d+\.\d+\.\d+\.\d+)$/i.exec(ip);
  if (mapped !== null) return mapped[1] as string;
  const [head = '', tail] = (ip.split('%')[0] as string).split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const after = tail === '' ? [] : tail.split(':');
    while (groups.length + after.length < 8) groups.push('0');
    groups.push(...after);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

/** Whether the call reached us, or a trusted proxy of ours, over TLS. */
export function isSecure(request: FastifyRequest): boolean {
  return request.protocol === 'https';
}
