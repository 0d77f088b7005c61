// The bytes of ZeroMQ's wire protocol (ZMTP 3.0, RFC 23 of ZeroMQ, mechanism NULL), for our subscriber and for the simulated publisher.

export const MORE = 1;
export const LONG = 2;
export const COMMAND = 4;
export const GREETING_BYTES = 64;

/** Signature, version 3.0, mechanism NULL, not a server. */
export const GREETING = Buffer.alloc(GREETING_BYTES);
GREETING.set([0xff, 0, 0, 0, 0, 0, 0, 0, 1, 0x7f, 3, 0]);
GREETING.write('NULL', 12, 'latin1');

/** A frame: one byte of length up to 255 bytes of body, else eight. */
export function frame(flags: number, body: Buffer): Buffer {
  if (body.length < 256) return Buffer.concat([Buffer.of(flags, body.length), body]);
  const head = Buffer.alloc(9);
  head[0] = flags | LONG;
  head.writeBigUInt64BE(BigInt(body.length), 1);
  return Buffer.concat([head, body]);
}

/** A name of a command or property, with its length before it. */
function named(name: string): Buffer {
  return Buffer.concat([Buffer.of(name.length), Buffer.from(name, 'latin1')]);
}

/** What each side says after the greetings. */
export function ready(socketType: 'PUB' | 'SUB'): Buffer {
  return frame(
    COMMAND,
    Buffer.concat([named('READY'), named('Socket-Type'), Buffer.of(0, 0, 0, socketType.length), Buffer.from(socketType)]),
  );
}

/** The answer to a PING, whose context it returns (after the name and two bytes of time to live). */
export function pong(ping: Buffer): Buffer {
  return frame(COMMAND, Buffer.concat([named('PONG'), ping.subarray(7)]));
}
