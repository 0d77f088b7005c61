// What a macaroon of LND permits, read from the macaroon itself: nobody needs to be asked, and none of its rights is used.
import { permittedOperations, readMacaroon } from '../../core/lightning/macaroon.ts';

export type Permissions = {
  /** Of what is needed. */
  readonly missing: readonly string[];
  /** What it permits besides: whoever steals it can do that too. */
  readonly beyond: readonly string[];
};

/** The command that makes a macaroon with exactly these methods. */
export const bakeLine = (needed: readonly string[]): string =>
  `lncli bakemacaroon ${needed.map((method) => `uri:${method}`).join(' ')}`;

/**
 * @param macaroon hex
 * @param needed methods as `uri` permissions name them
 * @returns null when it cannot be read. A macaroon by entities (`offchain:write`) permits whole groups of methods: all of it is beyond, and
 *   nothing is said to be missing
 */
export function permissionsOf(macaroon: string, needed: readonly string[]): Permissions | null {
  const read = readMacaroon(Buffer.from(macaroon, 'hex'));
  const operations = read === null ? null : permittedOperations(read.identifier);
  if (operations === null) return null;
  const all = operations.flatMap(({ entity, actions }) => actions.map((action) => ({ entity, action })));
  const methods = new Set(all.filter(({ entity }) => entity === 'uri').map(({ action }) => action));
  const groups = all.filter(({ entity }) => entity !== 'uri').map(({ entity, action }) => `${entity}:${action}`);
  return {
    missing: groups.length > 0 ? [] : needed.filter((method) => !methods.has(method)),
    beyond: [...groups, ...[...methods].filter((method) => !needed.includes(method))],
  };
}
