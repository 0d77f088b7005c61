// Narrows a macaroon: whoever has one can add a caveat to it, and nobody can take one away (the signature becomes the HMAC of the caveat under
// the signature before).
import { createHmac } from 'node:crypto';
import { readMacaroon, writeMacaroon } from '../../core/lightning/macaroon.ts';

/**
 * The macaroon, refused by the node from a moment on (LND's caveat `time-before`, by the node's own clock).
 * @param macaroon hex
 * @throws Error for what is no macaroon of version 2
 */
export function validUntil(macaroon: string, atMs: number): string {
  const read = readMacaroon(Buffer.from(macaroon, 'hex'));
  if (read === null) throw new Error('BURSAR_LND_PAY_MACAROON is no macaroon of LND (version 2)');
  const caveat = Buffer.from(`time-before ${new Date(atMs).toISOString()}`);
  const signature = createHmac('sha256', read.signature).update(caveat).digest();
  return Buffer.from(writeMacaroon({ ...read, caveats: [...read.caveats, caveat], signature })).toString('hex');
}
