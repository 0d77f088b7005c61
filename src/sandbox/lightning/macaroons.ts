// The macaroons of the simulated Lightning node: made and checked as LND does it, by a chain of HMACs from a root key, with the operations in
// the identifier and `time-before` as the only caveat.
import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import {
  type MacaroonOperation,
  macaroonIdentifier,
  permittedOperations,
  readMacaroon,
  writeMacaroon,
} from '../../core/lightning/macaroon.ts';

const KEY_GENERATOR = 'macaroons-key-generator';

const hmac = (key: Uint8Array, data: Uint8Array): Buffer => createHmac('sha256', key).update(data).digest();

function signatureOf(rootKey: Uint8Array, identifier: Uint8Array, caveats: readonly Uint8Array[]): Buffer {
  const first = hmac(hmac(Buffer.from(KEY_GENERATOR), rootKey), identifier);
  return caveats.reduce<Buffer>((signature, caveat) => hmac(signature, caveat), first);
}

/** The hex of a macaroon that permits these methods (`/lnrpc.Lightning/AddInvoice`) and nothing else. */
export function bakeMacaroon(rootKey: Uint8Array, methods: readonly string[]): string {
  const operations: readonly MacaroonOperation[] = [{ entity: 'uri', actions: methods }];
  const identifier = macaroonIdentifier(randomBytes(16), operations);
  const macaroon = { location: 'lnd', identifier, caveats: [], signature: signatureOf(rootKey, identifier, []) };
  return Buffer.from(writeMacaroon(macaroon)).toString('hex');
}

/** Why a macaroon does not permit a method, in LND's words; null when it does. */
export function macaroonProblem(rootKey: Uint8Array, header: string | undefined, method: string, nowMs: number): string | null {
  if (header === undefined) return 'expected 1 macaroon, got 0';
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(header)) return 'encoding/hex: invalid byte';
  const macaroon = readMacaroon(Buffer.from(header, 'hex'));
  if (macaroon === null) return 'cannot unmarshal macaroon';
  const { identifier, caveats, signature } = macaroon;
  if (!timingSafeEqual(signatureOf(rootKey, identifier, caveats), signature))
    return 'verification failed: signature mismatch after caveat verification';
  for (const caveat of caveats) {
    const text = Buffer.from(caveat).toString('utf8');
    const before = /^time-before (.+)$/.exec(text)?.[1];
    if (before === undefined) return `caveat "${text}" not satisfied: caveat not recognized`;
    if (!(Date.parse(before) > nowMs)) return `caveat "${text}" not satisfied: macaroon has expired`;
  }
  const permitted = permittedOperations(identifier) ?? [];
  return permitted.some(({ entity, actions }) => entity === 'uri' && actions.includes(method)) ? null : 'permission denied';
}
