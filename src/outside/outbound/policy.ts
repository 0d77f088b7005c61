// What may be called: anything in the sandbox, which is on one machine; elsewhere only https to names on the public internet.
import { isIP } from 'node:net';
import { type FindAddresses, namesByDns, namesBySystem } from './names.ts';
import { isPublicAddress } from './public-address.ts';

export type OutboundPolicy = {
  readonly schemes: readonly ('http' | 'https')[];
  /** Null = any. */
  readonly ports: readonly number[] | null;
  /** Whether the host may be an IP address. */
  readonly takesAddresses: boolean;
  /** Whether this address may be connected to. */
  readonly allows: (address: string) => boolean;
  readonly find: FindAddresses;
};

export const ANYWHERE: OutboundPolicy = {
  schemes: ['http', 'https'],
  ports: null,
  takesAddresses: true,
  allows: () => true,
  find: namesBySystem,
};

/** @param ports for example 443 and 8443 */
export function publicInternet(ports: readonly number[], find: FindAddresses = namesByDns()): OutboundPolicy {
  return { schemes: ['https'], ports, takesAddresses: false, allows: isPublicAddress, find };
}

/** What decides the policy of a service. */
export type OutboundSettings =
  | { readonly isSandbox: true }
  | { readonly isSandbox: false /** For example 443 and 8443. */; readonly ports: readonly number[] };

/** The policy of a service. */
export const policyOf = (settings: OutboundSettings): OutboundPolicy =>
  settings.isSandbox ? ANYWHERE : publicInternet(settings.ports);

const LONGEST_URL = 2048;
/**
 * White space and control characters, which the parser would remove in silence, and what a terminal would obey or not show. Joiners are letters of
 * some scripts.
 */
const UNREADABLE = /[\p{Cc}\p{Cs}\s]|(?![\u200C\u200D])\p{Cf}/u;

/** What it must be; null where it may be called. */
export function urlProblem(policy: OutboundPolicy, text: string): string | null {
  const url = readUrl(policy, text);
  return typeof url === 'string' ? url : null;
}

/** The parsed URL, or what it must be (the end of a sentence: "must be …"). Never asks anything. */
export function readUrl(policy: OutboundPolicy, text: string): URL | string {
  const { schemes, ports } = policy;
  const names = schemes.join(' or ');
  if (text.length > LONGEST_URL || UNREADABLE.test(text))
    return `a URL of at most ${LONGEST_URL} characters, none of them white space or invisible`;
  const url = URL.canParse(text) ? new URL(text) : null;
  // the parser takes any number of slashes, and the other one, for the two before the host
  const isNamed = (scheme: string): boolean =>
    url?.protocol === `${scheme}:` && new RegExp(`^${scheme}://[^/\\\\?#]`, 'i').test(text);
  if (url === null || url.hostname === '' || !schemes.some(isNamed)) return `an absolute ${names} URL`;
  // the parser drops an empty name
  const hasUser = /^[^/]+:\/\/[^/\\?#]*@/.test(text);
  if (hasUser) return 'a URL without user name and password';
  const port = url.port === '' ? (url.protocol === 'https:' ? 443 : 80) : Number(url.port);
  if (port === 0 || (ports !== null && !ports.includes(port))) return `a URL with port ${ports?.join(' or ') ?? '1 to 65535'}`;
  if (!policy.takesAddresses && isAddress(url.hostname)) return 'a URL with a host name, not an IP address';
  return url;
}

/** The parser has made dotted decimals of every form of IPv4, and put IPv6 in brackets. */
function isAddress(hostname: string): boolean {
  return hostname.startsWith('[') || isIP(hostname.replace(/\.$/, '')) !== 0;
}
