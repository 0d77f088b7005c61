// The caller's address: the key under which calls before sign-in are counted, and whether the call came over TLS. Fastify's trustProxy, set
// in server.ts, decides which proxies may report another address.
import { isIP } from 'node:net';
import type { FastifyRequest } from 'fastify';

/**
 * IPv4 as it is, IPv6 by its /64 (one customer's network), IPv4-mapped IPv6 as IPv4; the port that some proxies add counts for nothing, and
 * whatever is no address is one key. A closed connection has no address any more.
 */
export function addressKey(ip: string | undefined): string {
  if (ip === undefined) return 'gone';
  const address = withoutPort(ip);
  const family = isIP(address);
  if (family === 4) return address;
  if (family === 0) return 'no address';
  const groups = groupsOf(address.split('%')[0] as string);
  if (groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff) {
    return [groups[6], groups[7]].flatMap((group = 0) => [group >> 8, group & 0xff]).join('.');
  }
  return `${groups
    .slice(0, 4)
    .map((group) => group.toString(16))
    .join(':')}::/64`;
}

/** `192.0.2.1:4711`, `[2001:db8::1]:4711` and `[2001:db8::1]` without what does not belong to the address (RFC 7239 §6). */
export function withoutPort(text: string): string {
  return /^(\d+\.\d+\.\d+\.\d+):\d+$/.exec(text)?.[1] ?? /^\[([^\]]*)\](?::\d+)?$/.exec(text)?.[1] ?? text;
}

/** The eight groups of an IPv6 address (RFC 4291 §2.2). */
function groupsOf(address: string): number[] {
  const [head = [], tail] = address.split('::').map((part) => (part === '' ? [] : part.split(':').flatMap(groupOf)));
  if (tail === undefined) return [...head];
  return [...head, ...Array.from({ length: 8 - head.length - tail.length }, () => 0), ...tail];
}

/** A group in hexadecimal, or the two of an IPv4 address at the end. */
function groupOf(text: string): number[] {
  if (!text.includes('.')) return [Number.parseInt(text, 16)];
  const [a = 0, b = 0, c = 0, d = 0] = text.split('.').map(Number);
  return [a * 256 + b, c * 256 + d];
}

/** `https` or `http`, as a trusted proxy or the connection says it; proxies may write it in capitals (RFC 3986 §3.1). */
export const schemeOf = (request: FastifyRequest): string => request.protocol.toLowerCase();

/** Our side of the connection, as the host of a URL, for a call that names no host. */
export function listensAt({ raw: { socket } }: FastifyRequest): string {
  const { localAddress = '127.0.0.1', localPort } = socket;
  return `${isIP(localAddress) === 6 ? `[${localAddress}]` : localAddress}:${localPort}`;
}

/** Whether the call reached us, or a trusted proxy of ours, over TLS. */
export function isSecure(request: FastifyRequest): boolean {
  return schemeOf(request) === 'https';
}
