// What a TLS server sends before a connection is there. OpenSSL computes with all of it in one piece: the signature of each certificate that comes is
// checked whoever made it, and nobody is asked whether that is enough.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type Handshake, HandshakeTooDear } from './handshake-costs.ts';

/** The certificates of an ordinary server are 3 to 8 kB. */
const MOST_BYTES = 24 * 1024;

class HandshakeTooLong extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_LONG';
}

export type Counted = {
  readonly stream: Duplex;
  /** The connection is there: of what comes now a part is passed on where this says so. */
  endHandshake(mayPass: (bytes: number) => boolean): void;
};

/** The bytes of a connection for TLS, which ends where more come before its handshake has ended, or its host has to rest. */
export function countedHandshake(raw: Socket, handshake: Handshake): Counted {
  let left = MOST_BYTES;
  function mayGoOn(bytes: number): boolean {
    left -= bytes;
    if (left < 0) stream.destroy(new HandshakeTooLong('the TLS handshake is longer than any'));
    else if (handshake.isRefused()) stream.destroy(new HandshakeTooDear());
    return !stream.destroyed;
  }
  let mayPass: ((bytes: number) => boolean) | null = null;
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
    if (mayPass !== null) return mayPass(part.length) && pass(part);
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
      mayPass = then;
    },
  };
}
