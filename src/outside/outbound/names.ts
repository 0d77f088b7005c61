// Finds the addresses of a name, by the DNS alone or as the machine does.

import type { LookupAddress } from 'node:dns';
import { lookup } from 'node:dns/promises';
import { setTimeout as delay } from 'node:timers/promises';
import { type Answer, isError, nameServers, saysNone } from './name-servers.ts';

/** Every address of a name; throws when there is none. */
export type FindAddresses = (name: string) => Promise<readonly LookupAddress[]>;

/** How long the addresses of the other family are waited for where those of one are there: every machine can connect to the ones of IPv4. */
const FOUR_WITHIN_MS = 3_000;
const SIX_WITHIN_MS = 250;
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
  const ask = nameServers(servers);
  return async (name) => {
    if (LOCALHOST.test(name)) return LOOPBACK;
    const asked = ask(name);
    const [four, six] = await Promise.all([
      soonAfter(asked.six, asked.four, FOUR_WITHIN_MS),
      soonAfter(asked.four, asked.six, SIX_WITHIN_MS),
    ]);
    asked.end();
    const found = [...addressesOf(four, 4), ...addressesOf(six, 6)];
    if (found.length > 0) return found;
    const failures = [four, six].filter(isError);
    throw failures.find((one) => !saysNone(one)) ?? failures[0] ?? new Error(`${name} has no address`);
  };
}

/** An answer; none where it does not come this soon after addresses of the other family. */
function soonAfter(other: Promise<Answer>, answer: Promise<Answer>, withinMs: number): Promise<Answer> {
  const none = other.then(async (there) => (isError(there) ? answer : delay(withinMs, [] as Answer, { ref: false })));
  return Promise.race([answer, none]);
}

const addressesOf = (answer: Answer, family: 4 | 6): LookupAddress[] =>
  isError(answer) ? [] : answer.map((address) => ({ address, family }));

/** As every program of the machine does, with localhost and its own files. */
export const namesBySystem: FindAddresses = (name) => lookup(name, { all: true });
