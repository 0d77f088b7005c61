// What a TLS server sends before a connection is there. OpenSSL computes with all of it in one piece: the signature of each certificate that comes is
// checked whoever made it, and nobody is asked whether that is enough.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';

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

/** The bytes of a connection for TLS, which ends where more come before its handshake has ended. */
export function countedHandshake(raw: Socket): Counted {
  let left = MOST_BYTES;
  function isShort(bytes: number): boolean {
    left -= bytes;
    if (left < 0) stream.destroy(new HandshakeTooLong('the TLS handshake is longer than any'));
    return left >= 0;
  }
  let mayPass = isShort;
  const stream = new Duplex({
    read: () => void raw.resume(),
    write: (part: Buffer, _encoding, done) => void raw.write(part, done),
    final: (done) => void raw.end(done),
    destroy(error, done) {
      raw.destroy();
      done(error);
    },
  });
  raw.on('data', (part: Buffer) => {
    if (mayPass(part.length) && !stream.push(part)) raw.pause();
  });
  raw.on('end', () => stream.push(null));
  raw.on('error', (error) => stream.destroy(error));
  raw.on('close', () => stream.destroy());
  return {
    stream,
    endHandshake(then) {
      mayPass = then;
    },
  };
}
