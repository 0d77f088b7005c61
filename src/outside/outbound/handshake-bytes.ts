// What a TLS server sends before a connection is there. OpenSSL computes with all of it in one piece: the signature of each certificate that comes is
// checked whoever made it, and nobody is asked whether that is enough.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type Handshake, HandshakeTooDear } from './handshake-costs.ts';
import { recordsOf } from './tls-records.ts';

/** The certificates of an ordinary server are 3 to 8 kB. */
const MOST_BYTES = 24 * 1024;

class HandshakeTooLong extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_LONG';
}

export type Counted = {
  readonly stream: Duplex;
  /** The connection is there: what comes now is passed on by this. */
  endHandshake(passing: Passing): void;
};
/** Passes on what may come of a part, in which there are these TLS records, to where TLS is decoded. */
export type Passing = (part: Buffer, records: readonly number[], pass: (some: Buffer) => void) => void;

/** The bytes of a connection for TLS, which ends where more come before its handshake has ended, or its host has to rest. */
export function countedHandshake(raw: Socket, handshake: Handshake): Counted {
  let left = MOST_BYTES;
  function mayGoOn(bytes: number): boolean {
    left -= bytes;
    if (left < 0) stream.destroy(new HandshakeTooLong('the TLS handshake is longer than any'));
    else if (handshake.isRefused()) stream.destroy(new HandshakeTooDear());
    return !stream.destroyed;
  }
  const recordsIn = recordsOf();
  let passing: Passing | null = null;
  const stream = new Duplex({
    read: () => void raw.resume(),
    write: (part: Buffer, _encoding, done) => void raw.write(part, done),
    final: (done) => void raw.end(done),
    destroy(error, done) {
      raw.destroy();
      done(error);
    },
  });
  const pass = (part: Buffer): void => void (stream.push(part) || raw.pause());
  raw.on('data', (part: Buffer) => {
    const records = recordsIn(part);
    if (passing !== null) return passing(part, records, pass);
    // OpenSSL computes with it before this returns
    if (mayGoOn(part.length)) handshake.compute(() => pass(part));
  });
  raw.on('end', () => stream.push(null));
  raw.on('error', (error) => stream.destroy(error));
  raw.on('close', () => stream.destroy());
  return {
    stream,
    endHandshake(then) {
      handshake.end();
      passing = then;
    },
  };
}
