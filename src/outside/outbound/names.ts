// Finds the addresses of a name, by the DNS alone or as the machine does.

import type { LookupAddress } from 'node:dns';
import { lookup, Resolver } from 'node:dns/promises';

/** Every address of a name; throws when there is none. */
export type FindAddresses = (name: string) => Promise<readonly LookupAddress[]>;

const ANSWERS_WITHIN_MS = 2_000;
const TRIES = 2;
type Answer = PromiseSettledResult<string[]>;
/** What says that a name has no address of this family, or does not exist. */
const NONE = new Set(['ENODATA', 'ENOTFOUND']);
/** Always this machine, and no question for the DNS (RFC 6761 §6.3). */
const LOCALHOST = /(^|\.)localhost\.?$/i;
const LOOPBACK: readonly LookupAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/**
 * By the DNS, without the machine's own files and search lists. It needs no thread of the pool: getaddrinfo does, and a slow name server of a
 * stranger would keep files and passwords waiting there.
 * @param servers default: those of the machine
 */
export function namesByDns(servers?: readonly string[]): FindAddresses {
  const shared = resolverOf(servers, TRIES);
  return async (name) => {
    if (LOCALHOST.test(name)) return LOOPBACK;
    // it has learned which name servers are down, and how quick the others are: it gives a name up after five times as long as most take, asks one
    // that is bad where the good one was late, and knows those of the machine only that were there when it was made
    let [four, six] = await answersOf(shared, name);
    const isFourOpen = isOpen(four);
    // whoever has an address of the kind that every machine can connect to need not wait for the other
    const isSixOpen = isOpen(six) && !isFound(four);
    if (isFourOpen || isSixOpen) {
      const fresh = await answersOf(resolverOf(servers, 1), name);
      four = isFourOpen ? fresh[0] : four;
      six = isSixOpen ? fresh[1] : six;
    }
    const found = [...addressesOf(four, 4), ...addressesOf(six, 6)];
    if (found.length > 0) return found;
    const failures = [four, six].flatMap((one) => (one.status === 'rejected' ? [one.reason as NodeJS.ErrnoException] : []));
    throw failures.find(({ code }) => !NONE.has(code ?? '')) ?? failures[0] ?? new Error(`${name} has no address`);
  };
}

function resolverOf(servers: readonly string[] | undefined, tries: number): Resolver {
  const resolver = new Resolver({ timeout: ANSWERS_WITHIN_MS, tries });
  if (servers !== undefined) resolver.setServers(servers);
  return resolver;
}

const answersOf = (resolver: Resolver, name: string): Promise<[four: Answer, six: Answer]> =>
  Promise.allSettled([resolver.resolve4(name), resolver.resolve6(name)]);
const isFound = ({ status }: Answer): boolean => status === 'fulfilled';
/** Whether no name server has said what addresses of this family there are, nor that there are none. */
const isOpen = (answer: Answer): boolean => answer.status === 'rejected' && !NONE.has(answer.reason.code);

function addressesOf(result: Answer, family: 4 | 6): LookupAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : [];
}

/** As every program of the machine does, with localhost and its own files. */
export const namesBySystem: FindAddresses = (name) => lookup(name, { all: true });
