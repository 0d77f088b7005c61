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
  return async (name) => {
    if (LOCALHOST.test(name)) return LOOPBACK;
    // of its own: one that is shared waits for a name only about as long as others took, and keeps the machine's name servers of when it was made
    const resolver = new Resolver({ timeout: ANSWERS_WITHIN_MS, tries: TRIES });
    if (servers !== undefined) resolver.setServers(servers);
    const [four, six] = await bothAnswers(resolver, name);
    const found = [...addressesOf(four, 4), ...addressesOf(six, 6)];
    if (found.length > 0) return found;
    const failures = [four, six].flatMap((one) => (one.status === 'rejected' ? [one.reason as NodeJS.ErrnoException] : []));
    throw failures.find(({ code }) => !NONE.has(code ?? '')) ?? failures[0] ?? new Error(`${name} has no address`);
  };
}

/** Some name servers never answer the second question: once there is an address, it has its time and no second try. */
async function bothAnswers(resolver: Resolver, name: string): Promise<[four: Answer, six: Answer]> {
  let timer: NodeJS.Timeout | null = null;
  function startTimer(): void {
    timer = setTimeout(() => resolver.cancel(), ANSWERS_WITHIN_MS);
  }
  const [fours, sixes] = [resolver.resolve4(name), resolver.resolve6(name)];
  fours.then(startTimer, () => undefined);
  const answers = await Promise.allSettled([fours, sixes]);
  if (timer !== null) clearTimeout(timer);
  return answers;
}

function addressesOf(result: Answer, family: 4 | 6): LookupAddress[] {
  return result.status === 'fulfilled' ? result.value.map((address) => ({ address, family })) : [];
}

/** As every program of the machine does, with localhost and its own files. */
export const namesBySystem: FindAddresses = (name) => lookup(name, { all: true });
