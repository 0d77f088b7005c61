// What a TLS server sends before a connection is there. OpenSSL computes with all of it in one piece: each certificate that comes is taken apart, and
// its signature is checked, whoever made it, and nobody is asked whether that is enough.
import type { Socket } from 'node:net';
import { Duplex } from 'node:stream';
import { type Handshake, HandshakeTooDear, TakenTooMuch } from './handshake-costs.ts';
import { handshakeSight } from './handshake-sight.ts';
import { RECORD_HEAD_BYTES, recordsOf } from './tls-records.ts';

/** The certificates of an ordinary server are 3 to 8 kB. */
const MOST_BYTES = 24 * 1024;

/** Those of an ordinary server are 4 to 50. OpenSSL takes 15 µs for each, also where it has ended the handshake already. */
const MOST_RECORDS = 256;

class HandshakeTooLong extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_TOO_LONG';
}

/** Of no ordinary server: it is not computed with. */
class HandshakeUnusual extends Error {
  readonly code = 'ERR_TLS_HANDSHAKE_UNUSUAL';
}

/** What is known here of TLS 1.3 as soon as the server has said hello (SSLKEYLOGFILE). */
const SECRET = /^SERVER_HANDSHAKE_TRAFFIC_SECRET [0-9a-f]+ ([0-9a-f]+)/;
/** No record is longer, with what encrypts it, nor begins otherwise. */
const LONGEST_RECORD_BYTES = 16 * 1024 + 256;
const [FIRST_TYPE, LAST_TYPE, MAJOR_VERSION] = [20, 23, 3];
const NOTHING: Buffer = Buffer.alloc(0);

export type Counted = {
  readonly stream: Duplex;
  /** What TLS says of its keys (`keylog`). */
  hearKey(line: Buffer): void;
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
  let secret: Buffer | null = null;
  const see = handshakeSight(() => secret);
  let coming: Buffer = NOTHING;
  let records = 0;
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
  /** One after the other: what the next one says may be known here only when TLS has read this one. */
  function passRecords(): void {
    for (let record = firstRecord(coming); record !== null && passing === null; record = firstRecord(coming)) {
      const unusual = ++records > MOST_RECORDS ? `more than ${MOST_RECORDS} records` : see(record);
      if (unusual !== null) {
        refuse(unusual);
        return;
      }
      coming = coming.subarray(record.length);
      // OpenSSL computes with it before this returns
      pass(record);
    }
    if (passing !== null || !isNoRecord(coming)) return;
    // TLS says best what is wrong with it
    pass(coming.subarray(0, RECORD_HEAD_BYTES));
    refuse('it is none');
  }
  const refuse = (unusual: string): void =>
    void stream.destroy(new HandshakeUnusual(`the TLS handshake is no ordinary one: ${unusual}`));
  function take(part: Buffer): void {
    if (handshake.isOver()) {
      stream.destroy(new TakenTooMuch());
      return;
    }
    if (passing === null && !mayGoOn(part.length)) return;
    coming = coming.length === 0 ? part : Buffer.concat([coming, part]);
    if (passing === null) handshake.compute(passRecords);
    if (passing === null || coming.length === 0) return;
    const [rest, passRest] = [coming, passing];
    coming = NOTHING;
    handshake.compute(() => passRest(rest, recordsIn(rest), pass));
  }
  function takeEnd(): void {
    if (coming.length > 0) stream.push(coming);
    stream.push(null);
  }
  const inTurn = (piece: () => void): void => handshake.inTurn(() => void (stream.destroyed || piece()));
  let waiting = 0;
  raw.on('data', (part: Buffer) => {
    waiting += 1;
    // the rest waits where it takes no memory of this process, nor its time to read it
    if (waiting > 1) raw.pause();
    inTurn(() => {
      waiting -= 1;
      if (waiting === 0) raw.resume();
      take(part);
    });
  });
  raw.on('end', () => inTurn(takeEnd));
  raw.on('error', (error) => inTurn(() => stream.destroy(error)));
  raw.on('close', () => inTurn(() => stream.destroy()));
  return {
    stream,
    hearKey(line) {
      const found = SECRET.exec(line.toString('latin1'))?.[1];
      if (found !== undefined) secret = Buffer.from(found, 'hex');
    },
    endHandshake(then) {
      handshake.end();
      passing = then;
    },
  };
}

function isNoRecord(coming: Buffer): boolean {
  if (coming.length < RECORD_HEAD_BYTES) return false;
  const [type, major] = coming as unknown as [number, number];
  return type < FIRST_TYPE || type > LAST_TYPE || major !== MAJOR_VERSION || coming.readUInt16BE(3) > LONGEST_RECORD_BYTES;
}

/** Null = it is not there yet, or there is something else. */
function firstRecord(coming: Buffer): Buffer | null {
  if (coming.length < RECORD_HEAD_BYTES || isNoRecord(coming)) return null;
  const end = RECORD_HEAD_BYTES + coming.readUInt16BE(3);
  return coming.length < end ? null : coming.subarray(0, end);
}
